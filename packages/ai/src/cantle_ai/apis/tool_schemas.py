"""JSON schemas as providers take them: strict where theirs can be, with references inlined, cleaned up for Gemini.

A schema that is sent strict binds the model while it writes, so its arguments cannot be wrong; but providers take
only a part of JSON schema for that, each its own, and refuse the whole request for one keyword more. So a schema
goes out strict only if every node of it is known to be taken, and as it is otherwise.

All functions are pure. None changes what it is given, and each keeps what it made of a schema, by the identity of
the object: asking again costs a look-up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from cantle_ai.apis.gemini_schemas import cleaned, gemini_node, openapi_node
from cantle_ai.apis.object_schemas import plain_object
from cantle_ai.apis.schema_references import without_references
from cantle_ai.apis.strict_schemas import ANTHROPIC, OPENAI, StrictSchema, strict_schema
from cantle_ai.codec import JsonObject
from cantle_ai.model import ResponseSchema

__all__ = [
    "answer_schema_for_openai",
    "gemini_schema",
    "inlined",
    "object_schema",
    "openapi_schema",
    "strict_for_anthropic",
    "strict_for_openai",
    "strict_tools_for_anthropic",
]

_MOST_STRICT = 20
_MOST_OPTIONAL = 24
_MOST_UNIONS = 16
"""Anthropic's limits for the strict tools of one request together."""
_T = TypeVar("_T")


def strict_for_openai(parameters: JsonObject) -> StrictSchema | None:
    """`parameters` in OpenAI's strict form; None if they cannot be sent strict.

    Every object is closed and requires all its properties; what could be left out may be null instead. From
    "Structured outputs" of OpenAI's documentation, "Supported schemas".
    """
    return _kept(strict_for_openai, parameters, lambda: strict_schema(parameters, OPENAI))


def strict_for_anthropic(parameters: JsonObject) -> StrictSchema | None:
    """`parameters` in Anthropic's strict form; None if they cannot be sent strict.

    Every object is closed; properties may be left out. No recursion, and no bounds on numbers or lengths. From
    "Structured outputs" of Anthropic's documentation, "JSON Schema limitations".
    """
    return _kept(strict_for_anthropic, parameters, lambda: strict_schema(parameters, ANTHROPIC))


def strict_tools_for_anthropic(tools: Iterable[JsonObject]) -> list[StrictSchema | None]:
    """The parameters of each tool of a request in Anthropic's strict form; None for those that go as they are.

    The first ones go strict, and as many as the API takes in one request: there is a limit to their number, to
    what may be left out in all of them, and to their unions ("Structured outputs" of its documentation).
    """
    chosen: list[StrictSchema | None] = []
    count = optional = unions = 0
    for parameters in tools:
        schema = strict_for_anthropic(parameters)
        if (
            schema is None
            or count == _MOST_STRICT
            or optional + schema.optional > _MOST_OPTIONAL
            or unions + schema.unions > _MOST_UNIONS
        ):
            chosen.append(None)
            continue
        count, optional, unions = count + 1, optional + schema.optional, unions + schema.unions
        chosen.append(schema)
    return chosen


def answer_schema_for_openai(wanted: ResponseSchema) -> tuple[JsonObject, bool]:
    """The schema that an answer is asked for by, and whether it is sent strict.

    One that says in strict form what it says now is enforced in that form; any other would be refused as strict.
    """
    made = strict_for_openai(wanted.schema) if wanted.strict else None
    if made is None or made.nulled:
        return wanted.schema, False
    return made.parameters, True


def object_schema(parameters: JsonObject) -> JsonObject:
    """`parameters` as a tool can have them that is not strict: an object, with no alternatives at its top.

    The properties of all alternatives are its own. The same object if nothing is to be done.
    """
    return _kept(object_schema, parameters, lambda: plain_object(parameters))


def inlined(parameters: JsonObject) -> JsonObject:
    """`parameters` without `$ref` and `$defs`: what they refer to stands in their place.

    Where a definition holds itself, the inner one is left open: its type and description, and no more. A reference
    that leads nowhere becomes a node that takes anything. The same object if nothing is to be done.
    """
    return _kept(inlined, parameters, lambda: without_references(parameters))


def gemini_schema(parameters: JsonObject) -> JsonObject:
    """`parameters` for a field of Gemini that takes JSON schema, such as `parametersJsonSchema`.

    References are inlined, `const` is an `enum` of one value, `oneOf` is `anyOf`, and keywords that describe the
    document (`$schema`, `$id`, …) are gone.
    """
    return _kept(gemini_schema, parameters, lambda: cleaned(inlined(parameters), gemini_node))


def openapi_schema(parameters: JsonObject) -> JsonObject:
    """`parameters` for a field of Gemini that takes the schemas of OpenAPI 3.0, such as `parameters`.

    As :func:`gemini_schema`, and further: one type a node, `nullable` for null, enumerations of texts, and no
    keyword that the vendor's `Schema` does not have.
    """
    return _kept(openapi_schema, parameters, lambda: cleaned(inlined(parameters), openapi_node))


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
