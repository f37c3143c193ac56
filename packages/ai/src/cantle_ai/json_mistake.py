"""Where and why a text is no JSON, in words that do not depend on Python's version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from json import JSONDecodeError

__all__ = ["JsonMistake", "json_mistake"]

_BLANKS = " \t\n\r"
_NOTHING_FOLLOWS = (("expecting value", "]"), ("expecting property name", "}"))
"""What Python before 3.13 says, at the bracket, where later ones point to the comma before it."""


class JsonMistake(Struct, frozen=True):
    """One mistake. `reason` is a phrase in small letters; `position` counts characters from 0, the others from 1."""

    reason: str
    position: int
    line: int
    column: int


def json_mistake(error: JSONDecodeError) -> JsonMistake:
    """The mistake that `json` has found. A comma that nothing follows is found at the comma."""
    text, position = error.doc, error.pos
    reason = error.msg[:1].lower() + error.msg[1:].removesuffix(" at")
    before = text[:position].rstrip(_BLANKS)
    at_bracket = any(
        reason.startswith(said) and text[position:].startswith(bracket) for said, bracket in _NOTHING_FOLLOWS
    )
    if reason.startswith("illegal trailing comma"):
        reason = "nothing follows this comma"
    elif at_bracket and before.endswith(","):
        reason, position = "nothing follows this comma", len(before) - 1
    start = text.rfind("\n", 0, position) + 1
    return JsonMistake(reason, position, text.count("\n", 0, position) + 1, position - start + 1)
