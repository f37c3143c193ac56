"""Faults of framing and of putting an answer together, each for every wire API."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any

import pytest

from cantle_ai.content import ThinkingContent, ToolCall
from cantle_ai.context import Context
from cantle_ai.events import AssistantMessageEvent, ToolCallStart
from cantle_ai.messages import AssistantMessage
from cantle_ai.model import StreamOptions
from cantle_ai.retry import retryable
from cantle_ai.testing.checker import checked
from cantle_ai.testing.response import Response, response_of
from packages.ai.tests.conformance.cases import SIGNATURE, call, text, thinking
from packages.ai.tests.conformance.column import Column, columns
from packages.ai.tests.conformance.lab import READ, user
from packages.ai.tests.fuzz.replayed import Replayed, runtime
from packages.ai.tests.fuzz.wires import wire_of

ALL = columns()
LINES = [column for column in ALL if column.api != "bedrock-converse-stream"]
"""Those whose events are lines."""
WHOLE = response_of(
    {"content": [thinking("hm 🤔"), text("said 漢"), call("a", id="call0abcd"), call("b", id="call1abcd")]}
)
Change = Callable[[list[bytes]], list[bytes]]


def each(of: Sequence[Column]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("column", of, ids=[column.api for column in of])


async def replay(
    column: Column,
    response: Response = WHOLE,
    change: Change = lambda events: events,
    *,
    cuts: Sequence[int] = (1 << 16,),
    newline: str = "\n",
) -> tuple[list[AssistantMessageEvent], AssistantMessage]:
    """Events and message of one answer, whose wire events were changed."""
    transport = Replayed(column.api, [response], change=change, cuts=cuts, newline=newline)
    models, model = runtime(column, transport)
    stream = checked(models.stream(model, Context("", [user("Hi")], [READ]), StreamOptions()))
    events = [event async for event in stream]
    return events, await stream.result()


def assert_whole(message: AssistantMessage) -> None:
    assert message.stop_reason == "toolUse", message.error_message
    thoughts = [block.thinking for block in message.content if isinstance(block, ThinkingContent)]
    assert (thoughts, message.text) == (["hm 🤔"], "said 漢")
    assert [each.arguments for each in message.tool_calls] == [{"path": "a"}, {"path": "b"}]


@pytest.mark.fault("A01")
@each(LINES)
async def test_a01_the_last_event_needs_no_blank_line(column: Column):
    def bare(events: list[bytes]) -> list[bytes]:
        return [*events[:-1], events[-1].rstrip()]

    _, message = await replay(column, change=bare)
    assert_whole(message)


@pytest.mark.fault("A02")
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("cut", [1, 7, 1 << 16])
@each(LINES)
async def test_a02_every_line_end_ends_a_line(column: Column, newline: str, cut: int):
    _, message = await replay(column, newline=newline, cuts=[cut])
    assert_whole(message)


@pytest.mark.fault("A03")
@pytest.mark.parametrize(
    "event",
    [b"event: done\ndata: {}\n\n", b"event: ping\ndata: ping\n\n", b": hello\n\n", b"id: 7\nretry: 1\n\n"],
)
@each(LINES)
async def test_a03_what_proxies_put_in_between_is_passed_over(column: Column, event: bytes):
    if event.startswith(b"event: ping") and column.api not in NAMED:
        pytest.skip("its events have no names, so that nothing tells this one from a broken one")

    def between(events: list[bytes]) -> list[bytes]:
        return [part for said in events for part in (event, said)]

    _, message = await replay(column, change=between)
    assert_whole(message)


NAMED = ("openai-responses", "azure-openai-responses", "openai-codex-responses", "anthropic-messages")


@pytest.mark.fault("A04")
@pytest.mark.parametrize("said", ["null", "{}"])
@each(ALL)
async def test_a04_an_event_that_says_nothing_is_passed_over(column: Column, said: str):
    wire = wire_of(column.api)

    def between(events: list[bytes]) -> list[bytes]:
        return [part for event in events for part in (wire.write(event, said), event)]

    _, message = await replay(column, change=between)
    assert_whole(message)


@pytest.mark.fault("A05")
@each(ALL)
async def test_a05_fields_that_are_null_say_nothing(column: Column):
    """What is not known to be there may as well be null."""
    wire = wire_of(column.api)
    extra = dict.fromkeys(
        ("content", "usage", "text", "delta", "refusal", "reasoning", "tool_calls", "novelty")
    )

    def padded(event: bytes) -> bytes:
        said = wire.read(event)
        value = None if said is None or not said.startswith("{") else json.loads(said)
        return event if value is None else wire.write(event, json.dumps(_padded(value, extra)))

    _, message = await replay(column, change=lambda events: [padded(event) for event in events])
    assert_whole(message)


def _padded(value: Any, extra: dict[str, None]) -> Any:
    """Each object gets the fields that it lacks, as null; objects that the model made are left alone."""
    if isinstance(value, list):
        return [_padded(item, extra) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {
        name: item if name in ("args", "input", "arguments") else _padded(item, extra)
        for name, item in value.items()
    }
    return {**extra, **kept}


@pytest.mark.fault("A06")
@each(
    [
        column
        for column in ALL
        if column.api not in ("google-generative-ai", "google-vertex", "mistral-conversations")
    ]
)
async def test_a06_blocks_that_come_in_turn_are_kept_apart(column: Column):
    """Where events say which block they are of. Gemini's and Mistral's do not, and never come so."""
    wire = wire_of(column.api)

    def block_of(event: bytes) -> object:
        said = wire.read(event)
        value = json.loads(said) if said is not None and said.startswith("{") else {}
        delta = (value.get("choices") or [{}])[0].get("delta") or {}
        if delta.get("tool_calls"):
            return ("call", delta["tool_calls"][0]["index"])
        spoken = next((name for name in ("content", "reasoning_content") if delta.get(name)), None)
        indexes = (value.get(name) for name in ("output_index", "index", "contentBlockIndex"))
        return spoken or next((index for index in indexes if index is not None), None)

    def in_turn(events: list[bytes]) -> list[bytes]:
        blocks: dict[object, list[bytes]] = {}
        for event in events:
            blocks.setdefault(block_of(event), []).append(event)
        others = blocks.pop(None)
        assert len(blocks) == 4
        told = [event for row in zip_longest(*blocks.values()) for event in row if event is not None]
        first = next(place for place, event in enumerate(events) if block_of(event) is not None)
        return [*events[:first], *told, *others[first:]]

    _, message = await replay(column, change=in_turn)
    assert_whole(message)


@pytest.mark.fault("A09")
@each(ALL)
async def test_a09_a_message_holds_nothing_of_its_streaming(column: Column):
    _, message = await replay(column)
    stored = message.to_json()
    assert json.loads(json.dumps(stored)) == stored
    known = {
        "text": {"type", "text", "textSignature"},
        "thinking": {"type", "thinking", "thinkingSignature", "redacted"},
        "toolCall": {"type", "id", "name", "arguments", "thoughtSignature", "namespace"},
    }
    for block in message.content:
        assert not block.to_json().keys() - known[block.type]
        assert not isinstance(block, ToolCall) or block.invalid_arguments is None
    assert not message.wire


@pytest.mark.fault("A11")
@each(ALL)
async def test_a11_a_stream_that_ends_before_its_last_word_is_an_error_that_is_tried_again(column: Column):
    transport = Replayed(column.api, [WHOLE])
    models, model = runtime(column, transport)
    told: list[int] = []
    transport.change = lambda events: told.append(len(events)) or events
    await models.complete(model, Context("", [user("Hi")], [READ]))
    for kept in range(told[0] - transport.ending):
        _, message = await replay(column, change=lambda events, kept=kept: events[:kept])  # type: ignore[misc]
        assert message.stop_reason == "error", f"{kept} of {told[0]} events"
        assert message.error_message and retryable(message), message.error_message


@pytest.mark.fault("A13")
@each([column for column in ALL if "redacted thinking" not in column.without])
async def test_a13_redacted_thinking_is_kept(column: Column):
    hidden = response_of({"content": [thinking("", redacted=True), text("said")]})
    _, message = await replay(column, hidden)
    first = message.content[0]
    assert isinstance(first, ThinkingContent) and SIGNATURE in str(first.signature)


@pytest.mark.fault("A15")
@each(ALL)
async def test_a15_the_start_of_a_call_has_its_id_and_name(column: Column):
    events, message = await replay(column)
    starts = [event for event in events if isinstance(event, ToolCallStart)]
    assert [(start.id, start.tool_name) for start in starts] == [
        (made.id, "read") for made in message.tool_calls
    ]
    assert len({start.id for start in starts}) == 2 and all(start.id for start in starts)
