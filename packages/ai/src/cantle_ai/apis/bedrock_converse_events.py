"""The events of a Converse stream, by the names that its messages carry.

    messageStart       {"role"}
    contentBlockStart  {"contentBlockIndex", "start": {"toolUse": {"toolUseId", "name"}}}      tool calls alone
    contentBlockDelta  {"contentBlockIndex", "delta": {"text"} | {"toolUse": {"input"}}
                                                    | {"reasoningContent": {"text"} | {"signature"} | {"redactedContent"}}}
    contentBlockStop   {"contentBlockIndex"}
    messageStop        {"stopReason"}
    metadata           {"usage": {"inputTokens", "outputTokens", "cacheReadInputTokens", …, "cacheDetails"}}

Exceptions of the service come as events of their own names, such as `throttlingException`. Fields that are not
listed are passed over.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from cantle_ai.codec import Json, JsonObject, decode_json, encode_json
from cantle_ai.usage import Usage

__all__ = [
    "BlockDelta",
    "BlockStart",
    "BlockStop",
    "Delta",
    "Event",
    "MessageStop",
    "Metadata",
    "Reasoning",
    "Start",
    "ToolUse",
    "decode_event",
    "events_of_whole",
]


class ToolUse(Struct, gc=False, rename="camel"):
    tool_use_id: str | None = None
    name: str | None = None
    type: str | None = None
    """`server_tool_use` for a call that the service answers itself."""
    input: str | None = None


class Start(Struct, gc=False, rename="camel"):
    tool_use: ToolUse | None = None


class BlockStart(Struct, gc=False, rename="camel"):
    content_block_index: int | None = None
    start: Start | None = None


class Reasoning(Struct, gc=False, rename="camel"):
    text: str | None = None
    signature: str | None = None
    redacted_content: str | None = None
    """Base64."""


class Delta(Struct, gc=False, rename="camel"):
    text: str | None = None
    tool_use: ToolUse | None = None
    reasoning_content: Reasoning | None = None


class BlockDelta(Struct, gc=False, rename="camel"):
    content_block_index: int | None = None
    delta: Delta | None = None


class BlockStop(Struct, gc=False, rename="camel"):
    content_block_index: int | None = None


class MessageStop(Struct, gc=False, rename="camel"):
    stop_reason: str | None = None


class CacheDetail(Struct, gc=False, rename="camel"):
    ttl: str | None = None
    input_tokens: int | None = None


class Counts(Struct, gc=False, rename="camel"):
    """`usage`. `inputTokens` does not contain what was read from a cache or written to one."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_write_input_tokens: int | None = None
    cache_details: list[CacheDetail | None] | None = None

    def to_usage(self) -> Usage:
        sent, output = self.input_tokens or 0, self.output_tokens or 0
        read, written = self.cache_read_input_tokens or 0, self.cache_write_input_tokens or 0
        for_an_hour = [
            each.input_tokens or 0 for each in self.cache_details or () if each and each.ttl == "1h"
        ]
        return Usage(
            input=sent,
            output=output,
            cache_read=read,
            cache_write=written,
            cache_write_1h=min(sum(for_an_hour), written) if for_an_hour else None,
            total_tokens=max(self.total_tokens or 0, sent + output + read + written),
        )


class Metadata(Struct, gc=False, rename="camel"):
    usage: Counts | None = None


Event: TypeAlias = BlockDelta | BlockStart | BlockStop | MessageStop | Metadata

_TYPES: dict[str, type[Any]] = {
    "contentBlockDelta": BlockDelta,
    "contentBlockStart": BlockStart,
    "contentBlockStop": BlockStop,
    "messageStop": MessageStop,
    "metadata": Metadata,
}
_DECODERS = {name: msgspec.json.Decoder(kind).decode for name, kind in _TYPES.items()}


def decode_event(name: str | None, data: bytes) -> Event | None:
    """One event; None for one that says nothing here: by its name, or `null`. Raises ValueError for what is no JSON."""
    decode = _DECODERS.get(name or "")
    if decode is None:
        return None
    try:
        event: Event = decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raw = decode_json(data)
        if not isinstance(raw, dict):
            return None
        event = _lenient(_TYPES[name or ""], raw)
    return event


def events_of_whole(body: bytes) -> Iterator[Event]:
    """The events that an answer of `converse`, which is not streamed, would have been.

    Raises ValueError for a body that is none.
    """
    raw = decode_json(body)
    output = raw.get("output") if isinstance(raw, dict) else None
    message = output.get("message") if isinstance(output, dict) else None
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(raw, dict) or not isinstance(content, list):
        raise ValueError("no answer of Converse")
    for index, block in enumerate(content):
        if isinstance(block, dict):
            yield from _block_events(index, block)
            yield BlockStop(index)
    yield _lenient(MessageStop, raw)
    yield _lenient(Metadata, raw)


def _block_events(index: int, block: JsonObject) -> Iterator[Event]:
    use, thought = block.get("toolUse"), block.get("reasoningContent")
    if isinstance(use, dict):
        given = use.get("input", {})
        yield BlockStart(index, Start(_lenient(ToolUse, {**use, "input": None})))
        yield BlockDelta(index, Delta(tool_use=ToolUse(input=encode_json(given).decode())))
    elif isinstance(thought, dict):
        inner = thought.get("reasoningText")
        fields = {**thought, **inner} if isinstance(inner, dict) else thought
        yield BlockDelta(index, Delta(reasoning_content=_lenient(Reasoning, fields)))
    else:
        yield BlockDelta(index, _lenient(Delta, block))


def _lenient(kind: type[Any], raw: JsonObject) -> Any:
    """What of `raw` has the right type: each field by itself, and the fields of those that are objects."""
    kept: JsonObject = {}
    for field in msgspec.structs.fields(kind):
        value = raw.get(field.encode_name)
        if isinstance(value, dict) and (inner := _struct_in(field.type)) is not None:
            kept[field.encode_name] = msgspec.to_builtins(_lenient(inner, value))
            continue
        try:
            msgspec.convert(_whole(value), field.type)
        except msgspec.ValidationError:
            continue
        kept[field.encode_name] = _whole(value)
    return msgspec.convert(kept, kind)


def _struct_in(kind: Any) -> type[Struct] | None:
    options = getattr(kind, "__args__", ())
    return next((each for each in options if isinstance(each, type) and issubclass(each, Struct)), None)


def _whole(value: Json) -> Json:
    """A count as an integer, where a server writes `12.0` or `"12"`."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return int(value)
    return int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 16 else value
