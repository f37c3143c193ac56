"""Why the strict server says no, and small checks that say it."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TypeAlias

from cantle_ai.codec import Json, JsonObject

__all__ = ["Path", "Refusal", "known_fields", "list_of", "matching", "object_of", "text_of"]

Path: TypeAlias = str
"""Where in the request something stands, such as `messages[3].content`."""


class Refusal(Exception):
    """A request that the strictest vendor would not take. `rule` is one word for it, `status` the HTTP answer."""

    def __init__(self, rule: str, text: str, *, status: int = 400) -> None:
        super().__init__(text)
        self.rule = rule
        self.text = text
        self.status = status


def object_of(value: Json, path: Path) -> JsonObject:
    """`value`, which must be an object."""
    if not isinstance(value, dict):
        raise Refusal("type", f"{path} must be an object, not {value!r:.60}")
    return value


def list_of(value: Json, path: Path) -> list[Json]:
    """`value`, which must be a list that is not empty."""
    if not isinstance(value, list):
        raise Refusal("type", f"{path} must be a list, not {value!r:.60}")
    if not value:
        raise Refusal("empty", f"{path} is empty: leave it out instead")
    return value


def text_of(value: Json, path: Path) -> str:
    """`value`, which must be a string with something in it that is not white space."""
    if not isinstance(value, str):
        raise Refusal("type", f"{path} must be a string, not {value!r:.60}")
    if not value.strip():
        raise Refusal("empty", f"{path} is blank: text must have content")
    return value


def matching(value: Json, pattern: str, path: Path) -> str:
    """`value`, which must be a string of this pattern."""
    text = text_of(value, path)
    if re.fullmatch(pattern, text) is None:
        raise Refusal("pattern", f"{path} is {text!r:.80}, which does not match {pattern}")
    return text


def known_fields(value: JsonObject, known: Collection[str], path: Path) -> None:
    """Refuse fields that are not `known`."""
    unknown = sorted(value.keys() - set(known))
    if unknown:
        raise Refusal("unknown-field", f"{path} has fields that this API does not know: {', '.join(unknown)}")
