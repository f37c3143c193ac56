"""Why the strict server says no, and small checks that say it."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import TypeAlias

from cantle_ai.codec import Json, JsonObject

__all__ = [
    "Path",
    "Refusal",
    "arguments_of",
    "flag_of",
    "known_fields",
    "limit_of",
    "list_of",
    "matching",
    "new_name",
    "number_of",
    "object_of",
    "text_of",
]

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


def flag_of(value: Json, path: Path) -> bool:
    """`value`, which must be true or false."""
    if not isinstance(value, bool):
        raise Refusal("type", f"{path} must be true or false, not {value!r:.60}")
    return value


def number_of(value: Json, low: float, high: float, path: Path) -> float:
    """`value`, which must be a number of this range."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not low <= value <= high:
        raise Refusal("range", f"{path} is {value!r:.60}: it must be a number from {low} to {high}")
    return value


def limit_of(value: Json, least: int, most: int | None, path: Path) -> int:
    """`value`, which must be a number of tokens in this range; None for a range without an end."""
    if type(value) is int and least <= value <= (value if most is None else most):
        return value
    end = "on" if most is None else f"to {most}"
    raise Refusal("max-tokens", f"{path} is {value!r:.60}: it must be a whole number from {least} {end}")


def arguments_of(value: Json, path: Path) -> JsonObject:
    """The arguments in `value`, which must be the text of a JSON object."""
    text = text_of(value, path)
    try:
        arguments = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Refusal("arguments", f"{path} is not JSON: {error}") from None
    if not isinstance(arguments, dict):
        raise Refusal("arguments", f"{path} must be a JSON object, as text, not {text[:40]!r}")
    return arguments


def new_name(value: Json, pattern: str, names: set[str], path: Path) -> str:
    """`value`, which must be a tool's name of this pattern, and none of `names`, to which it is added."""
    name = matching(value, pattern, path)
    if name in names:
        raise Refusal("tool-name", f"{path} is {name!r}, which another tool has")
    names.add(name)
    return name


def known_fields(value: JsonObject, known: Collection[str], path: Path) -> None:
    """Refuse fields that are not `known`."""
    unknown = sorted(value.keys() - set(known))
    if unknown:
        raise Refusal("unknown-field", f"{path} has fields that this API does not know: {', '.join(unknown)}")
