"""What the Messages API sends: one event of a stream, or a whole message.

    {"type": "message_start", "message": {"id", "model", "usage", …}}
    {"type": "content_block_start", "index", "content_block": {"type", …}}
    {"type": "content_block_delta", "index", "delta": {"type", "text" | "thinking" | "signature" | "partial_json"}}
    {"type": "content_block_stop", "index"}
    {"type": "message_delta", "delta": {"stop_reason", "stop_details"?}, "usage"}
    {"type": "message_stop"}
    {"type": "error", "error": {"type", "message"}}

Fields that are not listed are passed over. What does not have the type it should have (a count that is a string,
a block that is null) goes through :func:`_lenient`, which takes what it can.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from cantle_ai.apis.lenient_json import as_count, as_counts, as_text
from cantle_ai.codec import Json, decode_json
from cantle_ai.usage import Usage

__all__ = ["Block", "Counts", "Delta", "Event", "MessageHead", "decode_event", "decode_message"]


class CacheCreation(Struct, gc=False):
    ephemeral_5m_input_tokens: int | None = None
    ephemeral_1h_input_tokens: int | None = None


class OutputDetails(Struct, gc=False):
    thinking_tokens: int | None = None


class Counts(Struct, gc=False):
    """`usage`. Every count is the total so far; one that is missing stays as it was."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_creation: CacheCreation | None = None
    output_tokens_details: OutputDetails | None = None

    def updated(self, later: Counts) -> Counts:
        """These counts with what `later` says over them."""
        return Counts(*[
            old if new is None else new
            for old, new in zip(msgspec.structs.astuple(self), msgspec.structs.astuple(later), strict=True)
        ])  # fmt: skip

    def to_usage(self) -> Usage:
        read, output = self.cache_read_input_tokens or 0, self.output_tokens or 0
        written, hour = self.cache_creation_input_tokens, None
        if self.cache_creation is not None:
            hour = self.cache_creation.ephemeral_1h_input_tokens or 0
            if written is None:
                written = hour + (self.cache_creation.ephemeral_5m_input_tokens or 0)
        written = written or 0
        fresh, details = self.input_tokens or 0, self.output_tokens_details
        return Usage(
            input=fresh,
            output=output,
            cache_read=read,
            cache_write=written,
            cache_write_1h=hour,
            reasoning=None if details is None else details.thinking_tokens,
            total_tokens=fresh + output + read + written,
        )


class Block(Struct, gc=False):
    """A content block as it starts, or whole."""

    type: str | None = None
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    id: str | None = None
    name: str | None = None
    input: Any = None


class Delta(Struct, gc=False):
    """What is added to a block, or said about the message at its end."""

    type: str | None = None
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None
    stop_reason: str | None = None
    stop_details: Any = None


class MessageHead(Struct, gc=False):
    """A message as it starts, or whole."""

    id: str | None = None
    model: str | None = None
    content: list[Block | None] | None = None
    usage: Counts | None = None
    stop_reason: str | None = None
    stop_details: Any = None


class Event(Struct, gc=False):
    type: str | None = None
    index: int | None = None
    delta: Delta | None = None
    content_block: Block | None = None
    message: MessageHead | None = None
    usage: Counts | None = None
    error: Any = None


_decode = msgspec.json.Decoder(Event | None).decode
_S = TypeVar("_S", bound=Struct)


def decode_event(data: bytes) -> Event | None:
    """One event; None for one that says nothing (`null`, a number, a list). Raises ValueError for what is not JSON."""
    try:
        return _decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return _lenient(decode_json(data))


def decode_message(data: bytes) -> Event | None:
    """A message that was not streamed, as an event that holds it: its type is the message's own.

    None for what is no object. Raises ValueError for what is not JSON.
    """
    raw = decode_json(data)
    if not isinstance(raw, dict):
        return None
    return Event(type=as_text(raw.get("type")), message=_message(raw), error=raw.get("error"))


def _lenient(raw: Json) -> Event | None:
    if not isinstance(raw, dict):
        return None
    return Event(
        type=as_text(raw.get("type")),
        index=as_count(raw.get("index")),
        delta=_texts(raw.get("delta"), Delta),
        content_block=_texts(raw.get("content_block"), Block),
        message=_message(raw.get("message")),
        usage=_counts(raw.get("usage")),
        error=raw.get("error"),
    )


def _message(raw: Json) -> MessageHead | None:
    if not isinstance(raw, dict):
        return None
    content = raw.get("content")
    return MessageHead(
        id=as_text(raw.get("id")),
        model=as_text(raw.get("model")),
        content=[_texts(block, Block) for block in content] if isinstance(content, list) else None,
        usage=_counts(raw.get("usage")),
        stop_reason=as_text(raw.get("stop_reason")),
        stop_details=raw.get("stop_details"),
    )


def _texts(raw: Json, kind: type[_S]) -> _S | None:
    """A block or delta: texts where texts are wanted, anything where anything may be."""
    if not isinstance(raw, dict):
        return None
    free = ("input", "stop_details")
    return kind(
        **{name: raw.get(name) if name in free else as_text(raw.get(name)) for name in kind.__struct_fields__}
    )


def _counts(raw: Json) -> Counts | None:
    if not isinstance(raw, dict):
        return None
    creation, details = raw.get("cache_creation"), raw.get("output_tokens_details")
    return Counts(
        input_tokens=as_count(raw.get("input_tokens")),
        output_tokens=as_count(raw.get("output_tokens")),
        cache_read_input_tokens=as_count(raw.get("cache_read_input_tokens")),
        cache_creation_input_tokens=as_count(raw.get("cache_creation_input_tokens")),
        cache_creation=as_counts(creation, CacheCreation),
        output_tokens_details=as_counts(details, OutputDetails),
    )
