"""The rules for `tools`: names, and schemas that a model can be held to."""

from __future__ import annotations

from cantle_ai.codec import Json, JsonObject
from cantle_ai.testing.server.refusal import (
    Path,
    Refusal,
    known_fields,
    list_of,
    matching,
    object_of,
    text_of,
)
from cantle_ai.testing.server.strict_messages import TOOL_NAME

__all__ = ["check_tools"]

_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})


def check_tools(value: Json) -> None:
    """Refuse tools that some vendor would refuse."""
    names: set[str] = set()
    for index, item in enumerate(list_of(value, "tools")):
        path = f"tools[{index}]"
        tool = object_of(item, path)
        known_fields(tool, {"type", "function", "cache_control"}, path)
        if tool.get("type") != "function":
            raise Refusal("type", f"{path}.type must be 'function', not {tool.get('type')!r}")
        function = object_of(tool.get("function"), f"{path}.function")
        known_fields(function, {"name", "description", "parameters", "strict"}, f"{path}.function")
        name = matching(function.get("name"), TOOL_NAME, f"{path}.function.name")
        if name in names:
            raise Refusal("tool-name", f"{path}.function.name is {name!r}, which another tool has")
        names.add(name)
        if "description" in function:
            text_of(function["description"], f"{path}.function.description")
        strict = function.get("strict", False)
        if not isinstance(strict, bool):
            raise Refusal("type", f"{path}.function.strict must be true or false, not {strict!r}")
        parameters = object_of(function.get("parameters"), f"{path}.function.parameters")
        if parameters.get("type") != "object":
            raise Refusal("schema", f"{path}.function.parameters must have the type 'object'")
        _Schema(parameters, strict=strict).check(parameters, f"{path}.function.parameters")


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
