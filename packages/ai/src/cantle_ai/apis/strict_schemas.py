"""JSON schemas in the strict forms of OpenAI and Anthropic.

Each takes a part of JSON schema only. A schema of which every node is known to be taken is made strict; any other
is not, for one keyword more is a request refused.
"""

from __future__ import annotations

import math
import re

from msgspec import Struct

from cantle_ai.apis.schema_nodes import (
    DEFINITIONS,
    DOCUMENT,
    WORDS,
    is_one_of,
    resolved,
    takes_null,
    type_of_values,
    without_wrapping,
)
from cantle_ai.codec import Json, JsonObject, wire_json

__all__ = ["ANTHROPIC", "OPENAI", "Dialect", "StrictSchema", "strict_schema"]


class StrictSchema(Struct, frozen=True, kw_only=True):
    """A schema that may go out with `strict`."""

    parameters: JsonObject
    """How it then looks."""
    nulled: bool = False
    """Whether the model has to say null for what it leaves out: see :mod:`cantle_ai.apis.null_arguments`."""
    optional: int = 0
    """How many properties may still be left out. Anthropic takes 24 of them in all tools together."""
    unions: int = 0
    """How many properties have several types. Anthropic takes 16 of them in all tools together."""


class _Refused(Exception):
    """A node that cannot be sent strict."""


class Dialect(Struct, frozen=True, kw_only=True):
    """What one provider's strict mode takes."""

    keywords: frozenset[str]
    dropped: frozenset[str]
    """Annotations that are left out, because they are refused, and nothing is lost without them."""
    formats: frozenset[str]
    pattern: re.Pattern[str]
    """Finds what regular expressions must not have."""
    all_required: bool
    recursive: bool
    most_least_items: float = math.inf
    """The largest `minItems`."""
    most_properties: int
    most_levels: int
    most_values: int
    """Values of all enumerations together."""


_SHAPE = frozenset(
    {
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "anyOf",
        "enum",
        "const",
        "title",
        "description",
        "format",
        "pattern",
        "minItems",
        "$ref",
    }
)
_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})

OPENAI = Dialect(
    keywords=_SHAPE
    | {"maxItems", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
    dropped=DOCUMENT,
    formats=_FORMATS,
    pattern=re.compile(r"\(\?[=!<]"),
    all_required=True,
    recursive=True,
    most_properties=5000,
    most_levels=10,
    most_values=1000,
)
ANTHROPIC = Dialect(
    keywords=_SHAPE,
    dropped=DOCUMENT,
    formats=_FORMATS | {"uri"},
    pattern=re.compile(r"\(\?[=!<]|\\[1-9bB]"),
    all_required=False,
    recursive=False,
    most_least_items=1,
    most_properties=1000,
    most_levels=20,
    most_values=1000,
)

_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
_OF_TYPES = {
    "object": frozenset({"properties", "required", "additionalProperties"}),
    "array": frozenset({"items", "minItems", "maxItems"}),
}
"""Keywords that only values of one type have."""
_NO_OBJECT = ("anyOf", "oneOf", "allOf", "$ref", "enum", "const", "not")
"""Keywords that arguments cannot have at their top."""


def strict_schema(parameters: JsonObject, dialect: Dialect) -> StrictSchema | None:
    """`parameters` in the strict form of `dialect`; None if they have none."""
    try:
        return _Strict(parameters, dialect).schema()
    except _Refused:
        return None


class _Strict:
    """Makes one schema strict."""

    def __init__(self, parameters: JsonObject, dialect: Dialect) -> None:
        self._root = parameters
        self._dialect = dialect
        self._definitions: dict[str, Json] = {}
        self._nulled = False
        self._optional = 0
        self._unions = 0
        self._properties = 0
        self._values = 0

    def schema(self) -> StrictSchema:
        root = self._root
        if root.get("type", "object") != "object" or not root.keys().isdisjoint(_NO_OBJECT):
            raise _Refused  # the arguments must be one object
        body = {key: value for key, value in root.items() if key not in DEFINITIONS}
        body.setdefault("type", "object")
        node = self._node(body, 1)
        # References lead to definitions, which are looked at when they are first met.
        if self._definitions:
            node["$defs"] = self._definitions
        return StrictSchema(
            parameters=node, nulled=self._nulled, optional=self._optional, unions=self._unions
        )

    def _node(self, raw: Json, level: int) -> JsonObject:
        dialect = self._dialect
        if not isinstance(raw, dict) or level > dialect.most_levels:
            raise _Refused
        node = _described({key: value for key, value in raw.items() if key not in dialect.dropped})
        node = without_wrapping(node)
        if "$ref" in node:
            return self._reference(node, level)
        if not dialect.keywords.issuperset(node):
            raise _Refused
        self._check_values(node)
        if "anyOf" in node:
            variants = node["anyOf"]
            if not isinstance(variants, list) or not variants or node.keys() - WORDS - {"anyOf"}:
                raise _Refused
            return {**node, "anyOf": [self._node(variant, level + 1) for variant in variants]}
        types = _types(node)
        if types is None or not _fits(node, types):
            raise _Refused
        if "object" in types:
            return self._object(node, level)
        if "array" in types:
            return {**node, "items": self._node(node.get("items"), level + 1)}
        return node

    def _check_values(self, node: JsonObject) -> None:
        dialect = self._dialect
        if "type" not in node and (kind := type_of_values(node)) is not None:
            node["type"] = kind
        form, pattern, least = node.get("format"), node.get("pattern"), node.get("minItems")
        if form is not None and not is_one_of(form, dialect.formats):
            raise _Refused
        if pattern is not None and (not isinstance(pattern, str) or dialect.pattern.search(pattern)):
            raise _Refused
        if least is not None and (type(least) is not int or least > dialect.most_least_items):
            raise _Refused
        values = node.get("enum", [])
        if not isinstance(values, list) or any(isinstance(value, dict | list) for value in values):
            raise _Refused
        self._values += len(values)
        if self._values > dialect.most_values:
            raise _Refused

    def _object(self, node: JsonObject, level: int) -> JsonObject:
        properties, required = node.get("properties"), node.get("required", [])
        if node.get("additionalProperties", False) is not False:
            raise _Refused
        if not properties and level > 1 and "additionalProperties" not in node:
            raise _Refused  # it may hold anything, and closed it would hold nothing
        properties = {} if properties is None else properties
        if not isinstance(properties, dict) or not isinstance(required, list):
            raise _Refused
        if not all(isinstance(name, str) and name in properties for name in required):
            raise _Refused
        self._properties += len(properties)
        if self._properties > self._dialect.most_properties:
            raise _Refused
        made: JsonObject = {
            name: self._property(child, name in required, level + 1) for name, child in properties.items()
        }
        names: list[Json] = [*made] if self._dialect.all_required else list(required)
        return {**node, "properties": made, "required": names, "additionalProperties": False}

    def _property(self, raw: Json, required: bool, level: int) -> JsonObject:
        node = self._node(raw, level)
        if not required and self._dialect.all_required:
            if not takes_null(raw, self._root):
                self._nulled = True
                node = {"anyOf": [node, {"type": "null"}]}
        elif not required:
            self._optional += 1
        if "anyOf" in node or isinstance(node.get("type"), list):
            self._unions += 1
        return node

    def _reference(self, node: JsonObject, level: int) -> JsonObject:
        """A reference alone, its definition taken along; with more beside it, the definition in its place."""
        target = node["$ref"]
        name = _definition_name(target)
        raw = resolved(self._root, target)
        if name is None or raw is None:
            raise _Refused
        rest = {key: value for key, value in node.items() if key != "$ref"}
        if name not in self._definitions:
            self._definitions[name] = None  # so that a definition that holds itself is met once
            self._definitions[name] = self._node(raw, level + 1)
        elif self._definitions[name] is None and not self._dialect.recursive:
            raise _Refused
        if not rest:
            return {"$ref": f"#/$defs/{name}"}
        known = self._definitions[name]
        if isinstance(known, dict) and "$ref" not in known and rest.keys() <= WORDS:
            return {**known, **rest}
        raise _Refused


def _described(node: JsonObject) -> JsonObject:
    """The node with its `default` said in words: as a keyword it is refused."""
    if "default" not in node:
        return node
    default = node.pop("default")
    if default is None:
        return node
    words = f"Default: {wire_json(default).decode()}"
    said = node.get("description")
    return {**node, "description": f"{said} ({words})" if isinstance(said, str) and said else words}


def _fits(node: JsonObject, types: list[str]) -> bool:
    """Whether all keywords of a node are of its types."""
    return all(kind in types or keywords.isdisjoint(node) for kind, keywords in _OF_TYPES.items())


def _types(node: JsonObject) -> list[str] | None:
    kind = node.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    named = [each for each in kinds if isinstance(each, str) and each in _TYPES]
    return named if named and len(named) == len(kinds) else None


def _definition_name(target: Json) -> str | None:
    """The name of a definition, if a reference is to one, and the name can stand in a reference as it is."""
    if not isinstance(target, str):
        return None
    found = re.fullmatch(r"#/(?:\$defs|definitions)/([\w.-]+)", target)
    return found[1] if found else None
