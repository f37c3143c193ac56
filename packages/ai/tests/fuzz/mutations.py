"""What becomes of an answer's events on the way from a sloppy server: lost, repeated, late, or not what they were.

A mutation is data, so that a failing example can be read: `("move", 3, 0)`. Numbers wrap around, so that any
number fits any answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from hypothesis import strategies as st

__all__ = ["FRAGMENTS", "Mutation", "Wire", "hostile_texts", "mutations", "sse_wire"]

Mutation: TypeAlias = tuple[str, int, int]

FRAGMENTS: Sequence[str] = (
    "null", "true", "0", "-1", "1e999", "NaN", "-Infinity", "123456789012345678901234567890", "1.5", '""', '" "',
    '"\\ud800"', '"\\udc00x"', '"\\u0000"', '"0"', '"null"', '"[DONE]"', "[]", "[null]", '["a"]', "{}", '{"":null}',
    '{"type":null}', '{"type":7,"id":[],"index":"0","text":{}}', "[" * 500 + "]" * 500, '{"a":' * 500 + "1" + "}" * 500,
    '"' + "x" * 5000 + '"', "", "{", '"\udcff"',
)  # fmt: skip
"""Texts that come in place of a value; the last ones are no JSON."""

_MARK = "\ue000mark\ue000"


class Wire:
    """Takes the JSON out of an event, and puts another text in its place."""

    def __init__(self, read: Callable[[bytes], str | None], write: Callable[[bytes, str], bytes]) -> None:
        self.read = read
        self.write = write

    def apply(self, events: list[bytes], mutation: Mutation) -> list[bytes]:
        """The events after one mutation."""
        kind, first, second = mutation
        if not events:
            return events
        here, there = first % len(events), second % len(events)
        changed = list(events)
        match kind:
            case "drop":
                del changed[here]
            case "repeat":
                changed.insert(there, changed[here])
            case "move":
                changed.insert(there, changed.pop(here))
            case "swap":
                changed[here], changed[there] = changed[there], changed[here]
            case "end":
                del changed[here + 1 :]
            case "cut":
                changed[here] = changed[here][: second % (len(changed[here]) + 1)]
                del changed[here + 1 :]
            case "value":
                changed[here] = self._value(changed[here], second)
            case "lose":
                changed[here] = self._lose(changed[here], second)
            case "copy":
                changed[here] = self._copy(changed[here], changed[there])
            case "whole":
                fragment = FRAGMENTS[second % len(FRAGMENTS)]
                changed[here] = self.write(changed[here], fragment)
        return changed

    def _value(self, event: bytes, number: int) -> bytes:
        """Another value at some place of the event's JSON."""
        value = self._json(event)
        places = list(_places(value))
        if not places:
            return event
        holder, key = places[number // len(FRAGMENTS) % len(places)]
        holder[key] = _MARK
        return self.write(
            event, json.dumps(value).replace(json.dumps(_MARK), FRAGMENTS[number % len(FRAGMENTS)])
        )

    def _lose(self, event: bytes, number: int) -> bytes:
        value = self._json(event)
        places = list(_places(value))
        if not places:
            return event
        holder, key = places[number % len(places)]
        del holder[key]
        return self.write(event, json.dumps(value))

    def _copy(self, event: bytes, other: bytes) -> bytes:
        """Ids, indexes and names of another event: duplicates, and blocks that are not there."""
        value, source = self._json(event), self._json(other)
        found = {key: holder[key] for holder, key in _places(source) if _identifies(key)}
        changed = False
        for holder, key in _places(value):
            if _identifies(key) and key in found:
                holder[key], changed = found[key], True
        return self.write(event, json.dumps(value)) if changed else event

    def _json(self, event: bytes) -> Any:
        text = self.read(event)
        try:
            return None if text is None else json.loads(text)
        except (ValueError, RecursionError):
            return None


def _identifies(key: object) -> bool:
    return isinstance(key, str) and re.search(r"(?i)(^|_|[a-z])(id|index|name|type)$", key) is not None


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Each place in a JSON value, as what holds it and the key there."""
    places: list[tuple[Any, Any]] = []
    left = [value]
    while left:
        holder = left.pop()
        keys: Any = (
            holder.keys()
            if isinstance(holder, dict)
            else range(len(holder))
            if isinstance(holder, list)
            else ()
        )
        for key in list(keys):
            places.append((holder, key))
            left.append(holder[key])
    return places


def _read(event: bytes) -> str | None:
    found = re.search(rb"(?m)^data: ?(.*)$", event)
    return None if found is None else found[1].decode("utf-8", "replace")


def _write(event: bytes, text: str) -> bytes:
    data = b"data: " + text.encode("utf-8", "surrogateescape")
    return re.sub(rb"(?m)^data: ?.*$", lambda _: data, event, count=1)


sse_wire = Wire(_read, _write)
"""Server-sent events."""


def mutations(most: int = 4) -> st.SearchStrategy[list[Mutation]]:
    """A few mutations."""
    kinds = st.sampled_from(
        ["value", "value", "value", "lose", "copy", "drop", "repeat", "move", "swap", "end", "cut", "whole"]
    )
    place = st.integers(0, 10_000)
    return st.lists(st.tuples(kinds, place, place), max_size=most)


def hostile_texts() -> st.SearchStrategy[bytes]:
    """Bodies of JSON that is an answer or an error only in part."""
    names = st.sampled_from(
        [
            "error",
            "errors",
            "message",
            "type",
            "code",
            "status",
            "details",
            "choices",
            "output",
            "content",
            "candidates",
        ]
    )
    values = st.recursive(
        st.sampled_from(FRAGMENTS),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3).map(lambda items: f"[{','.join(items)}]"),
            st.dictionaries(names, inner, max_size=4).map(
                lambda fields: "{" + ",".join(f'"{name}":{value}' for name, value in fields.items()) + "}"
            ),
        ),
        max_leaves=8,
    )
    return values.map(lambda text: text.encode("utf-8", "surrogateescape"))
