"""The schema of a tool's arguments as an object and nothing else at its top.

OpenAI and Anthropic refuse a request whose tool says there that it is one of several things: "schema must have type
'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level", "input_schema does not support oneOf,
allOf, or anyOf at the top level". Further down they take it.
"""

from __future__ import annotations

from collections.abc import Iterator

from cantle_ai.codec import Json, JsonObject

__all__ = ["plain_object"]

_CHOICES = ("allOf", "anyOf", "oneOf")
_REFUSED = frozenset({*_CHOICES, "$ref", "enum", "const", "not"})
_DEEPEST = 6
"""Alternatives inside alternatives that are followed."""


def plain_object(parameters: JsonObject) -> JsonObject:
    """`parameters` with the properties of all alternatives as its own; the same object if nothing is to be done.

    What one alternative requires is not required then. The tool itself still holds arguments against all it says.
    """
    if parameters.get("type") == "object" and parameters.keys().isdisjoint(_REFUSED):
        return parameters
    properties: JsonObject = {}
    required: dict[str, None] = {}
    for part, always in _parts(parameters, parameters, True, 0):
        named, needed = part.get("properties"), part.get("required")
        if isinstance(named, dict):
            properties = {**properties, **{name: named[name] for name in named if name not in properties}}
        if always and isinstance(needed, list):
            required.update((name, None) for name in needed if isinstance(name, str))
    made: JsonObject = {key: value for key, value in parameters.items() if key not in _REFUSED}
    made["type"] = "object"
    if properties:
        made["properties"] = properties
    if required:
        made["required"] = [*required]
    return made


def _parts(node: Json, root: JsonObject, always: bool, depth: int) -> Iterator[tuple[JsonObject, bool]]:
    """The node and all that is combined in it, each with whether it always holds."""
    if not isinstance(node, dict) or depth > _DEEPEST:
        return
    yield node, always
    if "$ref" in node:
        from cantle_ai.apis.schema_nodes import resolved

        yield from _parts(resolved(root, node["$ref"]), root, always, depth + 1)
    for keyword in _CHOICES:
        choices = node.get(keyword)
        for choice in choices if isinstance(choices, list) else []:
            yield from _parts(choice, root, always and keyword == "allOf", depth + 1)
