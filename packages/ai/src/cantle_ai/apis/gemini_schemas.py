"""JSON schemas for the two fields that Gemini has for them."""

from __future__ import annotations

from collections.abc import Callable

from cantle_ai.apis.schema_nodes import (
    DEEPEST,
    DOCUMENT,
    children,
    is_one_of,
    type_of_values,
    without_wrapping,
)
from cantle_ai.codec import Json, JsonObject

__all__ = ["cleaned", "gemini_node", "openapi_node"]


def cleaned(parameters: JsonObject, clean: Callable[[JsonObject], JsonObject]) -> JsonObject:
    """The schema with each of its nodes as `clean` makes it, from the outside in; what lies too deep stays as it is."""

    def node(raw: Json, depth: int) -> Json:
        if not isinstance(raw, dict) or depth > DEEPEST:
            return raw
        return children(clean(raw), lambda child: node(child, depth + 1))

    made = node(parameters, 0)
    return made if isinstance(made, dict) else parameters


def gemini_node(raw: JsonObject) -> JsonObject:
    """One node for a field that takes JSON schema: without what describes the document, `const` as an `enum`."""
    node = without_wrapping({key: value for key, value in raw.items() if key not in DOCUMENT})
    if "const" in node:
        node.setdefault("enum", [node.pop("const")])
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


def openapi_node(raw: JsonObject) -> JsonObject:
    """One node for a field that takes the schemas of OpenAPI 3.0, with no keyword that Gemini's do not have."""
    node = gemini_node(raw)
    if "type" not in node and (kind := type_of_values(node)) is not None:
        node["type"] = kind
    node = _without_null(node)
    if not is_one_of(node.get("format"), _OPENAPI_FORMATS):
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
            return openapi_node(node)
        node["anyOf"] = kept
    if isinstance(values := node.get("enum"), list) and None in values:
        node["enum"] = [value for value in values if value is not None]
        node["nullable"] = True
    return node
