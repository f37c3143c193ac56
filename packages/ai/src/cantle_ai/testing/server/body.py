"""A request body as text and as values: strict JSON, with the exact text of each top-level field."""

from __future__ import annotations

import json
from collections.abc import Mapping

from msgspec import Struct

from cantle_ai.codec import Json, JsonObject
from cantle_ai.testing.server.refusal import Refusal

__all__ = ["Body", "read_body"]


class Body(Struct, frozen=True):
    """`raw` has each top-level field's text as it was sent, `values` what it says."""

    raw: Mapping[str, str]
    values: JsonObject


def read_body(data: bytes) -> Body:
    """A JSON object, taken apart. Refuses what RFC 8259 does not have or leaves open: duplicate names,
    NaN and Infinity, surrogates without a partner, bytes that are not UTF-8.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refusal("utf-8", f"the body is not UTF-8 at byte {error.start}") from None
    raw, values = {}, {}
    try:
        for name, start, end, value in _members(text):
            if name in values:
                raise Refusal("json", f"the name {name!r} comes twice")
            raw[name], values[name] = text[start:end], value
    except (ValueError, IndexError, RecursionError) as error:
        raise Refusal("json", f"the body is not a JSON object: {error}") from None
    try:
        json.dumps(values, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise Refusal("json", "a string holds a surrogate without its partner") from None
    return Body(raw, values)


def _members(text: str) -> list[tuple[str, int, int, Json]]:
    place = _skip(text, 0)
    if text[place] != "{":
        raise ValueError("it does not begin with {")
    members: list[tuple[str, int, int, Json]] = []
    place = _skip(text, place + 1)
    while text[place] != "}":
        if members:
            place = _skip(text, _expect(text, place, ","))
        name, place = _DECODER.raw_decode(text, place)
        if not isinstance(name, str):
            raise ValueError(f"a name is missing at character {place}")
        start = _skip(text, _expect(text, _skip(text, place), ":"))
        value, end = _DECODER.raw_decode(text, start)
        members.append((name, start, end, value))
        place = _skip(text, end)
    if _skip(text, place + 1) != len(text):
        raise ValueError(f"something follows it at character {place + 1}")
    return members


def _skip(text: str, place: int) -> int:
    while place < len(text) and text[place] in " \t\r\n":
        place += 1
    return place


def _expect(text: str, place: int, character: str) -> int:
    if text[place] != character:
        raise ValueError(f"{character!r} is missing at character {place}")
    return place + 1


def _pairs(pairs: list[tuple[str, Json]]) -> JsonObject:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("an object has the same name twice")
    return value


def _constant(name: str) -> Json:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_constant)
