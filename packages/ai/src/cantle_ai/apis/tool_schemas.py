"""JSON schemas as providers take them: strict where theirs can be, with references inlined, cleaned up for Gemini.

A schema that is sent strict binds the model while it writes, so its arguments cannot be wrong; but providers take
only a part of JSON schema for that, each its own, and refuse the whole request for one keyword more. So a schema
goes out strict only if every node of it is known to be taken, and as it is otherwise.

All functions are pure. None changes what it is given, and each keeps what it made of a schema, by the identity of
the object: asking again costs a look-up.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct

from cantle_ai.codec import Json, JsonObject

__all__ = [
    "StrictSchema",
    "gemini_schema",
    "inlined",
    "openapi_schema",
    "strict_for_anthropic",
    "strict_for_openai",
    "without_nulls",
]

_T = TypeVar("_T")

_DEEPEST = 64
"""Levels of nesting that are followed. No tool's schema has as many, and a hostile one must not end the program."""
_MOST_NODES = 20_000
"""Nodes that inlining may make: references to references can double with every level."""


class StrictSchema(Struct, frozen=True, kw_only=True):
    """A schema that may go out with `strict`."""

    parameters: JsonObject
    """How it then looks."""
    nulled: bool = False
    """Whether the model has to say null for what it leaves out: see :func:`without_nulls`."""
    optional: int = 0
    """How many properties may still be left out. Anthropic takes 24 of them in all tools together."""
    unions: int = 0
    """How many properties have several types. Anthropic takes 16 of them in all tools together."""


def strict_for_openai(parameters: JsonObject) -> StrictSchema | None:
    """`parameters` in OpenAI's strict form; None if they cannot be sent strict.

    Every object is closed and requires all its properties; what could be left out may be null instead. From
    "Structured outputs" of OpenAI's documentation, "Supported schemas".
    """
    return _kept(strict_for_openai, parameters, lambda: _strict(parameters, _OPENAI))


def strict_for_anthropic(parameters: JsonObject) -> StrictSchema | None:
    """`parameters` in Anthropic's strict form; None if they cannot be sent strict.

    Every object is closed; properties may be left out. No recursion, and no bounds on numbers or lengths. From
    "Structured outputs" of Anthropic's documentation, "JSON Schema limitations".
    """
    return _kept(strict_for_anthropic, parameters, lambda: _strict(parameters, _ANTHROPIC))


def inlined(parameters: JsonObject) -> JsonObject:
    """`parameters` without `$ref` and `$defs`: what they refer to stands in their place.

    Where a definition holds itself, the inner one is left open: its type and description, and no more. A reference
    that leads nowhere becomes a node that takes anything. The same object if nothing is to be done.
    """
    return _kept(inlined, parameters, lambda: _inlined(parameters))


def gemini_schema(parameters: JsonObject) -> JsonObject:
    """`parameters` for a field of Gemini that takes JSON schema, such as `parametersJsonSchema`.

    References are inlined, `const` is an `enum` of one value, `oneOf` is `anyOf`, and keywords that describe the
    document (`$schema`, `$id`, …) are gone.
    """
    return _kept(gemini_schema, parameters, lambda: _cleaned(inlined(parameters), _gemini_node))


def openapi_schema(parameters: JsonObject) -> JsonObject:
    """`parameters` for a field of Gemini that takes the schemas of OpenAPI 3.0, such as `parameters`.

    As :func:`gemini_schema`, and further: one type a node, `nullable` for null, enumerations of texts, and no
    keyword that the vendor's `Schema` does not have.
    """
    return _kept(openapi_schema, parameters, lambda: _cleaned(inlined(parameters), _openapi_node))


def without_nulls(parameters: JsonObject, arguments: JsonObject) -> JsonObject:
    """`arguments` without the nulls that stand for what was left out, by the schema as its tool declared it.

    A null that the schema itself allows stays. The same object if there is nothing to take away.
    """
    schema = inlined(parameters)
    mended = _unnulled(schema, arguments)
    return mended if isinstance(mended, dict) else arguments


# --- strict


class _Refused(Exception):
    """A node that cannot be sent strict."""


class _Dialect(Struct, frozen=True, kw_only=True):
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
_DOCUMENT = frozenset(
    {"$schema", "$id", "$anchor", "$comment", "examples", "example", "deprecated", "readOnly", "writeOnly"}
)
"""Keywords that say nothing about a value."""
_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})

_OPENAI = _Dialect(
    keywords=_SHAPE
    | {"maxItems", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
    dropped=_DOCUMENT,
    formats=_FORMATS,
    pattern=re.compile(r"\(\?[=!<]"),
    all_required=True,
    recursive=True,
    most_properties=5000,
    most_levels=10,
    most_values=1000,
)
_ANTHROPIC = _Dialect(
    keywords=_SHAPE,
    dropped=_DOCUMENT,
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
_DEFINITIONS = ("$defs", "definitions")
_WORDS = frozenset({"title", "description"})
_OF_TYPES = {
    "object": frozenset({"properties", "required", "additionalProperties"}),
    "array": frozenset({"items", "minItems", "maxItems"}),
}
"""Keywords that only values of one type have."""
_CHOICES = ("anyOf", "oneOf", "allOf", "$ref")


def _strict(parameters: JsonObject, dialect: _Dialect) -> StrictSchema | None:
    try:
        return _Strict(parameters, dialect).schema()
    except _Refused:
        return None


class _Strict:
    """Makes one schema strict."""

    def __init__(self, parameters: JsonObject, dialect: _Dialect) -> None:
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
        if root.get("type", "object") != "object" or not root.keys().isdisjoint(_CHOICES):
            raise _Refused  # the arguments must be one object
        body = {key: value for key, value in root.items() if key not in _DEFINITIONS}
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
        node = _without_wrapping(node)
        if "$ref" in node:
            return self._reference(node, level)
        if not dialect.keywords.issuperset(node):
            raise _Refused
        self._check_values(node)
        if "anyOf" in node:
            variants = node["anyOf"]
            if not isinstance(variants, list) or not variants or node.keys() - _WORDS - {"anyOf"}:
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
        if "type" not in node and (kind := _type_of_values(node)) is not None:
            node["type"] = kind
        form, pattern, least = node.get("format"), node.get("pattern"), node.get("minItems")
        if form is not None and not _is_one_of(form, dialect.formats):
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
        if not all(name in properties for name in required if isinstance(name, str)):
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
            if not _takes_null(raw, self._root):
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
        raw = _resolved(self._root, target)
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
        if isinstance(known, dict) and "$ref" not in known and rest.keys() <= _WORDS:
            return {**known, **rest}
        raise _Refused


def _described(node: JsonObject) -> JsonObject:
    """The node with its `default` said in words: as a keyword it is refused."""
    if "default" not in node:
        return node
    default = node.pop("default")
    if default is None:
        return node
    from cantle_ai.codec import wire_json

    words = f"Default: {wire_json(default).decode()}"
    said = node.get("description")
    return {**node, "description": f"{said} ({words})" if isinstance(said, str) and said else words}


def _without_wrapping(node: JsonObject) -> JsonObject:
    """The node without an `allOf` of one, as some generators write it, and with `anyOf` for `oneOf`."""
    inner = node.get("allOf")
    if isinstance(inner, list) and len(inner) == 1 and isinstance(inner[0], dict):
        rest = {key: value for key, value in node.items() if key != "allOf"}
        if not (rest.keys() - _WORDS) & inner[0].keys():
            node = {**inner[0], **rest}
    if "oneOf" in node and "anyOf" not in node:
        node = {("anyOf" if key == "oneOf" else key): value for key, value in node.items()}
    return node


def _is_one_of(value: Json, options: frozenset[str]) -> bool:
    return isinstance(value, str) and value in options


def _fits(node: JsonObject, types: list[str]) -> bool:
    """Whether all keywords of a node are of its types."""
    return all(kind in types or keywords.isdisjoint(node) for kind, keywords in _OF_TYPES.items())


def _types(node: JsonObject) -> list[str] | None:
    kind = node.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    named = [each for each in kinds if isinstance(each, str) and each in _TYPES]
    return named if named and len(named) == len(kinds) else None


def _type_of_values(node: JsonObject) -> Json:
    """The type or types of a node's `const` or `enum`; None if it has neither."""
    values = [node["const"]] if "const" in node else node.get("enum")
    if not isinstance(values, list) or not values:
        return None
    kinds: list[Json] = [*dict.fromkeys(_type_name(value) for value in values)]
    return kinds[0] if len(kinds) == 1 else kinds


def _type_name(value: Json) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"


def _takes_null(raw: Json, root: JsonObject, depth: int = 0) -> bool:
    """Whether null is a value of this schema, a node of `root`."""
    if not isinstance(raw, dict) or depth > _DEEPEST:
        return True
    node = _without_wrapping(raw)
    if "$ref" in node:
        return _takes_null(_resolved(root, node["$ref"]), root, depth + 1)
    variants = node.get("anyOf")
    if isinstance(variants, list):
        return any(_takes_null(variant, root, depth + 1) for variant in variants)
    if "const" in node:
        return node["const"] is None
    values = node.get("enum")
    if isinstance(values, list) and None not in values:
        return False
    kind = node.get("type")
    return kind is None or kind == "null" or (isinstance(kind, list) and "null" in kind)


# --- references


def _resolved(root: JsonObject, target: Json) -> Json:
    """What a reference inside the document leads to; None if it leads nowhere."""
    if not isinstance(target, str) or not target.startswith("#"):
        return None
    found: Json = root
    for step in target[1:].split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict):
            found = found.get(step)
        elif isinstance(found, list) and step.isdecimal() and int(step) < len(found):
            found = found[int(step)]
        else:
            return None
    return found


def _definition_name(target: Json) -> str | None:
    """The name of a definition, if a reference is to one, and the name can stand in a reference as it is."""
    if not isinstance(target, str):
        return None
    found = re.fullmatch(r"#/(?:\$defs|definitions)/([\w.-]+)", target)
    return found[1] if found else None


def _inlined(parameters: JsonObject) -> JsonObject:
    if not _has_references(parameters):
        return parameters
    made = _Inliner(parameters).node(parameters, (), 0)
    return made if isinstance(made, dict) else parameters


def _has_references(raw: Json, depth: int = 0) -> bool:
    if depth > _DEEPEST:
        return True
    if isinstance(raw, dict):
        return (
            "$ref" in raw
            or any(name in raw for name in _DEFINITIONS)
            or any(_has_references(child, depth + 1) for child in raw.values())
        )
    return isinstance(raw, list) and any(_has_references(child, depth + 1) for child in raw)


class _Inliner:
    """Puts what references lead to in their place."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._nodes = 0

    def node(self, raw: Json, inside: tuple[str, ...], depth: int) -> Json:
        """A schema. `inside` are the references that it was reached by."""
        if not isinstance(raw, dict):
            return raw
        self._nodes += 1
        if depth > _DEEPEST or self._nodes > _MOST_NODES:
            return {}
        body = _children(
            {key: value for key, value in raw.items() if key not in _DEFINITIONS and key != "$ref"},
            lambda child: self.node(child, inside, depth + 1),
        )
        target = raw.get("$ref")
        if not isinstance(target, str):
            return body
        found = _resolved(self._root, target)
        if target in inside:
            found = _outline(found)
        else:
            found = self.node(found, (*inside, target), depth + 1)
        return {**found, **body} if isinstance(found, dict) else body


def _outline(raw: Json) -> JsonObject:
    """A node without what is inside it."""
    if not isinstance(raw, dict):
        return {}
    return {key: raw[key] for key in ("type", "title", "description") if key in raw}


_NODES = (
    "items",
    "additionalProperties",
    "not",
    "contains",
    "propertyNames",
    "if",
    "then",
    "else",
    "unevaluatedProperties",
    "unevaluatedItems",
    "additionalItems",
)
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems", "items")
_MAPS = ("properties", "patternProperties", "dependentSchemas")


def _children(node: JsonObject, change: Callable[[Json], Json]) -> JsonObject:
    """The node with each schema directly inside it changed."""
    made = dict(node)
    for key in _NODES:
        if isinstance(made.get(key), dict):
            made[key] = change(made[key])
    for key in _LISTS:
        if isinstance(listed := made.get(key), list):
            made[key] = [change(child) for child in listed]
    for key in _MAPS:
        if isinstance(named := made.get(key), dict):
            made[key] = {name: change(child) for name, child in named.items()}
    return made


# --- Gemini


def _cleaned(parameters: JsonObject, clean: Callable[[JsonObject], JsonObject]) -> JsonObject:
    def node(raw: Json, depth: int) -> Json:
        if not isinstance(raw, dict) or depth > _DEEPEST:
            return raw
        return _children(clean(raw), lambda child: node(child, depth + 1))

    made = node(parameters, 0)
    return made if isinstance(made, dict) else parameters


def _gemini_node(raw: JsonObject) -> JsonObject:
    node = _without_wrapping({key: value for key, value in raw.items() if key not in _DOCUMENT})
    if "const" in node:
        node.setdefault("enum", [node.pop("const")])
        node.pop("const", None)
    return node


_OPENAPI_KEYWORDS = frozenset(
    {
        "type",
        "format",
        "title",
        "description",
        "nullable",
        "enum",
        "items",
        "maxItems",
        "minItems",
        "properties",
        "required",
        "minProperties",
        "maxProperties",
        "minLength",
        "maxLength",
        "pattern",
        "anyOf",
        "propertyOrdering",
        "default",
        "minimum",
        "maximum",
    }
)
"""The fields of Gemini's `Schema`."""
_OPENAPI_FORMATS = frozenset({"float", "double", "int32", "int64", "enum", "date-time"})


def _openapi_node(raw: JsonObject) -> JsonObject:
    node = _gemini_node(raw)
    if "type" not in node and (kind := _type_of_values(node)) is not None:
        node["type"] = kind
    node = _without_null(node)
    if not _is_one_of(node.get("format"), _OPENAPI_FORMATS):
        node.pop("format", None)
    values = node.get("enum")
    if isinstance(values, list) and node.get("type") != "string":
        del node["enum"]  # only texts can be enumerated
    if node.get("type") == "array":
        node.setdefault("items", {"type": "string"})
    return {key: value for key, value in node.items() if key in _OPENAPI_KEYWORDS}


def _without_null(node: JsonObject) -> JsonObject:
    """The node with `nullable` for a type null, and `anyOf` for several types."""
    kinds = node.get("type")
    if isinstance(kinds, list):
        others = [kind for kind in kinds if kind != "null"]
        if len(others) < len(kinds):
            node["nullable"] = True
        if len(others) == 1:
            node["type"] = others[0]
        else:
            del node["type"]
            if others:
                node.setdefault("anyOf", [{"type": kind} for kind in others])
    variants = node.get("anyOf")
    if isinstance(variants, list):
        kept = [each for each in variants if not (isinstance(each, dict) and each.get("type") == "null")]
        if len(kept) < len(variants):
            node["nullable"] = True
        if len(kept) == 1 and isinstance(kept[0], dict):
            del node["anyOf"]
            node = {**kept[0], **node}
            return _openapi_node(node)
        node["anyOf"] = kept
    if isinstance(values := node.get("enum"), list) and None in values:
        node["enum"] = [value for value in values if value is not None]
        node["nullable"] = True
    return node


# --- arguments


def _unnulled(schema: Json, value: Json, depth: int = 0) -> Json:
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return value
    if isinstance(value, list):
        items = schema.get("items")
        made = [_unnulled(items, item, depth + 1) for item in value]
        return made if any(new is not old for new, old in zip(made, value, strict=True)) else value
    if not isinstance(value, dict):
        return value
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, dict):
        return value
    needed = required if isinstance(required, list) else []
    kept: JsonObject = {}
    for name, item in value.items():
        child = properties.get(name)
        if item is None and child is not None and name not in needed and not _takes_null(child, {}):
            continue
        kept[name] = _unnulled(child, item, depth + 1)
    same = kept.keys() == value.keys() and all(kept[name] is item for name, item in value.items())
    return value if same else kept


# --- what was made already

_KEPT = 1024
_made: dict[tuple[object, int], tuple[JsonObject, object]] = {}


def _kept(kind: Callable[[JsonObject], _T], parameters: JsonObject, make: Callable[[], _T]) -> _T:
    """What `make` gives, made once for each schema object and kind."""
    key = (kind, id(parameters))
    entry = _made.get(key)
    if entry is None or entry[0] is not parameters:
        while len(_made) >= _KEPT:
            # Another thread may have taken the oldest away already.
            _made.pop(next(iter(_made)), None)
        entry = _made[key] = (parameters, make())
    value: _T = entry[1]  # type: ignore[assignment]
    return value
