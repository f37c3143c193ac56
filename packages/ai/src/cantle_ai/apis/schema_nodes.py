"""The nodes of JSON schemas: what is inside one, what a reference leads to, which types and values it has."""

from __future__ import annotations

from collections.abc import Callable

from cantle_ai.codec import Json, JsonObject

__all__ = [
    "DEEPEST",
    "DEFINITIONS",
    "DOCUMENT",
    "WORDS",
    "children",
    "is_one_of",
    "resolved",
    "takes_null",
    "type_of_values",
    "without_wrapping",
]

DEEPEST = 64
"""Levels of nesting that are followed. No tool's schema has as many, and a hostile one must not end the program."""
DEFINITIONS = ("$defs", "definitions")
"""Where definitions stand."""
WORDS = frozenset({"title", "description"})
"""Keywords that may stand beside anything."""
DOCUMENT = frozenset(
    {"$schema", "$id", "$anchor", "$comment", "examples", "example", "deprecated", "readOnly", "writeOnly"}
)
"""Keywords that say nothing about a value."""

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


def children(node: JsonObject, change: Callable[[Json], Json]) -> JsonObject:
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


def resolved(root: JsonObject, target: Json) -> Json:
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


def without_wrapping(node: JsonObject) -> JsonObject:
    """The node without an `allOf` of one, as some generators write it, and with `anyOf` for `oneOf`."""
    inner = node.get("allOf")
    if isinstance(inner, list) and len(inner) == 1 and isinstance(inner[0], dict):
        rest = {key: value for key, value in node.items() if key != "allOf"}
        if not (rest.keys() - WORDS) & inner[0].keys():
            node = {**inner[0], **rest}
    if "oneOf" in node and "anyOf" not in node:
        node = {("anyOf" if key == "oneOf" else key): value for key, value in node.items()}
    return node


def is_one_of(value: Json, options: frozenset[str]) -> bool:
    """Whether `value` is a text of `options`; a list or an object, which has no hash, is none."""
    return isinstance(value, str) and value in options


def type_of_values(node: JsonObject) -> Json:
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


def takes_null(raw: Json, root: JsonObject, depth: int = 0) -> bool:
    """Whether null is a value of this schema, a node of `root`."""
    if not isinstance(raw, dict) or depth > DEEPEST:
        return True
    node = without_wrapping(raw)
    if "$ref" in node:
        return takes_null(resolved(root, node["$ref"]), root, depth + 1)
    variants = node.get("anyOf")
    if isinstance(variants, list):
        return any(takes_null(variant, root, depth + 1) for variant in variants)
    if "const" in node:
        return node["const"] is None
    values = node.get("enum")
    if isinstance(values, list) and None not in values:
        return False
    kind = node.get("type")
    return kind is None or kind == "null" or (isinstance(kind, list) and "null" in kind)
