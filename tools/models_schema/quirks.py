"""The quirks of wire APIs, as their modules document them."""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import sys
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from cantle_ai.apis.compat_table import COMPAT
from cantle_ai.providers import WIRE_APIS

__all__ = ["Quirk", "apis_of", "compat_schema", "quirk_tables"]

_ROLE = re.compile(r":[a-z]+:`")
"""What docstrings say of a name, and pages do not: `:mod:`."""


class Quirk(Struct, frozen=True):
    """A quirk: its name, the schema of its value, what holds without it, what it means."""

    name: str
    kind: dict[str, Any]
    default: Any
    text: str


def quirk_tables() -> dict[str, list[Quirk]]:
    """The quirks of each group of APIs that share them, by the APIs' names joined by a comma."""
    return {", ".join(apis): _quirks(struct) for struct, apis in apis_of().items()}


def apis_of() -> dict[type[Struct], list[str]]:
    """The APIs of each set of quirks."""
    found: dict[type[Struct], list[str]] = {}
    for api in WIRE_APIS:
        if api in COMPAT:
            found.setdefault(COMPAT[api](), []).append(api)
    return found


def compat_schema() -> dict[str, Any]:
    """The schema of a `compat` object: a quirk of several APIs may have any of their values."""
    merged: dict[str, list[Quirk]] = {}
    for quirks in quirk_tables().values():
        for quirk in quirks:
            merged.setdefault(quirk.name, []).append(quirk)
    return {"type": "object", "properties": {name: _merged(same) for name, same in sorted(merged.items())}}


def _merged(same: list[Quirk]) -> dict[str, Any]:
    kinds = [quirk.kind for quirk in same]
    distinct = [kind for index, kind in enumerate(kinds) if kind not in kinds[:index]]
    kind = distinct[0] if len(distinct) == 1 else {"anyOf": distinct}
    return {"description": same[0].text.replace("`", ""), **kind}


def _quirks(struct: type[Struct]) -> list[Quirk]:
    texts = _texts(struct)
    schema = msgspec.json.schema(struct)
    kinds: Mapping[str, Any] = schema["$defs"][struct.__name__]["properties"]
    return [
        Quirk(
            field.encode_name,
            {key: value for key, value in kinds[field.encode_name].items() if key != "default"},
            None if field.default in (None, msgspec.NODEFAULT) else field.default,
            texts[field.name],
        )
        for field in msgspec.structs.fields(struct)
    ]


def _texts(struct: type[Struct]) -> dict[str, str]:
    """What stands under each field in the source, on one line."""
    tree = ast.parse(inspect.getsource(sys.modules[struct.__module__]))
    body = next(
        node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == struct.__name__
    ).body
    texts = {}
    for field, below in itertools.pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            value = below.value if isinstance(below, ast.Expr) else None
            text = value.value if isinstance(value, ast.Constant) else ""
            texts[field.target.id] = _ROLE.sub("`", " ".join(str(text).split()))
    return texts
