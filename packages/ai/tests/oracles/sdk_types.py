"""Holds a request against the parameter types of a vendor's SDK, down to the last block.

The SDKs describe requests with `TypedDict`s, and lists in them as `Iterable`, which pydantic checks only when
somebody takes the elements, and not at all in lists of lists. So the types are walked here: a field that a
`TypedDict` does not have is as wrong as one of another type.
"""

from __future__ import annotations

import collections.abc
import types
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import typing_extensions

__all__ = ["check_type"]

_NOT_JSON = "what is no JSON"


def check_type(kind: Any, value: Any, path: str = "") -> None:
    """Raise AssertionError, which says where, unless `value` is of the type."""
    wrong = _wrong(kind, value, path)
    assert wrong is None, wrong


def _wrong(kind: Any, value: Any, path: str) -> str | None:
    """What is wrong; None when nothing is."""
    origin = get_origin(kind)
    if origin in (typing_extensions.Annotated, typing_extensions.Required, typing_extensions.NotRequired):
        return _wrong(get_args(kind)[0], value, path)
    if kind is Any or kind is object or isinstance(kind, TypeVar):
        return None
    if kind is None or kind is type(None):
        return None if value is None else f"{path} is not null"
    if origin is Union or origin is types.UnionType:
        found = [_wrong(each, value, path) for each in get_args(kind)]
        return None if None in found else _closest(found)
    if origin in (Literal, typing_extensions.Literal):
        return None if value in get_args(kind) else f"{path} is {value!r:.60}"
    if typing_extensions.is_typeddict(kind):
        return _wrong_object(kind, value, path)
    if isinstance(origin, type) and issubclass(origin, collections.abc.Mapping):
        if not isinstance(value, dict):
            return f"{path} is no object"
        pairs = ((_wrong(get_args(kind)[1], each, f"{path}.{name}")) for name, each in value.items())
        return next(filter(None, pairs), None)
    if origin is not None and get_args(kind):  # a list, by whatever name
        if not isinstance(value, list):
            return f"{path} is no list"
        items = (_wrong(get_args(kind)[0], each, f"{path}[{n}]") for n, each in enumerate(value))
        return next(filter(None, items), None)
    return _wrong_plain(kind, value, path)


def _wrong_object(kind: Any, value: Any, path: str) -> str | None:
    if not isinstance(value, dict):
        return f"{path} is no object"
    fields, required = _fields(kind)
    if missing := required - value.keys():
        return f"{path} lacks {', '.join(sorted(missing))}"
    config = getattr(kind, "__pydantic_config__", None)
    if not (isinstance(config, Mapping) and config.get("extra") == "allow"):
        if unknown := value.keys() - fields.keys():
            return f"{path} has {', '.join(sorted(unknown))}, which {kind.__name__} has not"
    wrongs = (_wrong(fields[name], each, f"{path}.{name}") for name, each in value.items() if name in fields)
    return next(filter(None, wrongs), None)


@cache
def _fields(kind: Any) -> tuple[Mapping[str, Any], frozenset[str]]:
    """The fields of a `TypedDict` and their types, and which of them must be there.

    Its own `__required_keys__` know nothing of `Required` in a module whose annotations are texts.
    """
    bases = [
        base for base in typing_extensions.get_original_bases(kind) if typing_extensions.is_typeddict(base)
    ]
    inherited = [_fields(base) for base in bases]
    fields: dict[str, Any] = {}
    required: set[str] = set()
    for more, needed in inherited:
        fields.update(more)
        required |= needed
    for name, hint in typing_extensions.get_type_hints(kind, include_extras=True).items():
        mark: Any = get_origin(hint)
        if name not in fields and mark is not typing_extensions.NotRequired:
            if kind.__total__ or mark is typing_extensions.Required:
                required.add(name)
        fields[name] = hint
    return fields, frozenset(required)


def _wrong_plain(kind: Any, value: Any, path: str) -> str | None:
    if kind is float:
        kind = (int, float)
    if isinstance(kind, type) and not isinstance(kind, tuple) and kind in (int, str, bool, float, dict, list):
        fits = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
        return None if fits else f"{path} is {value!r:.60}, not {kind.__name__}"
    if isinstance(kind, tuple):
        return None if isinstance(value, kind) and not isinstance(value, bool) else f"{path} is {value!r:.60}"
    return _NOT_JSON  # the SDK's own classes of answers, which it takes back as they are


def _closest(found: list[str | None]) -> str:
    """Of what is wrong with each member of a union, what lies deepest: that member was meant."""
    wrong = [each for each in found if each and each != _NOT_JSON] or [_NOT_JSON]
    deepest = max(len(each.split(" ", 1)[0]) for each in wrong)
    return " | ".join([each for each in wrong if len(each.split(" ", 1)[0]) == deepest][:3])
