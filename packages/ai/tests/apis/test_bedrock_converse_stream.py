"""How Bedrock's answers are read, and where its requests go."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from cantle_ai.apis.bedrock_converse_endpoint import named_region
from cantle_ai.content import TextContent, ThinkingContent, ToolCall
from cantle_ai.model import StreamOptions
from cantle_ai.overflow import is_overflow
from cantle_ai.retry import retryable
from cantle_ai.transport.port import HttpRequest
from cantle_ai.usage import Price
from packages.ai.tests.apis.bedrock import (
    CLAUDE,
    END,
    KEY,
    MEDIA_TYPE,
    ask,
    delta,
    end,
    event,
    exception,
    model,
    said,
    stop,
)
from packages.ai.tests.http_peer import Link

PROFILE = "arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/abc"


def thought(index: int, **fields: str) -> bytes:
    return delta(index, reasoningContent=fields)


def call(index: int, id: str, name: str, **more: str) -> bytes:
    return event(
        "contentBlockStart",
        {"contentBlockIndex": index, "start": {"toolUse": {"toolUseId": id, "name": name, **more}}},
    )


# --- answers


async def test_blocks_are_put_together_by_their_numbers():
    asked = await ask(
        [
            event("messageStart", {"role": "assistant"}),
            thought(0, text="h"),
            thought(0, text="m"),
            thought(0, signature="s1"),
            thought(0, signature="s2"),
            stop(0),
            delta(1, text="ä"),
            call(2, "t1", "read"),
            call(3, "t2", "read"),
            delta(3, toolUse={"input": '{"n":'}),
            delta(2, toolUse={"input": '{"n":1}'}),
            delta(3, toolUse={"input": "2}"}),
            delta(1, text="😀"),
            stop(3),
            stop(2),
            stop(1),
            end("tool_use"),
        ]
    )
    message = asked.message
    assert message.content == [
        ThinkingContent("hm", signature="s1s2"),
        TextContent("ä😀"),
        ToolCall("t1", "read", {"n": 1}),
        ToolCall("t2", "read", {"n": 2}),
    ]
    assert (message.stop_reason, message.raw_stop_reason) == ("toolUse", "tool_use")
    assert message.response_id == "r-1"


@pytest.mark.fault("A13")
async def test_a13_redacted_reasoning_is_kept_as_it_came_in_one_piece_or_several():
    data = b"\x00\xff opaque"
    pieces = [base64.b64encode(part).decode() for part in (data[:4], data[4:])]
    asked = await ask(
        [
            thought(0, redactedContent="UkVE"),
            stop(0),
            thought(1, redactedContent=pieces[0]),
            said("between", 2),
            thought(1, redactedContent=pieces[1]),
            stop(1),
            *END,
        ]
    )
    first, second = asked.message.content[:2]
    assert first == ThinkingContent("", signature="UkVE", redacted=True)
    assert second == ThinkingContent("", signature=base64.b64encode(data).decode(), redacted=True)


async def test_what_the_service_does_by_itself_is_no_call():
    asked = await ask(
        [
            call(0, "srv1", "web_search", type="server_tool_use"),
            delta(0, toolUse={"input": '{"q":1}'}),
            stop(0),
            event(
                "contentBlockStart", {"contentBlockIndex": 1, "start": {"toolResult": {"toolUseId": "srv1"}}}
            ),
            delta(1, toolResult=[{"text": "found"}]),
            stop(1),
            said("so", 2),
            end(),
        ]
    )
    assert asked.message.content == [TextContent("so")]
    assert asked.message.stop_reason == "stop"


@pytest.mark.parametrize("start", [None, {}, {"text": ""}, {"somethingNew": {}}])
async def test_text_may_be_announced_as_well(start):
    announced = event("contentBlockStart", {"contentBlockIndex": 0, "start": start})
    assert (await ask([announced, said("so"), end()])).message.content == [TextContent("so")]


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("something_new", "stop"),
    ],
)
async def test_every_stop_reason_ends_the_answer(raw, reason):
    message = (await ask([said("x"), end(raw)])).message
    assert (message.stop_reason, message.raw_stop_reason, message.text) == (reason, raw, "x")


@pytest.mark.parametrize(
    ("blocks", "raw", "reason"),
    [
        ([said("x")], "tool_use", "stop"),
        ([call(0, "t1", "read"), stop(0)], "end_turn", "toolUse"),
        ([call(0, "t1", "read"), stop(0)], "max_tokens", "length"),
    ],
)
async def test_the_calls_say_better_than_the_word(blocks, raw, reason):
    message = (await ask([*blocks, end(raw)])).message
    assert (message.stop_reason, message.raw_stop_reason) == (reason, raw)


async def test_what_comes_for_a_call_that_has_ended_is_no_call_of_its_own():
    late = delta(0, toolUse={"input": '{"n":2}'})
    asked = await ask([call(0, "t1", "read"), stop(0), late, said("so", 1), end()])
    assert asked.message.content == [ToolCall("t1", "read", {}), TextContent("so")]


@pytest.mark.parametrize(
    ("raw", "again"),
    [
        ("guardrail_intervened", False),
        ("content_filtered", False),
        ("malformed_model_output", None),
        ("malformed_tool_use", None),
    ],
)
async def test_an_answer_that_was_stopped_has_failed_with_what_had_come(raw, again):
    asked = await ask([said("x"), end(raw)])
    message = asked.message
    assert (message.stop_reason, message.raw_stop_reason, message.text) == ("error", raw, "x")
    assert asked.details["code"] == raw
    assert message.usage.input == 5
    assert again is None or retryable(message) == again


@pytest.mark.fault("A11")
@pytest.mark.parametrize(
    "frames", [[said("x")], [said("x"), event("metadata", {"usage": {"inputTokens": 1}})]]
)
async def test_a11_a_stream_without_a_stop_reason_was_cut(frames):
    message = (await ask(frames)).message
    assert (message.stop_reason, message.text) == ("error", "x")
    assert retryable(message)


async def test_an_answer_is_whole_without_its_usage():
    message = (await ask([said("x"), event("messageStop", {"stopReason": "end_turn"})])).message
    assert (message.stop_reason, message.text) == ("stop", "x")


async def test_unknown_events_and_odd_values_are_passed_over():
    asked = await ask(
        [
            event("somethingNew", {"a": [1]}),
            event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"citation": {"title": "t"}}}),
            event("contentBlockDelta", {"contentBlockIndex": "0", "delta": {"text": "x", "toolUse": 7}}),
            event("contentBlockDelta", {"contentBlockIndex": 0.0, "delta": {"text": "y"}}),
            event("metadata", {"usage": None}),
            event("messageStop", {"stopReason": None}),
        ]
    )
    assert (asked.message.text, asked.message.stop_reason) == ("xy", "stop")


async def test_a_converse_answer_that_is_not_streamed_is_read_as_well():
    body = (
        b'{"output":{"message":{"role":"assistant","content":[{"reasoningContent":{"reasoningText":'
        b'{"text":"hm","signature":"s"}}},{"text":"x"},{"toolUse":{"toolUseId":"t1","name":"read",'
        b'"input":{"n":1}}}]}},"stopReason":"tool_use","usage":{"inputTokens":3,"outputTokens":2}}'
    )

    def serve(link: Link) -> None:
        link.answer(body, "content-type: application/json")

    message = (await ask(serve)).message
    assert message.content == [
        ThinkingContent("hm", signature="s"),
        TextContent("x"),
        ToolCall("t1", "read", {"n": 1}),
    ]
    assert (message.stop_reason, message.usage.total_tokens) == ("toolUse", 5)


# --- usage


@pytest.mark.parity("bedrock.hour-writes")
async def test_caches_are_counted_beside_the_input():
    usage: dict[str, Any] = {"cacheReadInputTokens": 30, "cacheWriteInputTokens": 20, "totalTokens": 62}
    counted = (await ask([said("x"), end(**usage)])).message.usage
    assert (counted.input, counted.cache_read, counted.cache_write, counted.output) == (5, 30, 20, 7)
    assert (counted.total_tokens, counted.cache_write_1h) == (62, None)


@pytest.mark.fault("D02")
@pytest.mark.parity("bedrock.hour-writes")
async def test_d02_an_hours_writes_have_their_own_price():
    details = [{"ttl": "1h", "inputTokens": 600_000}, {"ttl": "5m", "inputTokens": 400_000}]
    asked = await ask(
        [
            said("x"),
            end(inputTokens=0, outputTokens=0, cacheWriteInputTokens=1_000_000, cacheDetails=details),
        ],
        price=Price(input=1.0, output=5.0, cache_read=0.1, cache_write=1.25),
    )
    counted = asked.message.usage
    assert counted.cache_write_1h == 600_000
    assert counted.cost.cache_write == pytest.approx(0.4 * 1.25 + 0.6 * 2.0)


# --- failures


@pytest.mark.parametrize(
    ("name", "again"),
    [
        ("throttlingException", True),
        ("serviceUnavailableException", True),
        ("internalServerException", True),
        ("modelStreamErrorException", True),
        ("modelTimeoutException", True),
        ("validationException", False),
        ("accessDeniedException", False),
    ],
)
async def test_an_exception_inside_the_stream_is_told_by_its_name(name, again):
    asked = await ask([said("half"), exception(name, {"message": "No."})])
    message = asked.message
    assert (message.stop_reason, message.error_message, message.text) == ("error", "No.", "half")
    assert asked.details == {"status": None, "code": name, "retryAfterMs": None, "kind": "http"}
    assert retryable(message) == again


async def test_the_models_own_words_are_told_too():
    fields = {"message": "Model error", "originalStatusCode": 500, "originalMessage": "CUDA"}
    asked = await ask([exception("modelStreamErrorException", fields)])
    assert asked.message.error_message == "Model error (CUDA)"
    empty = await ask([exception("throttlingException", {})])
    assert empty.message.error_message == "Bedrock ended the answer with throttlingException"


@pytest.mark.parametrize(
    ("header", "body", "code"),
    [
        ("x-amzn-errortype: ThrottlingException:http://internal.amazon.com/coral/", '{"message":"Too many tokens, please wait before trying again."}', "ThrottlingException"),
        ("x-other: 1", '{"__type":"com.amazon.coral.service#ThrottlingException","message":"Too many tokens"}', "ThrottlingException"),
    ],
)  # fmt: skip
async def test_a_refusal_has_the_name_that_aws_gives_it(header, body, code):
    def serve(link: Link) -> None:
        link.answer(body.encode(), "content-type: application/json", header, status="429 Too Many Requests")

    asked = await ask(serve)
    assert (asked.details["status"], asked.details["code"]) == (429, code)
    assert not is_overflow(asked.message, None)
    assert retryable(asked.message)


async def test_who_may_not_is_told_what_and_why():
    """What authorises requests to AWS writes the name of the field large."""

    def serve(link: Link) -> None:
        body = b'{"Message":"User: someone is not authorized to perform: bedrock:InvokeModel"}'
        link.answer(body, "x-amzn-errortype: AccessDeniedException", status="403 Forbidden")

    asked = await ask(serve)
    assert (
        asked.message.error_message == "403 User: someone is not authorized to perform: bedrock:InvokeModel"
    )
    assert asked.details["code"] == "AccessDeniedException"
    assert not retryable(asked.message)


async def test_too_long_a_conversation_is_known():
    def serve(link: Link) -> None:
        body = b'{"message":"Input is too long for requested model."}'
        link.answer(body, "x-amzn-errortype: ValidationException", status="400 Bad Request")

    message = (await ask(serve)).message
    assert is_overflow(message, None)
    assert not retryable(message)


@pytest.mark.parametrize("damage", [b"\x00", b"garbage that is longer than a prelude"])
async def test_a_damaged_stream_is_told_and_keeps_what_had_come(damage):
    def serve(link: Link) -> None:
        frame = bytearray(said("lost"))
        frame[20] ^= 1
        link.answer(said("kept") + bytes(frame) + damage, MEDIA_TYPE)

    asked = await ask(serve)
    assert asked.details["kind"] == "protocol"
    assert "not a stream of events" in str(asked.message.error_message)
    assert asked.message.text == "kept"


async def test_what_comes_after_the_last_word_does_no_harm():
    asked = await ask([*END, b"garbage that is longer than a prelude"])
    assert (asked.message.text, asked.message.stop_reason) == ("ok", "stop")


# --- where requests go


@pytest.mark.parametrize(
    ("fields", "environ", "url"),
    [
        ({}, {}, "https://bedrock-runtime.us-east-1.amazonaws.com"),
        ({}, {"AWS_REGION": "us-west-2"}, "https://bedrock-runtime.us-west-2.amazonaws.com"),
        ({}, {"AWS_DEFAULT_REGION": "eu-west-3"}, "https://bedrock-runtime.eu-west-3.amazonaws.com"),
        ({}, {"AWS_REGION": "a-b-1", "AWS_DEFAULT_REGION": "c-d-2"}, "https://bedrock-runtime.a-b-1.amazonaws.com"),
        ({}, {"AWS_REGION": "cn-north-1"}, "https://bedrock-runtime.cn-north-1.amazonaws.com.cn"),
        ({}, {"AWS_REGION": "us-gov-west-1", "AWS_USE_FIPS_ENDPOINT": "true"}, "https://bedrock-runtime-fips.us-gov-west-1.amazonaws.com"),
        ({"id": PROFILE}, {"AWS_REGION": "us-west-2"}, "https://bedrock-runtime.eu-west-1.amazonaws.com"),
        ({"base_url": "https://proxy.example/aws/"}, {"AWS_REGION": "us-west-2"}, "https://proxy.example/aws"),
        ({}, {"AWS_ENDPOINT_URL_BEDROCK_RUNTIME": "https://one.example", "AWS_ENDPOINT_URL": "https://two.example"}, "https://one.example"),
        ({}, {"AWS_ENDPOINT_URL": "https://two.example"}, "https://two.example"),
    ],
)  # fmt: skip
@pytest.mark.parity("bedrock.region")
async def test_the_region_and_the_address(fields, environ, url):
    sent: list[HttpRequest] = []

    def show(request: HttpRequest) -> HttpRequest:
        sent.append(request)
        raise RuntimeError("not to be sent")

    options = StreamOptions(on_request=show)
    await ask(END, options=options, environ=environ, **{"base_url": "", **fields})
    model_id = fields.get("id", CLAUDE).replace(":", "%3A").replace("/", "%2F")
    assert sent[0].url == f"{url}/model/{model_id}/converse-stream"


@pytest.mark.parametrize(
    ("address", "region"),
    [
        ("https://bedrock-runtime.ap-south-1.amazonaws.com", "ap-south-1"),
        ("https://bedrock-runtime-fips.us-gov-west-1.amazonaws.com/", "us-gov-west-1"),
        ("https://vpce-0a1b-2c.bedrock-runtime.eu-west-1.vpce.amazonaws.com", "eu-west-1"),
        ("https://bedrock-runtime.us-east-2.api.aws", "us-east-2"),
        ("https://proxy.example/bedrock-runtime", "us-west-2"),
    ],
)
def test_the_region_that_an_address_names_is_signed_for(address, region):
    assert named_region(model(base_url=address), {"AWS_REGION": "us-west-2"}) == region


@pytest.mark.parametrize(
    ("key", "environ", "sent"),
    [
        (KEY, {"AWS_BEARER_TOKEN_BEDROCK": "other"}, KEY),
        (None, {"AWS_BEARER_TOKEN_BEDROCK": "token", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}, "token"),
    ],
)  # fmt: skip
@pytest.mark.parity("bedrock.credentials")
async def test_a_key_travels_as_a_bearer_token(key, environ, sent):
    asked = await ask(END, key=key, environ=environ)
    assert asked.requests[0].headers["authorization"] == f"Bearer {sent}"
    assert "x-amz-date" not in asked.requests[0].headers


async def test_a_proxy_that_authorises_by_itself_gets_neither_key_nor_signature():
    asked = await ask(END, key=None, environ={"AWS_BEDROCK_SKIP_AUTH": "1"})
    assert asked.message.text == "ok"
    assert "authorization" not in asked.requests[0].headers


async def test_a_configured_authorization_is_left_alone():
    options = StreamOptions(headers={"Authorization": "Basic abc"})
    asked = await ask(END, key=None, options=options)
    assert asked.requests[0].headers["authorization"] == "Basic abc"
