"""Reads the fields of a configuration object, and names the one that has the wrong type."""

from __future__ import annotations

import math
from collections.abc import Iterator

from cantle_ai.codec import Json, JsonObject

__all__ = ["FieldError", "Fields"]

_KINDS = {
    dict: "an object",
    list: "a list",
    str: "a string",
    bool: "true or false",
    int: "a number",
    float: "a number",
}


class FieldError(ValueError):
    """A field is missing or has the wrong type. `path` is where: `providers.local.models[0].id`."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path} {problem}")
        self.path = path
        self.problem = problem


class Fields:
    """One JSON object. A field that is `null` counts as absent. Every reader raises :class:`FieldError`."""

    __slots__ = ("_raw", "name", "path")

    def __init__(self, raw: Json, path: str) -> None:
        """`path` is where the object stands; empty for the whole file."""
        if not isinstance(raw, dict):
            raise FieldError(path or "the file", f"must be an object, not {_kind(raw)}")
        self._raw = raw
        self.path = path
        self.name = ""

    def where(self, key: str) -> str:
        """The path of one of its fields."""
        return f"{self.path}.{key}" if self.path else key

    def text(self, key: str) -> str | None:
        value = self._raw.get(key)
        if isinstance(value, str | None):
            return value
        raise self._wrong(key, "a string", value)

    def needed_text(self, key: str) -> str:
        """A string that must be there and not be empty."""
        value = self.text(key)
        if not value:
            raise FieldError(self.where(key), "is missing" if value is None else "must not be empty")
        return value

    def flag(self, key: str) -> bool | None:
        value = self._raw.get(key)
        if isinstance(value, bool | None):
            return value
        raise self._wrong(key, "true or false", value)

    def number(self, key: str) -> float | None:
        """A finite number that is not negative."""
        value = self._raw.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._wrong(key, "a number", value)
        if not 0 <= value < math.inf:
            raise FieldError(self.where(key), "must be a number that is not negative")
        return value

    def count(self, key: str) -> int | None:
        """A whole number above zero."""
        value = self.number(key)
        if value is None:
            return None
        if value < 1 or value != int(value):
            raise FieldError(self.where(key), "must be a whole number above 0")
        return int(value)

    def json_object(self, key: str) -> JsonObject | None:
        """An object whose fields are free."""
        value = self._raw.get(key)
        if isinstance(value, dict | None):
            return value
        raise self._wrong(key, "an object", value)

    def texts(self, key: str) -> dict[str, str] | None:
        """An object of strings."""
        part = self.part(key)
        return None if part is None else {name: part.string(name) for name in part.names()}

    def string(self, key: str) -> str:
        """A string that must be there, and may be empty."""
        value = self._raw.get(key)
        if isinstance(value, str):
            return value
        raise self._wrong(key, "a string", value)

    def part(self, key: str) -> Fields | None:
        """The object in a field."""
        value = self._raw.get(key)
        return None if value is None else Fields(value, self.where(key))

    def parts(self, key: str) -> Iterator[Fields]:
        """The objects in a list; none when it is absent."""
        for index, value in enumerate(self.items(key) or ()):
            yield Fields(value, f"{self.where(key)}[{index}]")

    def named_parts(self) -> Iterator[Fields]:
        """The objects in its fields, each with its `name`; a `null` is passed over."""
        for name in self._raw:
            part = self.part(name)
            if part is not None:
                part.name = name
                yield part

    def items(self, key: str) -> list[Json] | None:
        """A list."""
        value = self._raw.get(key)
        if isinstance(value, list | None):
            return value
        raise self._wrong(key, "a list", value)

    def names(self) -> list[str]:
        """The names of its fields, in order."""
        return list(self._raw)

    def _wrong(self, key: str, wanted: str, value: Json) -> FieldError:
        return FieldError(self.where(key), f"must be {wanted}, not {_kind(value)}")


def _kind(value: Json) -> str:
    return "null" if value is None else _KINDS[type(value)]
