"""Tool arguments against JSON schema: mended where the intention is plain, refused in words otherwise.

Models send `"5"` for 5, one value for a list of one, JSON in a string for a list or an object, and `null`
for what they leave out. :meth:`ToolSchema.fit` mends those, and only at the places where the validator
objects: what is valid is never changed. Nothing is fetched: a reference to another document is an error.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from cantle_agent.errors import SchemaError
from cantle_ai.codec import Json, JsonObject, decode_json

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError, Validator

__all__ = ["ToolSchema", "check_parameters", "copy_object", "problem_text", "schema_of"]

_PASSES = 8
"""Mending a string into an object lays open what is wrong inside; no schema of a tool nests deeper than this."""

_LINES = 10
_LINE_LENGTH = 200

_REPAIR_LIMIT = 2_000_000
"""Characters of a string that may be parsed as JSON for the sake of a list or an object."""

_Path: TypeAlias = "tuple[str | int, ...]"
_MISSING: Any = object()


class ToolSchema:
    """The compiled schema of one tool's arguments."""

    __slots__ = ("_validator",)

    def __init__(self, parameters: JsonObject) -> None:
        """Raises :class:`SchemaError` with what is wrong with the schema."""
        from jsonschema_rs import ReferencingError, ValidationError, validator_for

        check_parameters(parameters)
        try:
            self._validator: Validator = validator_for(parameters, retriever=_refuse, mask="the value")
        except (ValidationError, ReferencingError, ValueError, TypeError, OverflowError) as error:
            raise SchemaError(_one_line(getattr(error, "message", None) or str(error))) from error

    def fit(self, arguments: JsonObject) -> tuple[JsonObject, list[str]]:
        """The arguments, and what is wrong with them: one line for each place, with what was expected there.

        Valid arguments come back as they are; others as a copy with mended what could be mended.
        """
        errors = self._errors(arguments)
        if not errors:
            return arguments, []
        mended = copy_object(arguments)
        for _ in range(_PASSES):
            changes: dict[_Path, Json] = {}
            for error in errors:
                changes.update(_mend(error, mended) or {})
            if not changes:
                break
            for path, value in changes.items():
                _put(mended, path, value)
            errors = self._errors(mended)
        return mended, list(dict.fromkeys(line for error in errors for line in _describe(error, mended)))

    def _errors(self, arguments: JsonObject) -> list[ValidationError]:
        try:
            return list(self._validator.iter_errors(arguments))
        except UnicodeEncodeError:
            return list(self._validator.iter_errors(_scrubbed(arguments)))
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise ValueError(f"The arguments are not JSON: {_one_line(str(error))}") from error


def schema_of(parameters: JsonObject) -> ToolSchema:
    """The compiled form of a tool's parameters, made once for each schema object. Raises :class:`SchemaError`."""
    key = id(parameters)
    entry = _compiled.get(key)
    if entry is None or entry[0] is not parameters:
        while len(_compiled) >= _KEPT:
            del _compiled[next(iter(_compiled))]
        entry = _compiled[key] = (parameters, ToolSchema(parameters))
    return entry[1]


_KEPT = 512
_compiled: dict[int, tuple[JsonObject, ToolSchema]] = {}


def problem_text(name: str, problems: Sequence[str]) -> str:
    """What a model reads when its arguments do not fit. Bounded in length."""
    lines = [f"- {line}" for line in problems[:_LINES]]
    if len(problems) > _LINES:
        lines.append(f"- and {len(problems) - _LINES} more")
    return "\n".join(
        [
            f"The arguments for {name} do not fit its schema:",
            *lines,
            "Call it again with arguments that do.",
        ]
    )


def check_parameters(parameters: object) -> None:
    """Raise :class:`SchemaError` if `parameters` is plainly not the schema of an object.

    A look at the shape that costs nothing at start-up; the validator's own check comes with the first call.
    """
    if not isinstance(parameters, dict):
        raise SchemaError(f"expected a JSON schema, an object, not {type(parameters).__name__}")
    if parameters.get("type", "object") != "object":
        raise SchemaError(f"must describe an object, not {parameters['type']!r}")
    _check_node(parameters, "parameters")


_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
_ONE = ("items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else")
_MANY = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")


def _check_node(node: Json, where: str) -> None:
    if isinstance(node, bool):
        return
    if not isinstance(node, dict):
        raise SchemaError(f"{where} must be a schema, not {type(node).__name__}")
    wanted = node.get("type", [])
    for name in wanted if isinstance(wanted, list) else [wanted]:
        if name not in _TYPES:
            raise SchemaError(f"{where}.type: {name!r} is not a JSON type")
    required = node.get("required", [])
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        raise SchemaError(f"{where}.required must be a list of names")
    reference = node.get("$ref", "#")
    if not isinstance(reference, str) or not reference.startswith("#"):
        raise SchemaError(f"{where}.$ref: {reference!r} lies outside the schema, and nothing is fetched")
    for key in _MANY:
        named = node.get(key, {})
        if not isinstance(named, dict):
            raise SchemaError(f"{where}.{key} must be an object of schemas")
        for name, child in named.items():
            _check_node(child, f"{where}.{key}.{name}")
    for key in _LISTS:
        listed = node.get(key, [])
        if not isinstance(listed, list):
            raise SchemaError(f"{where}.{key} must be a list of schemas")
        for place, child in enumerate(listed):
            _check_node(child, f"{where}.{key}[{place}]")
    for key in _ONE:
        child = node.get(key, True)
        if not (key == "items" and isinstance(child, list)):
            _check_node(child, f"{where}.{key}")


def copy_object(value: JsonObject) -> JsonObject:
    """A copy whose objects and lists are its own."""
    return {key: _copy(child) for key, child in value.items()}


def _copy(value: Json) -> Json:
    if isinstance(value, dict):
        return copy_object(value)
    return [_copy(child) for child in value] if isinstance(value, list) else value


def _mend(error: ValidationError, arguments: JsonObject) -> dict[_Path, Json] | None:
    """New values by their place, `_MISSING` to take one away; None if nothing can be done about this error."""
    path = tuple(error.instance_path)
    value = _get(arguments, path)
    kind = type(error.kind).__name__
    if kind == "Type":
        return _converted(path, value, getattr(error.kind, "types", ()))
    if kind == "Enum":
        return _chosen(path, value, getattr(error.kind, "options", ()))
    if kind == "Constant":
        return _chosen(path, value, [getattr(error.kind, "expected_value", None)])
    if kind in ("AnyOf", "OneOfNotValid"):
        return _branch(path, arguments, getattr(error.kind, "context", ()))
    return None


def _converted(path: _Path, value: Json, types: Iterable[str]) -> dict[_Path, Json] | None:
    for wanted in types:
        mended = _convert(value, wanted)
        if mended is not _MISSING:
            return {path: mended}
    if value is None and path and isinstance(path[-1], str):
        return {path: _MISSING}
    return None


def _branch(
    path: _Path, arguments: JsonObject, branches: Sequence[Sequence[ValidationError]]
) -> dict[_Path, Json] | None:
    """What makes one alternative fit: first one whose type is right already, then one whose type can be made so."""
    right = [b for b in branches if not any(_is_type_error_at(error, path) for error in b)]
    for branch in [*right, *(b for b in branches if b not in right)]:
        changes: dict[_Path, Json] = {}
        for error in branch:
            change = _mend(error, arguments)
            if change is None:
                break
            changes.update(change)
        else:
            if changes:
                return changes
    return None


def _is_type_error_at(error: ValidationError, path: _Path) -> bool:
    return type(error.kind).__name__ == "Type" and tuple(error.instance_path) == path


def _convert(value: Json, wanted: str) -> Any:
    if wanted in ("integer", "number") and isinstance(value, str):
        return _number(value.strip(), wanted)
    if wanted == "boolean" and isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower(), _MISSING)
    if wanted == "string" and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value) if math.isfinite(value) else _MISSING
    if wanted == "array" and value is not None and not isinstance(value, list):
        parsed = _parsed(value, "[", list)
        return [value] if parsed is _MISSING else parsed
    if wanted == "object":
        return _parsed(value, "{", dict)
    return _MISSING


def _number(text: str, wanted: str) -> Any:
    if not re.fullmatch(_NUMBER, text, re.ASCII):
        return _MISSING
    if re.fullmatch(_INTEGER, text, re.ASCII):
        return int(text)
    number = float(text)
    if not math.isfinite(number):
        return _MISSING
    if wanted == "integer":
        return int(number) if number.is_integer() else _MISSING
    return number


_NUMBER = r"[+-]?(?:\d{1,400}(?:\.\d{0,400})?|\.\d{1,400})(?:[eE][+-]?\d{1,4})?"
_INTEGER = r"[+-]?\d+"


def _parsed(value: Json, opening: str, kind: type) -> Any:
    if not isinstance(value, str) or len(value) > _REPAIR_LIMIT or not value.lstrip().startswith(opening):
        return _MISSING
    try:
        parsed = decode_json(value)
    except ValueError:
        return _MISSING
    return parsed if isinstance(parsed, kind) else _MISSING


def _chosen(path: _Path, value: Json, options: Sequence[Json]) -> dict[_Path, Json] | None:
    """The option that is written as `value` is, but for its type."""
    if isinstance(value, str):
        for option in options:
            if isinstance(option, int | float) and _convert(value, _type_name(option)) == option:
                return {path: option}
    elif isinstance(value, int | float) and not isinstance(value, bool) and str(value) in options:
        return {path: str(value)}
    elif value is None and path and isinstance(path[-1], str):
        return {path: _MISSING}
    return None


def _get(value: Json, path: Iterable[str | int]) -> Json:
    node: Any = value
    for key in path:
        node = node[key]
    found: Json = node
    return found


def _put(root: JsonObject, path: _Path, value: Json) -> None:
    if not path:
        return
    try:
        parent: Any = _get(root, path[:-1])
        if value is _MISSING:
            del parent[path[-1]]
        else:
            parent[path[-1]] = value
    except (KeyError, IndexError, TypeError):
        return  # a change further up replaced the place


def _describe(error: ValidationError, arguments: JsonObject) -> Iterable[str]:
    where = _place(error.instance_path)
    kind = error.kind
    match type(kind).__name__:
        case "Type":
            found = _type_name(_get_or_none(arguments, error.instance_path))
            yield _line(where, f"expected {' or '.join(getattr(kind, 'types', ()))}, got {found}")
        case "Required":
            yield _line(_place([*error.instance_path, getattr(kind, "property", "")]), "missing")
        case "AdditionalProperties" | "UnevaluatedProperties":
            for name in getattr(kind, "unexpected", ()):
                yield _line(_place([*error.instance_path, name]), "not a known argument")
        case "AnyOf" | "OneOfNotValid":
            seen: dict[str, None] = {}
            for branch in getattr(kind, "context", ()):
                for inner in branch[:1]:
                    seen.update(dict.fromkeys(_describe(inner, arguments)))
            yield _line(where, "fits none of its alternatives: " + "; ".join(seen))
        case _:
            yield _line(where, error.message)


def _line(where: str, text: str) -> str:
    return _one_line(f"{where}: {text}")


def _one_line(text: str) -> str:
    text = " ".join(text.split("\n\n", 1)[0].split())
    return text if len(text) <= _LINE_LENGTH else text[: _LINE_LENGTH - 1] + "…"


def _place(path: Iterable[str | int]) -> str:
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)
    return text.removeprefix(".") or "arguments"


def _get_or_none(value: Json, path: Iterable[str | int]) -> Json:
    try:
        return _get(value, path)
    except (KeyError, IndexError, TypeError):
        return None


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
        case _:
            return "object"


def _scrubbed(value: Any) -> Any:
    """A copy without lone surrogates, for a validator that reads UTF-8 only."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_scrubbed(key): _scrubbed(child) for key, child in value.items()}
    if isinstance(value, list):
        return [_scrubbed(child) for child in value]
    return value


def _refuse(uri: str) -> Json:
    raise ValueError(f"{uri!r} lies outside the schema, and nothing is fetched")
