"""JSON schemas without references: what they lead to stands in their place."""

from __future__ import annotations

from cantle_ai.apis.schema_nodes import DEEPEST, DEFINITIONS, children, resolved
from cantle_ai.codec import Json, JsonObject

__all__ = ["without_references"]

_MOST_NODES = 20_000
"""Nodes that inlining may make: references to references can double with every level."""


def without_references(parameters: JsonObject) -> JsonObject:
    """`parameters` with everything in its place; the same object if nothing is to be done."""
    if not _has_references(parameters):
        return parameters
    made = _Inliner(parameters).node(parameters, (), 0)
    return made if isinstance(made, dict) else parameters


def _has_references(raw: Json, depth: int = 0) -> bool:
    if depth > DEEPEST:
        return True
    if isinstance(raw, dict):
        return (
            "$ref" in raw
            or any(name in raw for name in DEFINITIONS)
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
        if depth > DEEPEST or self._nodes > _MOST_NODES:
            return {}
        body = children(
            {key: value for key, value in raw.items() if key not in DEFINITIONS and key != "$ref"},
            lambda child: self.node(child, inside, depth + 1),
        )
        target = raw.get("$ref")
        if not isinstance(target, str):
            return body
        found = resolved(self._root, target)
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
