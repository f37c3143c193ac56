"""What comes back from Gemini: chunks of parts become one answer."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cantle_ai.abort import AbortController
from cantle_ai.content import TextContent, ThinkingContent, ToolCall
from cantle_ai.context import Context
from cantle_ai.messages import ToolResultMessage, UserMessage
from cantle_ai.model import StreamOptions
from cantle_ai.overflow import is_overflow
from cantle_ai.quota import is_quota_exhausted
from cantle_ai.retry import delay_ms, retryable
from cantle_ai.retry_policy import RetryPolicy
from cantle_ai.usage import Price
from packages.ai.tests.apis.asking import refuse
from packages.ai.tests.apis.google import KEY, PRO, answer_by, ask, call, chunk, event, model
from packages.ai.tests.http_peer import Link
from tests.support.samples import samples

USAGE = {
    "promptTokenCount": 100,
    "cachedContentTokenCount": 40,
    "candidatesTokenCount": 7,
    "thoughtsTokenCount": 5,
    "toolUsePromptTokenCount": 3,
    "totalTokenCount": 115,
}


async def test_a_text_answer():
    asked = await ask([chunk("Hel"), chunk("lo"), chunk("", finish="STOP", usage=USAGE)])
    message = asked.message
    assert asked.types == ["start", "text_start", "text_delta", "text_delta", "text_end", "done"]
    assert message.content == [TextContent("Hello")]
    assert (message.stop_reason, message.raw_stop_reason, message.response_id) == ("stop", "STOP", "r1")
    assert message.response_model is None


async def test_the_model_that_answered_is_named_if_it_is_another():
    asked = await ask([chunk("x", finish="STOP", modelVersion="gemini-3.1-pro-002")])
    assert asked.message.response_model == "gemini-3.1-pro-002"


async def test_thoughts_are_a_block_of_their_own():
    parts = [{"text": "hm", "thought": True}, {"text": "…", "thought": True}, "ok", "!"]
    asked = await ask([chunk(parts[0]), chunk(*parts[1:3]), chunk(parts[3], finish="STOP")])
    assert asked.message.content == [ThinkingContent("hm…"), TextContent("ok!")]
    assert asked.types.index("thinking_end") < asked.types.index("text_start")


async def test_the_order_of_blocks_is_that_of_the_parts():
    thought = {"text": "t", "thought": True}
    asked = await ask([chunk("a", thought, "b", call("go", {}, id="c"), "d", finish="STOP")])
    assert [type(block).__name__ for block in asked.message.content] == [
        "TextContent",
        "ThinkingContent",
        "TextContent",
        "ToolCall",
        "TextContent",
    ]


async def test_signatures_stay_with_their_parts():
    asked = await ask(
        [
            chunk({"text": "hm", "thought": True}),
            chunk({"text": "", "thought": True, "thoughtSignature": "QUJD"}),
            chunk("ok"),
            chunk({"text": "", "thoughtSignature": "QUJE"}),
            chunk(call("go", {}, id="c", signature="QUJF"), finish="STOP"),
        ]
    )
    assert asked.message.content == [
        ThinkingContent("hm", signature="QUJD"),
        TextContent("ok", signature="QUJE"),
        ToolCall("c", "go", {}, thought_signature="QUJF"),
    ]


async def test_a_signature_without_anything_before_it_is_kept():
    asked = await ask(
        [
            chunk({"text": "hm", "thought": True}),
            chunk({"text": "", "thoughtSignature": "QUJD"}),
            chunk(call("go", {}, id="c"), finish="STOP"),
        ]
    )
    assert asked.message.content == [
        ThinkingContent("hm"),
        TextContent("", signature="QUJD"),
        ToolCall("c", "go", {}),
    ]


@pytest.mark.parity("google.empty-parts")
async def test_no_signature_is_overwritten_by_another():
    asked = await ask(
        [
            chunk({"text": "a", "thoughtSignature": "QUJD"}, "b", {"text": "c", "thoughtSignature": "QUJE"}),
            chunk({"text": "", "thoughtSignature": "QUJF"}, finish="STOP"),
        ]
    )
    assert asked.message.content == [
        TextContent("ab", signature="QUJD"),
        TextContent("c", signature="QUJE"),
        TextContent("", signature="QUJF"),
    ]
    assert asked.message.text == "abc"


@pytest.mark.parity("google.empty-parts")
async def test_what_comes_without_text_or_signature_makes_no_block():
    asked = await ask(
        [chunk("", call("go", {}, id="c")), chunk({"text": "", "thought": True}), chunk("", finish="STOP")]
    )
    assert asked.message.content == [ToolCall("c", "go", {})]


async def test_parallel_calls_in_one_chunk_and_in_several():
    asked = await ask(
        [
            chunk(call("one", {"x": 1}, signature="QUJD", id="c1"), call("two", {"y": [2, "ä"]}, id="c2")),
            chunk(call("three", {}, id="c3"), finish="STOP"),
        ]
    )
    assert asked.message.content == [
        ToolCall("c1", "one", {"x": 1}, thought_signature="QUJD"),
        ToolCall("c2", "two", {"y": [2, "ä"]}),
        ToolCall("c3", "three", {}),
    ]
    assert asked.message.stop_reason == "toolUse"
    assert asked.types[1:4] == ["toolcall_start", "toolcall_delta", "toolcall_end"]


@pytest.mark.fault("B16")
async def test_b16_ids_are_kept_where_given_and_made_where_not():
    before = answer_by(model(), ToolCall("old", "go", {}))
    context = Context("", [UserMessage("x"), before, ToolResultMessage("old", "go", [TextContent("r")])])
    parts = [call("go", {}, id="new"), call("go", {}), call("go", {}, id="new"), call("go", {}, id="old"),
             call("go", {}, id="")]  # fmt: skip
    asked = await ask([chunk(*parts, finish="STOP")], context=context)
    ids = [each.id for each in asked.message.tool_calls]
    assert ids[0] == "new"
    assert len({*ids, "old"}) == 6


@pytest.mark.parametrize(
    ("args", "arguments", "invalid"),
    [
        (None, {}, None),
        ({}, {}, None),
        ({"deep": {"er": [1, None, "\ud83d\ude00"]}}, {"deep": {"er": [1, None, "😀"]}}, None),
        ('{"a": 1}', {"a": 1}, None),
        ("", {}, None),
        ('{"a": ', {}, '{"a": '),
        ([1], {}, "[1]"),
        (3, {}, "3"),
    ],
)
async def test_arguments_of_every_form(args, arguments, invalid):
    part = {"functionCall": {"name": "go", "args": args, "id": "c"}}
    asked = await ask([chunk(part, finish="STOP")])
    (made,) = asked.message.tool_calls
    assert (made.arguments, made.invalid_arguments) == (arguments, invalid)


@pytest.mark.fault("D01")
async def test_d01_cached_tokens_are_counted_once_and_so_are_thoughts():
    price = Price(input=1, output=10, cache_read=0.1, cache_write=0)
    asked = await ask([chunk("x", usage={"promptTokenCount": 100}), chunk("", finish="STOP", usage=USAGE)],
                      price=price)  # fmt: skip
    usage = asked.message.usage
    assert (usage.input, usage.cache_read, usage.cache_write) == (63, 40, 0)
    assert (usage.output, usage.reasoning, usage.total_tokens) == (12, 5, 115)
    assert usage.cost.total == pytest.approx((63 + 120 + 4) / 1e6)


@pytest.mark.parametrize("end", ["abort", "cut", "error"])
async def test_the_last_count_counts_however_an_answer_ends(end):
    controller = AbortController()
    texts = [chunk("x", usage={"promptTokenCount": 9, "candidatesTokenCount": n}) for n in range(1, 101)]

    def serve(link: Link) -> None:
        link.request()
        link.head("content-type: text/event-stream", "transfer-encoding: chunked")
        for each in texts:
            link.chunk(each)
        if end == "error":
            link.chunk(event({"error": {"code": 500, "message": "no"}}))
        elif end == "cut":
            link.reset()
        else:
            link.wait_gone()

    def see(each):
        if each.type == "text_delta" and len(each.partial.text) == 100 and end == "abort":
            controller.abort()

    asked = await ask(serve, see=see, options=StreamOptions(signal=controller.signal))
    assert asked.message.stop_reason == ("aborted" if end == "abort" else "error")
    assert asked.message.usage.output == len(asked.message.text)
    assert len(asked.message.text) == 100 or end == "cut"


async def test_usage_is_known_as_soon_as_it_is_said():
    seen = []
    await ask(
        [chunk("x", usage={"promptTokenCount": 9, "candidatesTokenCount": 1}), chunk("", finish="STOP")],
        see=lambda event: seen.append(getattr(event, "partial", None) and event.partial.usage.input),
    )
    assert 9 in seen


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        ({}, (0, 0, 0, 0)),
        ({"promptTokenCount": "12", "candidatesTokenCount": 3.0}, (12, 0, 3, 15)),
        ({"promptTokenCount": 5, "cachedContentTokenCount": 50}, (0, 5, 0, 5)),
        ({"promptTokenCount": None, "totalTokenCount": "-4", "thoughtsTokenCount": 2}, (0, 0, 2, 2)),
        (
            {"promptTokenCount": 1, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 1}]},
            (1, 0, 0, 1),
        ),
    ],
)
async def test_counts_of_every_form(usage, counted):
    asked = await ask([chunk("x", finish="STOP", usage=usage)])
    got = asked.message.usage
    assert (got.input, got.cache_read, got.output, got.total_tokens) == counted


@pytest.mark.parametrize("reason", ["MAX_TOKENS", "CONTINUATION"])
async def test_the_output_limit(reason):
    asked = await ask([chunk("half", finish=reason)])
    assert (asked.message.stop_reason, asked.message.raw_stop_reason) == ("length", reason)


async def test_a_call_at_the_output_limit_is_not_one_to_run():
    asked = await ask([chunk(call("go", {}), finish="MAX_TOKENS")])
    assert asked.message.stop_reason == "length"


FAILURES = [
    "SAFETY", "RECITATION", "LANGUAGE", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII",
    "MALFORMED_FUNCTION_CALL", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_OTHER", "NO_IMAGE",
    "IMAGE_RECITATION", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE",
    "MALFORMED_RESPONSE", "ESCALATION", "PUP_LIMITED_DISABLED", "MODEL_ARMOR",
    "FINISH_REASON_UNSPECIFIED", "A_NEW_ONE",
]  # fmt: skip


@pytest.mark.parity("google.failures")
@pytest.mark.parametrize("reason", FAILURES)
async def test_every_other_reason_to_finish_is_a_failure_that_says_why(reason):
    final = event({"candidates": [{"finishReason": reason, "finishMessage": "because  of\nit"}]})
    asked = await ask([chunk("part"), final])
    message = asked.message
    assert (message.stop_reason, message.raw_stop_reason, message.text) == ("error", reason, "part")
    assert str(message.error_message).endswith(f"({reason}: because of it)")
    assert asked.details["code"] == reason


@pytest.mark.parametrize("reason", ["MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL"])
async def test_a_slip_of_the_model_is_asked_again(reason):
    assert retryable((await ask([chunk("part", finish=reason)])).message)


@pytest.mark.parametrize("reason", ["SAFETY", "RECITATION", "PROHIBITED_CONTENT", "PUP_LIMITED_DISABLED"])
async def test_what_a_filter_has_stopped_is_not_asked_again(reason):
    assert not retryable((await ask([chunk("part", finish=reason)])).message)


@pytest.mark.parity("google.failures")
async def test_a_refused_prompt_says_why():
    feedback = {"blockReason": "PROHIBITED_CONTENT", "blockReasonMessage": "No."}
    asked = await ask([event({"promptFeedback": feedback, "usageMetadata": {"promptTokenCount": 3}})])
    message = asked.message
    assert (message.stop_reason, message.raw_stop_reason) == ("error", "PROHIBITED_CONTENT")
    assert "refused the prompt (PROHIBITED_CONTENT: No.)" in str(message.error_message)
    assert message.usage.input == 3
    assert not retryable(message)


async def test_feedback_that_refuses_nothing_is_passed_over():
    asked = await ask([event({"promptFeedback": {"safetyRatings": []}}), chunk("ok", finish="STOP")])
    assert asked.message.text == "ok"


@pytest.mark.fault("A11")
async def test_a11_a_stream_without_a_reason_to_finish_was_cut_off():
    asked = await ask([chunk("part")])
    assert (asked.message.stop_reason, asked.message.text) == ("error", "part")
    assert "ended without" in str(asked.message.error_message)
    assert retryable(asked.message)


async def test_what_comes_after_the_reason_to_finish_is_taken():
    asked = await ask([chunk("a", finish="STOP"), chunk("b"), event({"usageMetadata": USAGE})])
    assert asked.message.text == "ab"
    assert asked.message.usage.output == 12


@pytest.mark.fault("A01", "A02")
async def test_a01_a02_framing_of_other_servers():
    body = json.dumps({"candidates": [{"content": {"parts": [{"text": "ok"}]}, "finishReason": "STOP"}]})
    for stream in (
        f"data:{body}".encode(),
        f"data: {body}\r\rdata: [DONE]\r\r".encode(),
        f"\ufeff: hi\r\ndata: {body}\r\n\r\n".encode(),
    ):
        assert (await ask([stream])).message.text == "ok"


@pytest.mark.fault("A03")
async def test_a03_events_of_proxies_are_passed_over():
    asked = await ask(
        [
            b"event: ping\ndata: keep-alive\n\n",
            chunk("ok", finish="STOP"),
            b"data: [DONE]\n\n",
            b"event: done\ndata: x\n\n",
        ]
    )
    assert asked.message.text == "ok"


@pytest.mark.fault("A04", "A05")
@pytest.mark.parametrize("odd", ["null", "[]", "3", '"x"', "{}", '{"candidates":null}', '{"candidates":[]}',
                                 '{"candidates":[null]}', '{"candidates":[{}]}', '{"candidates":{}}',
                                 '{"candidates":[{"content":null}]}', '{"candidates":[{"content":{}}]}',
                                 '{"candidates":[{"content":{"parts":null}}]}', '{"error":null}',
                                 '{"candidates":[{"content":{"parts":[null,{},{"text":null}]}}]}',
                                 '{"candidates":[{"content":{"parts":[{"text":5},7,{"inlineData":{}}]}}]}',
                                 '{"candidates":[{"content":{"parts":[{"functionCall":null}]}}]}',
                                 '{"candidates":[{"content":{"parts":[{"functionCall":[]}]}}]}'])  # fmt: skip
async def test_a04_chunks_that_say_nothing_are_skipped(odd):
    asked = await ask([b"data: " + odd.encode() + b"\n\n", chunk("ok", finish="STOP")])
    assert asked.message.content == [TextContent("ok")]
    assert asked.message.stop_reason == "stop"


async def test_other_candidates_are_other_answers():
    other = {"candidates": [{"index": 1, "content": {"parts": [{"text": "no"}]}, "finishReason": "SAFETY"}]}
    asked = await ask([event(other), chunk("yes", finish="STOP")])
    assert (asked.message.text, asked.message.stop_reason) == ("yes", "stop")


async def test_an_answer_that_was_not_streamed():
    whole = {"candidates": [{"content": {"parts": [{"text": "a"}]}}]}
    last = {"candidates": [{"content": {"parts": [{"text": "b"}]}, "finishReason": "STOP"}]}
    for body, text in (([whole, last], "ab"), (last, "b")):
        said = json.dumps(body).encode()
        asked = await ask(refuse("200 OK", said, "content-type: application/json; charset=UTF-8"))
        assert (asked.message.text, asked.message.stop_reason) == (text, "stop")


QUOTA = "type.googleapis.com/google.rpc.QuotaFailure"
RETRY = "type.googleapis.com/google.rpc.RetryInfo"


def failure(code: int, status: str, message: str, *details: object) -> bytes:
    return json.dumps(
        {"error": {"code": code, "message": message, "status": status, "details": details}}
    ).encode()


@pytest.mark.parametrize("form", [b"%b", b"[%b]", b"[\n%b\n]\n"])
async def test_error_bodies_as_object_and_as_list(form):
    said = form % failure(400, "INVALID_ARGUMENT", "Bad thing.")
    asked = await ask(refuse("400 Bad Request", said, "content-type: application/json"))
    assert asked.message.error_message == "400 Bad thing."
    assert (asked.details["status"], asked.details["code"]) == (400, "INVALID_ARGUMENT")


async def test_an_error_inside_the_stream():
    asked = await ask([chunk("part"), b"data: " + failure(503, "UNAVAILABLE", "Overloaded") + b"\n\n"])
    assert (asked.message.stop_reason, asked.message.text) == ("error", "part")
    assert (asked.details["status"], asked.details["code"]) == (503, "UNAVAILABLE")
    assert retryable(asked.message)


LIMIT = "You exceeded your current quota, please check your plan and billing details. Please retry in 34.5s."


@pytest.mark.fault("D07")
@pytest.mark.parametrize(("header", "wait"), [((), 34500), (("retry-after: 9",), 9000)])
async def test_a_rate_limit_is_waited_for_as_long_as_it_says(header, wait):
    violation = {"quotaId": "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"}
    details = ({"@type": QUOTA, "violations": [violation]}, {"@type": RETRY, "retryDelay": "34.5s"})
    said = failure(429, "RESOURCE_EXHAUSTED", LIMIT, *details)
    asked = await ask(refuse("429 Too Many Requests", said, *header))
    assert retryable(asked.message) and not is_quota_exhausted(asked.message)
    assert delay_ms(asked.message, 1, RetryPolicy()) == wait


async def test_a_quota_of_a_day_is_exhausted_whatever_delay_is_named():
    violation = {"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}
    details = ({"@type": QUOTA, "violations": [violation]}, {"@type": RETRY, "retryDelay": "12s"})
    asked = await ask(refuse("429 x", failure(429, "RESOURCE_EXHAUSTED", LIMIT, *details)))
    assert is_quota_exhausted(asked.message)
    assert not retryable(asked.message)


async def test_too_long_a_prompt_is_an_overflow():
    text = "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576)."
    asked = await ask(refuse("400 Bad Request", failure(400, "INVALID_ARGUMENT", text)))
    assert is_overflow(asked.message, None)


async def test_no_key_in_an_error():
    said = failure(400, "INVALID_ARGUMENT", f"API key {KEY} not valid.")
    for serve in (refuse("400 Bad Request", said), [b"data: " + said + b"\n\n"]):
        asked = await ask(serve)
        assert asked.message.stop_reason == "error"
        assert KEY not in str(asked.message.to_json())


async def test_a_body_that_is_something_else_is_quoted():
    asked = await ask(refuse("200 OK", b"<html><title>Log in</title></html>", "content-type: text/html"))
    assert "'Log in'" in str(asked.message.error_message)
    asked = await ask(refuse("200 OK", b"", "content-type: text/event-stream"))
    assert retryable(asked.message)


async def test_an_aborted_answer_keeps_what_came_and_lets_go_of_the_connection():
    controller = AbortController()

    def serve(link: Link) -> None:
        link.request()
        link.head("content-type: text/event-stream", "transfer-encoding: chunked")
        link.chunk(chunk("part", usage={"promptTokenCount": 9}))
        link.wait_gone()

    def see(event):
        if event.type == "text_delta":
            controller.abort()

    asked = await ask(serve, options=StreamOptions(signal=controller.signal), see=see)
    assert (asked.message.stop_reason, asked.message.text) == ("aborted", "part")
    assert asked.message.usage.input == 9


async def test_a_connection_that_breaks_after_the_reason_to_finish_has_done_no_harm():
    def serve(link: Link) -> None:
        link.request()
        link.head("content-type: text/event-stream", "transfer-encoding: chunked")
        link.chunk(chunk("whole", finish="STOP"))
        link.reset()

    asked = await ask(serve)
    assert (asked.message.text, asked.message.stop_reason) == ("whole", "stop")


@settings(max_examples=samples(300, 30), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
async def test_hostile_chunks_never_escape(data):
    """Whatever JSON comes: no hang, no loose exception, always a legal stream."""
    leaf = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
    names = st.sampled_from(["candidates", "content", "parts", "text", "thought", "thoughtSignature", "functionCall",
                             "name", "args", "id", "finishReason", "usageMetadata", "promptTokenCount", "index",
                             "promptFeedback", "blockReason", "error", "message", "code"])  # fmt: skip
    tree = st.recursive(
        leaf,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4),
        max_leaves=12,
    )
    shaped = st.builds(
        lambda parts, more: {"candidates": [{"content": {"parts": parts}, **more}]},
        st.lists(tree, max_size=3),
        st.dictionaries(names, tree, max_size=2),
    )
    chunks = data.draw(st.lists(st.one_of(tree, shaped), max_size=4))
    asked = await ask([*map(event, chunks), chunk("end", finish="STOP")])
    assert asked.message.stop_reason in ("stop", "toolUse", "length", "error")
    json.dumps(asked.message.to_json())


def test_the_pro_of_these_tests_is_a_new_model():
    assert PRO.startswith("gemini-3")
