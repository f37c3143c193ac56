"""How the events of a Messages answer become one message, whatever servers and proxies do to them."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cantle_ai.apis.anthropic_messages_answer import MessageReader
from cantle_ai.builder import AnswerBuilder
from cantle_ai.content import TextContent, ThinkingContent, ToolCall
from cantle_ai.context import Context
from cantle_ai.errors import ProviderError
from cantle_ai.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from cantle_ai.model import StreamOptions
from cantle_ai.overflow import is_overflow
from cantle_ai.retry import retryable
from cantle_ai.sse import ServerSentEvent
from cantle_ai.usage import Price
from packages.ai.tests.apis.asking import refuse
from packages.ai.tests.apis.messages import ask, block, delta, end, event, said, start, stop
from packages.ai.tests.http_peer import Link
from tests.support.samples import samples


async def test_a_plain_answer():
    asked = await ask([start(input_tokens=10, output_tokens=1), said("hi"), end()])
    message = asked.message
    assert message.content == [TextContent("hi")]
    assert (message.stop_reason, message.raw_stop_reason, message.response_id) == (
        "stop",
        "end_turn",
        "msg_1",
    )
    assert (message.usage.input, message.usage.output, message.usage.total_tokens) == (10, 5, 15)
    assert message.response_model is None
    assert asked.types == ["start", "text_start", "text_delta", "text_end", "done"]


async def test_the_model_that_answered_is_kept_when_it_is_another():
    asked = await ask([start(model="m-20260101"), said("hi"), end()])
    assert asked.message.response_model == "m-20260101"


# --- thinking


async def test_thinking_is_kept_with_its_signature():
    asked = await ask(
        [
            start(),
            block(0, "thinking", thinking="", signature=""),
            delta(0, "thinking_delta", thinking="Let me "),
            delta(0, "thinking_delta", thinking="see."),
            delta(0, "signature_delta", signature="c2ln"),
            stop(0),
            said("Yes.", 1),
            end(),
        ]
    )
    assert asked.message.content == [ThinkingContent("Let me see.", signature="c2ln"), TextContent("Yes.")]
    assert asked.types[1:5] == ["thinking_start", "thinking_delta", "thinking_delta", "thinking_end"]


@pytest.mark.fault("C02")
async def test_c02_a_signature_without_text_is_kept():
    """What a model sends that is told to leave its thinking out."""
    asked = await ask(
        [start(), block(0, "thinking", thinking=""), delta(0, "signature_delta", signature="c2ln"), stop(0), said("x", 1), end()]
    )  # fmt: skip
    assert asked.message.content[0] == ThinkingContent("", signature="c2ln")


@pytest.mark.parametrize(
    ("pieces", "whole"), [(["AB", "CD"], "ABCD"), (["AB", "AB"], "AB"), (["AB", "ABCD"], "ABCD")]
)
async def test_a_signature_may_come_in_pieces_or_twice(pieces, whole):
    signed = [delta(0, "signature_delta", signature=piece) for piece in pieces]
    asked = await ask([start(), block(0, "thinking", thinking="hm"), *signed, stop(0), said("x", 1), end()])
    assert asked.message.content[0] == ThinkingContent("hm", signature=whole)


async def test_thinking_without_a_signature_has_none():
    asked = await ask(
        [start(), block(0, "thinking", thinking="hm", signature=""), stop(0), said("x", 1), end()]
    )
    assert asked.message.content[0] == ThinkingContent("hm")


@pytest.mark.fault("A13")
async def test_a13_redacted_thinking_is_kept_as_it_came():
    asked = await ask([start(), block(0, "redacted_thinking", data="b3BhcXVl"), stop(0), said("x", 1), end()])
    hidden = asked.message.content[0]
    assert hidden == ThinkingContent("", signature="b3BhcXVl", redacted=True)
    assert hidden.to_json()["redacted"] is True


# --- tool calls


async def test_calls_that_grow_by_turns():
    asked = await ask(
        [
            start(),
            block(0, "tool_use", id="toolu_1", name="read", input={}),
            block(1, "tool_use", id="toolu_2", name="edit", input={}),
            delta(0, "input_json_delta", partial_json='{"path": '),
            delta(1, "input_json_delta", partial_json='{"n": 1'),
            delta(0, "input_json_delta", partial_json='"a"}'),
            stop(0),
            delta(1, "input_json_delta", partial_json="}"),
            stop(1),
            end("tool_use"),
        ]
    )
    assert asked.message.content == [
        ToolCall("toolu_1", "read", {"path": "a"}),
        ToolCall("toolu_2", "edit", {"n": 1}),
    ]
    assert asked.message.stop_reason == "toolUse"
    assert asked.types.count("toolcall_end") == 2


@pytest.mark.parametrize("given", [{"path": "a"}, '{"path": "a"}'])
async def test_arguments_that_come_with_the_start_are_taken(given):
    asked = await ask(
        [start(), block(0, "tool_use", id="t", name="read", input=given), stop(0), end("tool_use")]
    )
    assert asked.message.tool_calls[0].arguments == {"path": "a"}


async def test_arguments_that_come_with_the_start_and_in_pieces_are_taken_once():
    asked = await ask(
        [
            start(),
            block(0, "tool_use", id="t", name="read", input={"path": "old"}),
            delta(0, "input_json_delta", partial_json='{"path": "a"}'),
            stop(0),
            end("tool_use"),
        ]
    )
    assert asked.message.tool_calls[0].arguments == {"path": "a"}


async def test_a_call_without_arguments():
    opened = [
        block(0, "tool_use", id="t", name="go", input={}),
        delta(0, "input_json_delta", partial_json=""),
    ]
    asked = await ask([start(), *opened, stop(0), end("tool_use")])
    assert asked.message.content == [ToolCall("t", "go", {})]


async def test_calls_end_the_turn_whatever_the_reason_says():
    call = block(0, "tool_use", id="t", name="go", input={"a": 1})
    asked = await ask([start(), call, stop(0), end("end_turn")])
    assert (asked.message.stop_reason, asked.message.raw_stop_reason) == ("toolUse", "end_turn")


@pytest.mark.parametrize("given", ["0", "", None])
async def test_ids_that_calls_have_already_are_replaced(given):
    """Some servers number the calls of each answer from 0."""
    history: list[Message] = [
        UserMessage("a", timestamp=1),
        AssistantMessage([ToolCall("0", "go", {})], "anthropic-messages", "p", "m", stop_reason="toolUse"),
        ToolResultMessage("0", "go", [TextContent("x")]),
    ]
    calls = [block(n, "tool_use", id=given, name="go", input={}) for n in range(2)]
    asked = await ask([start(), *calls, end("tool_use")], context=Context("", history))
    ids = [call.id for call in asked.message.tool_calls]
    assert len({*ids, "0", ""}) == 4


# --- reasons to stop


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("pause_turn", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("tool_use", "toolUse"),
        ("something_new", "stop"),
    ],
)
async def test_reasons_to_stop(raw, reason):
    asked = await ask([start(), said("hi"), end(raw)])
    assert (asked.message.stop_reason, asked.message.raw_stop_reason) == (reason, raw)


@pytest.mark.parametrize(
    ("details", "text"),
    [
        (None, "The model refused to answer"),
        ({"type": "refusal", "category": None, "explanation": None}, "The model refused to answer"),
        (
            {"type": "refusal", "category": "cyber", "explanation": "No exploits."},
            "The model refused to answer (cyber): No exploits.",
        ),
        ({"category": 3, "explanation": " "}, "The model refused to answer"),
        (
            {"explanation": "Server busy, try again later"},
            "The model refused to answer: Server busy, try again later",
        ),
    ],
)
async def test_a_refusal_is_an_error_that_says_why(details, text):
    asked = await ask([start(), said("I"), end("refusal", stop_details=details)])
    message = asked.message
    assert (message.stop_reason, message.raw_stop_reason, message.error_message) == ("error", "refusal", text)
    assert message.content == [TextContent("I")]
    assert asked.details["code"] == "refusal"
    assert not retryable(message)


# --- usage


@pytest.mark.fault("D02")
async def test_d02_writes_for_an_hour_have_their_own_price():
    price = Price(input=3, output=15, cache_read=0.3, cache_write=3.75)
    usage: dict[str, Any] = {
        "input_tokens": 1_000_000,
        "cache_read_input_tokens": 1_000_000,
        "cache_creation_input_tokens": 3_000_000,
        "cache_creation": {"ephemeral_5m_input_tokens": 1_000_000, "ephemeral_1h_input_tokens": 2_000_000},
    }
    asked = await ask([start(**usage), said("x"), end(usage={"output_tokens": 1_000_000})], price=price)
    counted = asked.message.usage
    assert (counted.cache_write, counted.cache_write_1h) == (3_000_000, 2_000_000)
    assert counted.cost.cache_write == pytest.approx(3.75 + 2 * 6)
    assert counted.cost.total == pytest.approx(3 + 15 + 0.3 + 3.75 + 12)


async def test_later_counts_replace_earlier_ones_and_missing_ones_stay():
    asked = await ask(
        [
            start(
                input_tokens=10, output_tokens=1, cache_read_input_tokens=7, cache_creation_input_tokens=None
            ),
            said("x"),
            end(
                usage={
                    "input_tokens": 12,
                    "output_tokens": 9,
                    "cache_read_input_tokens": None,
                    "output_tokens_details": {"thinking_tokens": 4},
                }
            ),
        ]
    )
    counted = asked.message.usage
    assert (counted.input, counted.output, counted.cache_read, counted.reasoning) == (12, 9, 7, 4)
    assert counted.total_tokens == 28


async def test_counts_of_odd_types_are_read():
    asked = await ask(
        [start(input_tokens="10", output_tokens=1.0), said("x"), end(usage={"output_tokens": "7"})]
    )
    assert (asked.message.usage.input, asked.message.usage.output) == (10, 7)


async def test_writes_that_are_only_told_by_kind_are_counted():
    kinds = {"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 4}
    asked = await ask([start(input_tokens=1, cache_creation=kinds), said("x"), end()])
    assert (asked.message.usage.cache_write, asked.message.usage.cache_write_1h) == (7, 4)


# --- what servers and proxies do


@pytest.mark.fault("A03")
@pytest.mark.parametrize(
    "odd",
    [
        b"event: done\ndata: [DONE]\n\n",
        b"data: [DONE]\n\n",
        b"event: ping\ndata: {oops\n\n",
        b'event: ping\ndata: {"type": "ping"}\n\n',
        b'event: billing\ndata: {"cost": 1}\n\n',
        b'data: {"type": "something_new", "index": 0}\n\n',
        b"data: null\n\n",
        b"data: []\n\n",
        b": comment\n\n",
        b"data:\n\n",
        event("content_block_delta", index=0, delta={"type": "new_delta", "text": "no"}),
        event("content_block_delta", index=0),
        event("content_block_start", index=7),
        event("message_start"),
        event("message_delta"),
    ],
)
async def test_a03_events_that_are_not_known_are_passed_over(odd):
    opened = block(0, "text", text="") + delta(0, "text_delta", text="o")
    closed = delta(0, "text_delta", text="k") + stop(0)
    asked = await ask([odd, start(), odd, opened, odd, closed, odd, end()])
    assert asked.message.content == [TextContent("ok")]
    assert asked.message.stop_reason == "stop"


async def test_blocks_of_the_servers_own_tools_are_passed_over():
    asked = await ask(
        [
            start(),
            block(0, "server_tool_use", id="srvtoolu_1", name="web_search", input={}),
            delta(0, "input_json_delta", partial_json='{"query": "x"}'),
            stop(0),
            block(1, "web_search_tool_result", tool_use_id="srvtoolu_1", content=[]),
            stop(1),
            block(2, "text", text=""),
            delta(2, "citations_delta", citation={"type": "char_location"}),
            delta(2, "text_delta", text="found"),
            stop(2),
            end(),
        ]
    )
    assert asked.message.content == [TextContent("found")]
    assert asked.message.stop_reason == "stop"


async def test_events_without_names_are_read():
    named = b"".join([start(), said("hi"), end()])
    lines = [line for line in named.split(b"\n") if not line.startswith(b"event:")]
    asked = await ask([b"\n".join(lines)])
    assert asked.message.text == "hi"


async def test_starts_and_stops_that_are_left_out():
    asked = await ask(
        [
            delta(0, "thinking_delta", thinking="hm"),
            delta(1, "text_delta", text="a"),
            delta(1, "text_delta", text="b"),
            delta(2, "input_json_delta", partial_json="{}"),
            end(),
        ]
    )
    assert asked.message.content == [ThinkingContent("hm"), TextContent("ab")]


async def test_an_index_that_is_used_again_is_a_block_of_its_own():
    asked = await ask([start(), block(0, "text", text="a"), block(0, "text", text="b"), end()])
    assert asked.message.content == [TextContent("a"), TextContent("b")]


async def test_deltas_of_another_kind_than_their_block_are_passed_over():
    opened = block(0, "text", text="a"), delta(0, "thinking_delta", thinking="no")
    asked = await ask([start(), *opened, delta(0, "signature_delta", signature="no"), end()])
    assert asked.message.content == [TextContent("a")]


async def test_fields_of_odd_types_are_read_as_far_as_they_go():
    odd = event("content_block_start", index="0", content_block={"type": "text", "text": None})
    asked = await ask([start(), odd, event("content_block_delta", index=0.0, delta={"type": "text_delta", "text": "x", "stop_reason": 3}), end()])  # fmt: skip
    assert asked.message.content == [TextContent("x")]


async def test_an_answer_that_was_not_streamed():
    body = {
        "type": "message",
        "id": "msg_1",
        "model": "m",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
            {"type": "text", "text": "hi"},
            None,
            {"type": "tool_use", "id": "t", "name": "go", "input": {"a": 1}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 3, "output_tokens": 4},
    }
    asked = await ask(refuse("200 OK", json.dumps(body).encode(), "content-type: application/json"))
    assert asked.message.content == [
        ThinkingContent("hm", signature="c2ln"),
        TextContent("hi"),
        ToolCall("t", "go", {"a": 1}),
    ]
    assert (asked.message.stop_reason, asked.message.usage.total_tokens) == ("toolUse", 7)


# --- failures


@pytest.mark.parametrize(
    ("kind", "again"),
    [
        ("overloaded_error", True),
        ("rate_limit_error", True),
        ("api_error", True),
        ("timeout_error", True),
        ("invalid_request_error", False),
        ("authentication_error", False),
    ],
)
async def test_an_error_inside_the_stream(kind, again):
    fault = event("error", error={"type": kind, "message": "It did not work"}, request_id="req_1")
    asked = await ask([start(input_tokens=9), said("half"), fault, said("more", 1), end()])
    message = asked.message
    assert (message.stop_reason, message.error_message) == ("error", "It did not work")
    assert message.content == [TextContent("half")]
    assert asked.details["code"] == kind
    assert retryable(message) is again


async def test_an_error_in_an_answer_that_was_not_streamed():
    body = b'{"type": "error", "error": {"type": "overloaded_error", "message": "Busy"}}'
    asked = await ask(refuse("200 OK", body, "content-type: application/json"))
    assert (asked.message.error_message, asked.details["code"]) == ("Busy", "overloaded_error")


async def test_a_prompt_that_is_too_long():
    body = b'{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 2 tokens > 1 maximum"}}'
    asked = await ask(refuse("400 Bad Request", body, "content-type: application/json"))
    assert is_overflow(asked.message, None)


@pytest.mark.parametrize(
    "events",
    [
        [start(), block(0, "text", text="half")],
        [start(), said("half")],
        [start(), said("half"), event("message_stop")],
        [start(), said("half"), end(None)],
    ],
)
async def test_a_stream_without_a_stop_reason_was_cut_off(events):
    asked = await ask(events)
    assert asked.message.stop_reason == "error"
    assert "without a stop reason" in (asked.message.error_message or "")
    assert asked.message.text == "half"
    assert asked.details["kind"] == "network"
    assert retryable(asked.message)


async def test_the_last_event_may_be_missing():
    whole = [start(), said("hi"), event("message_delta", delta={"stop_reason": "end_turn"})]
    asked = await ask(whole)
    assert (asked.message.stop_reason, asked.message.text) == ("stop", "hi")


async def test_a_connection_that_breaks_after_the_stop_reason_has_done_no_harm():
    def serve(link: Link) -> None:
        link.request()
        link.head("content-type: text/event-stream", "transfer-encoding: chunked")
        link.chunk(start() + said("hi") + event("message_delta", delta={"stop_reason": "end_turn"}))
        link.reset()

    asked = await ask(serve)
    assert (asked.message.stop_reason, asked.message.text) == ("stop", "hi")


async def test_a_connection_that_falls_silent_after_the_stop_reason_has_done_no_harm():
    def serve(link: Link) -> None:
        link.request()
        link.head("content-type: text/event-stream", "transfer-encoding: chunked")
        link.chunk(start() + said("hi") + event("message_delta", delta={"stop_reason": "end_turn"}))
        link.wait_gone()

    asked = await ask(serve, options=StreamOptions(timeout=0.2))
    assert (asked.message.stop_reason, asked.message.text) == ("stop", "hi"), asked.message.error_message


async def test_an_endpoint_of_another_api_is_not_taken_for_an_answer():
    chunk = b'data: {"id": "c", "choices": [{"delta": {"content": "hi"}}]}\n\n'
    asked = await ask(refuse("200 OK", chunk, "content-type: text/plain"))
    assert asked.message.stop_reason == "error"
    assert "does not speak this API" in (asked.message.error_message or "")


async def test_bytes_that_are_no_json_are_quoted():
    asked = await ask([start(), b"event: content_block_delta\ndata: {oops\n\n"])
    assert asked.message.stop_reason == "error"
    assert asked.details["kind"] == "protocol"


# --- anything at all

_KINDS = ["message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta",
          "message_stop", "ping", "error", "new", None, 3]  # fmt: skip
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 10**20) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
_PART = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "thinking", "redacted_thinking", "tool_use", "text_delta", "thinking_delta",
                              "signature_delta", "input_json_delta", "new", None])},
    optional={name: _JSON | st.text(max_size=5) for name in
              ("text", "thinking", "signature", "partial_json", "id", "name", "input", "data", "stop_reason")},
)  # fmt: skip
_EVENT = st.fixed_dictionaries(
    {"type": st.sampled_from(_KINDS)},
    optional={
        "index": st.integers(0, 2) | _JSON,
        "delta": _PART | _JSON,
        "content_block": _PART | _JSON,
        "message": st.fixed_dictionaries({}, optional={"id": _JSON, "model": _JSON, "usage": _JSON, "content": _JSON}),
        "usage": st.dictionaries(st.sampled_from(["input_tokens", "output_tokens", "cache_creation"]), _JSON) | _JSON,
        "error": _JSON,
    },
)  # fmt: skip


@settings(max_examples=samples(1500, 60), deadline=None)
@given(st.lists(_EVENT | _JSON, max_size=12), st.booleans())
def test_whatever_comes_ends_in_a_message_or_in_a_named_error(events, whole):
    builder = AnswerBuilder(api="anthropic-messages", provider="p", model="m")
    reader = MessageReader(builder, "m", Context())
    try:
        for value in events:
            data = json.dumps(value).encode()
            if whole:
                reader.whole(data)
            elif not reader.done:
                reader.event(ServerSentEvent(None, data))
        reader.end()
    except (ProviderError, ValueError):
        builder.fail("failed")
    assert builder.finished
    json.dumps(builder.message.to_json())
