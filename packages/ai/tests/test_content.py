"""Blocks keep what they are given, and grow at the cost of what is added."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cantle_ai import content
from cantle_ai.codec import Json, JsonObject, decode_json, encode_json
from cantle_ai.content import (
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    UnknownContent,
    content_from_json,
)
from packages.ai.tests.json_values import normal, objects, text, values
from tests.support.samples import samples

MANY = settings(max_examples=samples(2000, 60), deadline=None)

BLOCKS: list[tuple[JsonObject, type]] = [
    ({"type": "text", "text": "a", "textSignature": "s"}, TextContent),
    ({"type": "thinking", "thinking": "t", "thinkingSignature": "s", "redacted": True}, ThinkingContent),
    ({"type": "image", "data": "AA==", "mimeType": "image/png"}, ImageContent),
    (
        {
            "type": "toolCall",
            "id": "1",
            "name": "read",
            "arguments": {"path": "a", "n": [1, None]},
            "thoughtSignature": "s",
            "namespace": "mcp",
            "invalidArguments": "{",
        },
        ToolCall,
    ),
]


@pytest.mark.parity("messages.content-blocks")
@pytest.mark.parametrize(("raw", "kind"), BLOCKS)
def test_each_kind_comes_back_as_it_was(raw: JsonObject, kind: type) -> None:
    block = content_from_json(raw)
    assert type(block) is kind
    assert encode_json(block.to_json()) == encode_json(raw)


@MANY
@given(st.sampled_from([raw for raw, _ in BLOCKS]), objects, st.data())
def test_unknown_fields_and_odd_values_survive(
    raw: JsonObject, more: JsonObject, data: st.DataObject
) -> None:
    key = data.draw(st.sampled_from(sorted(raw)))
    changed: JsonObject = {**more, **raw, key: data.draw(values)}
    block = content_from_json(changed)
    expected = {k: v for k, v in changed.items() if k != "redacted" or v is not False}
    assert normal(block.to_json()) == normal(expected)


@MANY
@given(values)
def test_anything_at_all_is_a_block(raw: Json) -> None:
    block = content_from_json(raw)
    assert normal(block.to_json()) == normal(raw)


@pytest.mark.parametrize(
    "raw", [{"type": "audio", "data": "x"}, {"type": []}, {}, [], None, 5, {"type": "text"}]
)
def test_other_kinds_are_kept_as_they_were(raw: Json) -> None:
    block = content_from_json(raw)
    assert type(block) is UnknownContent
    assert block.to_json() == raw


def test_an_odd_lesser_field_does_not_cost_the_text() -> None:
    block = content_from_json({"type": "text", "text": "a", "textSignature": {"v": 1}})
    assert isinstance(block, TextContent) and block.text == "a" and block.signature is None
    assert block.to_json()["textSignature"] == {"v": 1}


def test_blocks_are_equal_when_their_json_is() -> None:
    assert TextContent("ab") == content_from_json({"type": "text", "text": "ab"})
    assert TextContent("ab") != TextContent("ab", signature="s")
    assert TextContent("ab") != ThinkingContent("ab")
    assert "ab" in repr(TextContent("ab"))
    assert repr(ImageContent("A" * 5000, "image/png")) == "ImageContent('image/png', 5000 base64 characters)"


@MANY
@given(st.lists(text))
def test_parts_join_to_the_text(parts: list[str]) -> None:
    block, thought = TextContent(), ThinkingContent()
    for part in parts:
        block.append(part)
        thought.append(part)
    assert block.text == thought.thinking == "".join(parts)


def test_adding_joins_nothing_and_reading_joins_once() -> None:
    """Counted in parts, because time would prove nothing: each part is moved once however many there are."""
    block = TextContent()
    for _ in range(1000):
        block.append("x")
    assert len(block._parts) == 1000
    assert len(block.text) == 1000 and len(block._parts) == 1
    first = block.text
    assert block.text is first


class Parses:
    """Counts what the partial view of tool arguments parses."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sizes: list[int] = []
        parse = content._partial_object

        def counted(text: str, previous: JsonObject) -> JsonObject:
            self.sizes.append(len(text))
            return parse(text, previous)

        monkeypatch.setattr(content, "_partial_object", counted)


def test_a08_a_long_argument_is_parsed_at_each_doubling_and_never_per_delta(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parses = Parses(monkeypatch)
    text = json.dumps({"path": "a", "content": "y" * 400_000})
    call = ToolCall("1", "write")
    for start in range(0, len(text), 10):
        call.append(text[start : start + 10])
        view = call.arguments
        assert call.arguments is view
    long = [size for size in parses.sizes if size > 4096]
    assert 1 <= len(long) <= math.log2(len(text) / 4096) + 1
    assert sum(long) <= 2 * len(text)
    assert len(parses.sizes) - len(long) <= 4096 / 10 + 1
    call.finish()
    assert call.arguments == decode_json(text)
    assert parses.sizes[-1] < len(text)


def test_arguments_that_nobody_reads_are_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parses = Parses(monkeypatch)
    call = ToolCall("1", "write")
    for part in ['{"a"', ": [1, ", "2]", "}"]:
        call.append(part)
    call.finish()
    assert parses.sizes == []
    assert call.arguments == {"a": [1, 2]}


def test_a_partial_view_grows() -> None:
    call = ToolCall("1", "write")
    seen = []
    for part in ['{"path": "a.', 'txt", "content": "l', "ine\\n", 'x"}']:
        call.append(part)
        seen.append(call.arguments)
    assert seen == [
        {"path": "a."},
        {"path": "a.txt", "content": "l"},
        {"path": "a.txt", "content": "line\n"},
        {"path": "a.txt", "content": "line\nx"},
    ]


@MANY
@given(objects, st.lists(st.integers(1, 7), min_size=1))
def test_finished_arguments_are_the_object_that_came(arguments: JsonObject, sizes: list[int]) -> None:
    whole = json.dumps(arguments)
    call = ToolCall("1", "t")
    place = 0
    while place < len(whole):
        size = sizes[place % len(sizes)]
        call.append(whole[place : place + size])
        place += size
        assert isinstance(call.arguments, dict)
    call.finish()
    assert call.invalid_arguments is None
    assert normal(call.arguments) == normal(arguments)


@MANY
@given(text)
def test_any_text_at_all_gives_an_object(raw: str) -> None:
    call = ToolCall("1", "t")
    call.append(raw)
    assert isinstance(call.arguments, dict)
    call.finish()
    assert isinstance(call.arguments, dict)
    assert call.arguments_text == ""
    assert call.invalid_arguments in (None, raw)


@pytest.mark.parametrize("raw", ["[1]", '{"a": 1', "null", "5", '{"a": 1} x', "[" * 100_000])
def test_arguments_that_are_no_object_are_kept_as_text(raw: str) -> None:
    call = ToolCall("1", "t")
    call.append(raw)
    call.finish()
    assert (call.arguments, call.invalid_arguments) == ({}, raw)
    again = content_from_json(decode_json(encode_json(call.to_json())))
    assert again == call


@pytest.mark.parametrize("raw", ["", " ", "\n"])
def test_no_text_means_no_arguments(raw: str) -> None:
    call = ToolCall("1", "t")
    call.append(raw)
    call.finish()
    call.finish()
    assert (call.arguments, call.invalid_arguments) == ({}, None)
