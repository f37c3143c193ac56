"""What the Responses API sends: one event of a stream, or a whole response.

    {"type": "response.created" | "response.completed" | …, "response": {…}}
    {"type": "response.output_item.added" | "….done", "output_index", "item": {"type", "id", …}}
    {"type": "response.output_text.delta" | …, "output_index", "item_id", "content_index", "delta"}
    {"type": "error", "code", "message"} or {"type": "error", "error": {…}}

Fields that are not listed are passed over. Most events are deltas, which are decoded into an :class:`Event`
and no more; items and responses are left as JSON until somebody wants them. What does not have the type it
should have goes through :func:`_lenient`, which takes what it can.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw, Struct

from cantle_ai.apis.lenient_json import as_count
from cantle_ai.codec import Json, JsonObject, decode_json, encode_json
from cantle_ai.usage import Usage

__all__ = ["Event", "decode_event", "object_in", "text_in", "texts_in", "usage_of"]


class Event(Struct, gc=False):
    """One event. `item` and `response` are JSON texts."""

    type: str | None = None
    delta: str | None = None
    output_index: int | None = None
    item_id: str | None = None
    content_index: int | None = None
    summary_index: int | None = None
    item: Raw = Raw()
    response: Raw = Raw()
    text: str | None = None
    refusal: str | None = None
    arguments: str | None = None
    input: str | None = None
    error: Any = None
    object: str | None = None


_decode = msgspec.json.Decoder(Event | None).decode
_INDEXES = ("output_index", "content_index", "summary_index")
_TEXTS = ("type", "delta", "item_id", "text", "refusal", "arguments", "input", "object")


def decode_event(data: bytes) -> Event | None:
    """One event; None for one that says nothing (`null`, a number, a list). Raises ValueError for what is not JSON."""
    try:
        return _decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return _lenient(decode_json(data))


def object_in(raw: Raw) -> JsonObject:
    """The JSON object in a field; empty when it is missing or something else."""
    if not bytes(raw):
        return {}
    value = decode_json(bytes(raw))
    return value if isinstance(value, dict) else {}


def text_in(raw: JsonObject, key: str) -> str | None:
    """A field that is a string with something in it; None for any other."""
    value = raw.get(key)
    return value if isinstance(value, str) and value else None


def texts_in(parts: Json) -> list[str]:
    """The texts of a message's content, of a summary, or of reasoning."""
    found: list[str] = []
    for part in parts if isinstance(parts, list) else []:
        if isinstance(part, dict):
            text = text_in(part, "text") or text_in(part, "refusal")
            if text:
                found.append(text)
    return found


def usage_of(raw: Json) -> Usage | None:
    """`usage` of a response. Its `input_tokens` contain the cached ones, its `output_tokens` the reasoning."""
    if not isinstance(raw, dict):
        return None
    entered, output = _tokens(raw.get("input_tokens")), _tokens(raw.get("output_tokens"))
    details, spent = raw.get("input_tokens_details"), raw.get("output_tokens_details")
    details = details if isinstance(details, dict) else {}
    reasoning = spent.get("reasoning_tokens") if isinstance(spent, dict) else None
    read = min(entered, _tokens(details.get("cached_tokens")))
    written = min(entered - read, _tokens(details.get("cache_write_tokens")))
    return Usage(
        input=entered - read - written,
        output=output,
        cache_read=read,
        cache_write=written,
        reasoning=None if reasoning is None else _tokens(reasoning),
        total_tokens=_tokens(raw.get("total_tokens")) or entered + output,
    )


def _lenient(raw: Json) -> Event | None:
    if not isinstance(raw, dict):
        return None
    event = Event(error=raw.get("error"))
    for name in _TEXTS:
        value = raw.get(name)
        if name == "arguments" and isinstance(value, dict):
            value = encode_json(value).decode()
        if isinstance(value, str):
            setattr(event, name, value)
    for name in _INDEXES:
        value = raw.get(name)
        if isinstance(value, str) and value.isdecimal():
            value = int(value[:9])
        if isinstance(value, int | float) and 0 <= value < 1e9:
            setattr(event, name, int(value))
    for name in ("item", "response"):
        if isinstance(raw.get(name), dict):
            setattr(event, name, Raw(encode_json(raw[name])))
    return event


def _tokens(raw: Json) -> int:
    return as_count(raw) or 0
