"""The rules for the schemas of tools, which a model can be held to."""

from __future__ import annotations

from cantle_ai.codec import Json, JsonObject
from cantle_ai.testing.server.refusal import Path, Refusal, list_of, object_of

__all__ = ["check_schema"]

_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
_NOT_STRICT = frozenset(
    {
        "allOf", "oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "default",
        "patternProperties", "propertyNames", "minProperties", "maxProperties", "unevaluatedProperties",
        "prefixItems", "contains", "minContains", "maxContains", "uniqueItems", "unevaluatedItems",
        "minLength", "maxLength", "$schema", "$id", "examples",
    }
)  # fmt: skip
"""Keywords that strict tools cannot have: "Structured outputs" in OpenAI's documentation, "Supported schemas"."""
_NOT_AT_THE_TOP = frozenset({"oneOf", "anyOf", "allOf", "enum", "const", "not"})
"""Refused there by OpenAI, and the first three by Anthropic, whether the tool is strict or not."""


def check_schema(schema: JsonObject, path: Path, *, strict: bool = False) -> None:
    """Refuse a schema of arguments that some vendor would refuse. `strict`: the model is held to it."""
    if schema.get("type") != "object":
        raise Refusal("schema", f"{path} must have the type 'object'")
    combined = schema.keys() & _NOT_AT_THE_TOP
    if combined:
        raise Refusal("schema", f"{path} must not have {', '.join(sorted(combined))} at the top level")
    _Schema(schema, strict=strict).check(schema, path)


class _Schema:
    """One schema, whose references are looked up in it."""

    def __init__(self, root: JsonObject, *, strict: bool) -> None:
        self._root = root
        self._strict = strict

    def check(self, node: Json, path: Path) -> None:
        if isinstance(node, bool):
            return
        schema = object_of(node, path)
        self._type(schema, path)
        if self._strict:
            self._keywords(schema, path)
        if "$ref" in schema:
            self._reference(schema["$ref"], path)
        for name in ("properties", "$defs", "definitions"):
            if name in schema:
                for key, child in object_of(schema[name], f"{path}.{name}").items():
                    self.check(child, f"{path}.{name}.{key}")
        for name in ("anyOf", "oneOf", "allOf"):
            if name in schema:
                for index, child in enumerate(list_of(schema[name], f"{path}.{name}")):
                    self.check(child, f"{path}.{name}[{index}]")
        for name in ("items", "additionalProperties"):
            if name in schema:
                self.check(schema[name], f"{path}.{name}")
        self._required(schema, path)

    def _type(self, schema: JsonObject, path: Path) -> None:
        kind = schema.get("type")
        kinds = kind if isinstance(kind, list) else [] if kind is None else [kind]
        if any(not isinstance(one, str) or one not in _TYPES for one in kinds):
            raise Refusal("schema", f"{path}.type is {kind!r}, which is no type of JSON schema")
        if self._strict and not kinds and not schema.keys() & {"$ref", "anyOf", "enum", "const"}:
            raise Refusal("schema", f"{path} has no type, as a strict tool's schema must everywhere")

    def _keywords(self, schema: JsonObject, path: Path) -> None:
        if refused := _NOT_STRICT & schema.keys():
            raise Refusal(
                "schema", f"{path} has {', '.join(sorted(refused))}, which a strict tool cannot have"
            )
        if "$ref" in schema and len(schema) > 1:
            raise Refusal("schema", f"{path} has keywords beside $ref, which a strict tool cannot have")
        if schema.get("type") == "array" and "items" not in schema:
            raise Refusal("schema", f"{path}.items is missing, as it cannot be in a strict tool")

    def _reference(self, reference: Json, path: Path) -> None:
        place: Json = self._root
        steps = reference.removeprefix("#").split("/")[1:] if isinstance(reference, str) else []
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise Refusal("schema", f"{path}.$ref is {reference!r}, which does not point into this schema")
        for step in steps:
            name = step.replace("~1", "/").replace("~0", "~")
            place = place.get(name) if isinstance(place, dict) else None
        if place is None:
            raise Refusal("schema", f"{path}.$ref is {reference!r}, and nothing is there")

    def _required(self, schema: JsonObject, path: Path) -> None:
        properties = schema.get("properties")
        names = set(properties) if isinstance(properties, dict) else set()
        required = schema.get("required", [])
        if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
            raise Refusal("schema", f"{path}.required must be a list of names")
        missing = {str(name) for name in required} - names
        if missing:
            raise Refusal(
                "schema", f"{path}.required names what is no property: {', '.join(sorted(missing))}"
            )
        if self._strict and schema.get("type") == "object":
            if schema.get("additionalProperties") is not False:
                raise Refusal("schema", f"{path}.additionalProperties must be false in a strict tool")
            if names - {str(name) for name in required}:
                raise Refusal("schema", f"{path}.required must name every property in a strict tool")
