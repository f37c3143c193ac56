"""The nulls that a strict schema makes a model say, taken out of the arguments of its calls.

OpenAI's strict form requires every property. So a property that may be left out may be null instead
(:class:`cantle_ai.apis.strict_schemas.StrictSchema`, `nulled`), and such a null means that it was left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cantle_ai.apis.schema_nodes import DEEPEST, resolved, takes_null, without_wrapping
from cantle_ai.apis.tool_schemas import strict_for_openai
from cantle_ai.codec import Json, JsonObject
from cantle_ai.context import ToolDefinition

__all__ = ["null_remover", "without_nulls"]


def null_remover(tools: Sequence[ToolDefinition]) -> Callable[[str, JsonObject], JsonObject]:
    """What gives a call's arguments, by the tool's name, without the nulls that its strict form asked for."""
    schemas = {tool.name: tool.parameters for tool in tools}

    def without(name: str, arguments: JsonObject) -> JsonObject:
        schema = schemas.get(name)
        strict = None if schema is None else strict_for_openai(schema)
        if schema is None or strict is None or not strict.nulled:
            return arguments
        return without_nulls(schema, arguments)

    return without


def without_nulls(parameters: JsonObject, arguments: JsonObject) -> JsonObject:
    """`arguments` without the nulls that stand for what was left out, by the schema as its tool declared it.

    A null that the schema itself allows stays. The same object if there is nothing to take away.
    """
    made = _mended(parameters, parameters, arguments, 0)
    return made if isinstance(made, dict) else arguments


def _mended(root: JsonObject, schema: Json, value: Json, depth: int) -> Json:
    if not isinstance(value, dict | list) or depth > DEEPEST:
        return value
    node = _variant(root, schema, value, 0)
    if isinstance(value, list):
        items = node.get("items")
        made = [_mended(root, items, item, depth + 1) for item in value]
        return made if any(new is not old for new, old in zip(made, value, strict=True)) else value
    properties, required = node.get("properties"), node.get("required")
    if not isinstance(properties, dict):
        return value
    needed = required if isinstance(required, list) else []
    kept: JsonObject = {}
    for name, item in value.items():
        child = properties.get(name)
        if item is None and child is not None and name not in needed and not takes_null(child, root):
            continue
        kept[name] = _mended(root, child, item, depth + 1)
    same = kept.keys() == value.keys() and all(kept[name] is item for name, item in value.items())
    return value if same else kept


def _variant(root: JsonObject, schema: Json, value: JsonObject | list[Json], depth: int) -> JsonObject:
    """The schema that `value` was made by: what a reference leads to, and the one of several that fits."""
    if not isinstance(schema, dict) or depth > DEEPEST:
        return {}
    node = without_wrapping(schema)
    if "$ref" in node:
        return _variant(root, resolved(root, node["$ref"]), value, depth + 1)
    variants = node.get("anyOf")
    if not isinstance(variants, list):
        return node
    found = [_variant(root, variant, value, depth + 1) for variant in variants]
    return next((each for each in found if _fits(each, value)), {})


def _fits(node: JsonObject, value: JsonObject | list[Json]) -> bool:
    """Whether a value is of a node. In a strict form an object has all properties, and some tell what it is."""
    if isinstance(value, list):
        return "items" in node
    properties = node.get("properties")
    return (
        isinstance(properties, dict)
        and properties.keys() == value.keys()
        and all(item is None or _may_be(properties[name], item) for name, item in value.items())
    )


def _may_be(schema: Json, value: Json) -> bool:
    if not isinstance(schema, dict):
        return True
    if "const" in schema:
        return schema["const"] == value
    values = schema.get("enum")
    return not isinstance(values, list) or value in values
