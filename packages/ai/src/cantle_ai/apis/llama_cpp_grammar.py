"""What a model may say when it has tools, as a grammar for llama.cpp (GBNF), made from the tools' schemas.

    root ::= {"answer": <string>} | {"tool": "read", "arguments": <object of read's schema>} | …

White space is fixed, properties come in one order (needed ones first), and what a grammar cannot express
(patterns, formats, ranges of numbers) is left to the check that follows a call. A part of a schema that is not
understood allows any JSON. So whatever the schemas, each sentence of the grammar is JSON that names a tool.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from urllib.parse import unquote

from cantle_ai.codec import Json, JsonObject
from cantle_ai.context import ToolDefinition

__all__ = ["ANSWER_HEAD", "call_head", "grammar_of"]

ANSWER_HEAD = '{"answer": "'
"""What an answer in words begins with, up to the string."""

_DEEPEST = 16
"""Schemas inside schemas. Below that, any JSON."""
_MOST_RULES = 2000
_MOST_CHARACTERS = 250_000
"""Of all rules together, roughly. llama.cpp reads about a million in a second, before each answer."""
_MOST_CHOICES = 64
_MOST_OPTIONAL = 24
"""What else there is to choose from is left out. Each choice that is open costs a look at the whole vocabulary, with
hundreds of them a second for each token."""
_MOST_REPEATS = 200
"""Longer minima and maxima are left to the check: a grammar spells repetitions out."""

_SAYS_NOTHING = frozenset({"$ref", "description", "title", "default", "examples", "$comment", "deprecated"})
"""What beside a reference changes nothing about it."""

_COMMON = r"""
value ::= string | number | "true" | "false" | "null" | list | map
list ::= "[" (value (", " value)*)? "]"
map ::= "{" (string ": " value (", " string ": " value)*)? "}"
string ::= "\"" char* "\""
char ::= [^"\\\x00-\x1f\x7f] | "\\" (["\\bfnrt] | "u" [0-9a-cefA-CEF] [0-9a-fA-F] [0-9a-fA-F] [0-9a-fA-F])
integer ::= "-"? ("0" | [1-9] [0-9]{0,15})
number ::= integer ("." [0-9]{1,15})?
"""
"""No escape stands for half a character: nothing takes a string with one."""


def call_head(name: str) -> str:
    """What a call of the tool `name` begins with, up to its arguments."""
    return f'{{"tool": {_text(name)}, "arguments": '


def grammar_of(tools: Sequence[ToolDefinition]) -> str:
    """The grammar for these tools, of which there must be one."""
    rules = _Rules()
    calls = []
    for tool in tools:
        arguments = _Schemas(rules, tool.parameters).arguments()
        calls.append(f'{_literal(call_head(tool.name))} {arguments} "}}"')
    answer = f'{_literal(ANSWER_HEAD)} char* "\\"}}"'
    return f"root ::= {' | '.join([answer, *calls])}\n{_COMMON}{rules.text()}"


class _Rules:
    """The rules made so far; `r0`, `r1` and so on."""

    def __init__(self) -> None:
        self._bodies: list[str] = []
        self._added: dict[str, str] = {}
        self._characters = 0

    @property
    def full(self) -> bool:
        """Whether there are as many as llama.cpp reads in reasonable time."""
        return len(self._bodies) >= _MOST_RULES or self._characters >= _MOST_CHARACTERS

    def reserve(self) -> str:
        """A name whose rule follows with :meth:`define`."""
        self._bodies.append("value")
        return f"r{len(self._bodies) - 1}"

    def define(self, name: str, body: str) -> str:
        """Give a reserved name its rule. Returns the name."""
        self._bodies[int(name[1:])] = body
        self._characters += len(body)
        return name

    def add(self, body: str) -> str:
        """The name of the rule with this body; there is one of each."""
        if body not in self._added:
            self._added[body] = self.define(self.reserve(), body)
        return self._added[body]

    def text(self) -> str:
        return "".join(f"r{number} ::= {body}\n" for number, body in enumerate(self._bodies))


class _Schemas:
    """Makes rules of one tool's schema."""

    def __init__(self, rules: _Rules, root: JsonObject) -> None:
        self._rules = rules
        self._root = root
        self._known: dict[str, str] = {}
        """The rules of what `$ref` refers to."""
        self._open: set[str] = set()
        """References that are being worked out, with no text between: a rule must not begin with itself."""

    def arguments(self) -> str:
        """The rule of the arguments, which are an object whatever the schema says."""
        objects = [each for each in self._alternatives(self._root, 0) if _may_be_object(each)]
        return f"({' | '.join([self._object(each, 0) for each in objects])})" if objects else "map"

    def _alternatives(self, schema: JsonObject, depth: int) -> Iterator[JsonObject]:
        """The schema with the choices at its top taken apart, and what it refers to in its place."""
        schema = self._merged(schema)
        choices = schema.get("anyOf") or schema.get("oneOf")
        if depth >= _DEEPEST or not isinstance(choices, list):
            yield schema
            return
        rest = {key: value for key, value in schema.items() if key not in ("anyOf", "oneOf")}
        for choice in choices[:_MOST_CHOICES]:
            if isinstance(choice, dict):
                yield from self._alternatives(_both(rest, choice), depth + 1)

    def _merged(self, schema: JsonObject) -> JsonObject:
        """The schema with the parts of `allOf`, and what it refers to, laid over each other."""
        seen: set[str] = set()
        for _ in range(_DEEPEST):
            reference, parts = schema.get("$ref"), schema.get("allOf")
            schema = {key: value for key, value in schema.items() if key not in ("$ref", "allOf")}
            if isinstance(reference, str) and reference not in seen:
                seen.add(reference)
                schema = _both(schema, self._referred(reference) or {})
            elif isinstance(parts, list):
                for part in parts:
                    schema = _both(schema, part) if isinstance(part, dict) else schema
            else:
                break
        return schema

    def _referred(self, reference: str) -> JsonObject | None:
        """What `#/$defs/name` and the like point to in this schema; None for anything else."""
        place: Json = self._root
        pointer, slash, rest = unquote(reference).partition("/")
        if pointer != "#":
            return None
        for part in rest.split("/") if slash else ():
            if isinstance(place, dict):
                place = place.get(part.replace("~1", "/").replace("~0", "~"))
            elif isinstance(place, list) and part.isdecimal() and int(part) < len(place):
                place = place[int(part)]
            else:
                return None
        return place if isinstance(place, dict) else None

    def _value(self, schema: Json, depth: int) -> str:
        """The rule, or its name, of any schema."""
        if not isinstance(schema, dict) or depth > _DEEPEST or self._rules.full:
            return "value"
        reference = schema.get("$ref")
        if isinstance(reference, str) and _SAYS_NOTHING.issuperset(schema):
            return self._reference(reference, depth)
        schema = self._merged(schema)
        if "const" in schema:
            return _literal(_text(schema["const"]))
        choices = schema.get("enum")
        if isinstance(choices, list) and choices:
            return self._choice([_literal(_text(each)) for each in choices[:_MOST_CHOICES]])
        choices = schema.get("anyOf") or schema.get("oneOf")
        if isinstance(choices, list) and choices:
            rest = {key: value for key, value in schema.items() if key not in ("anyOf", "oneOf")}
            kinds = [_both(rest, each) if isinstance(each, dict) else each for each in choices]
            return self._choice([self._value(each, depth + 1) for each in kinds[:_MOST_CHOICES]])
        kind = schema.get("type")
        if isinstance(kind, list) and kind:
            return self._choice([self._value({**schema, "type": each}, depth + 1) for each in kind])
        return self._typed(kind, schema, depth)

    def _reference(self, reference: str, depth: int) -> str:
        if reference in self._open:
            return "value"
        if reference not in self._known:
            target = self._referred(reference)
            if target is None:
                return "value"
            name = self._known[reference] = self._rules.reserve()
            self._open.add(reference)
            self._rules.define(name, self._value(target, depth + 1))
            self._open.discard(reference)
        return self._known[reference]

    def _choice(self, bodies: Sequence[str]) -> str:
        return self._rules.add(" | ".join(dict.fromkeys(bodies)))

    def _typed(self, kind: Json, schema: JsonObject, depth: int) -> str:
        match kind:
            case "string":
                return self._string(schema)
            case "integer" | "number":
                return kind
            case "boolean":
                return '("true" | "false")'
            case "null":
                return '"null"'
            case "array":
                return self._inside(self._array, schema, depth)
            case "object":
                return self._inside(self._object, schema, depth)
        if "properties" in schema:
            return self._inside(self._object, schema, depth)
        return self._inside(self._array, schema, depth) if "items" in schema else "value"

    def _inside(self, make: Callable[[JsonObject, int], str], schema: JsonObject, depth: int) -> str:
        """A rule that begins with a bracket, so that whatever is in it may refer to what is being made."""
        name, outside = self._rules.reserve(), self._open
        self._open = set()
        self._rules.define(name, make(schema, depth + 1))
        self._open = outside
        return name

    def _string(self, schema: JsonObject) -> str:
        """A rule of its own where characters are counted: llama.cpp refuses counts inside counts, unless by name."""
        least, most = _bounds(schema, "minLength", "maxLength")
        if not least and most is None:
            return "string"
        return self._rules.add(f'"\\"" char{_times(least, most)} "\\""')

    def _array(self, schema: JsonObject, depth: int) -> str:
        least, most = _bounds(schema, "minItems", "maxItems")
        if most == 0 or (schema.get("items") is False and "prefixItems" not in schema):
            return '"[]"'
        item = "value" if "prefixItems" in schema else self._value(schema.get("items"), depth)
        more = f'{item} (", " {item}){_times(max(least - 1, 0), None if most is None else most - 1)}'
        return f'"[" {more} "]"' if least else f'"[" ({more})? "]"'

    def _object(self, schema: JsonObject, depth: int) -> str:
        properties, needed = _properties(schema)
        if not properties:
            free = schema.get("additionalProperties", "properties" not in schema and depth > 0)
            if free is False:
                return '"{}"'
            pair = f'string ": " {self._value(free, depth)}'
            return f'"{{" ({pair} (", " {pair})*)? "}}"'
        pairs = {
            name: f'{_literal(_text(name))} ": " {self._value(each, depth)}'
            for name, each in properties.items()
        }
        first = ' ", " '.join(pairs[name] for name in needed)
        rest = [pairs[name] for name in pairs if name not in needed]
        if first:
            others = " ".join(f'(", " {pair})?' for pair in rest)
            return f'"{{" {first} {others} "}}"'
        return f'"{{" ({" | ".join(self._chains(rest))})? "}}"'

    def _chains(self, pairs: Sequence[str]) -> list[str]:
        """Any of the pairs in their order, but at least one: what follows each is a rule that the others share."""
        chains: list[str] = []
        behind = ""
        for pair in reversed(pairs):
            chains.append(f"{pair} {behind}")
            behind = self._rules.add(f'(", " {pair})? {behind}')
        return chains[::-1]


def _properties(schema: JsonObject) -> tuple[dict[str, Json], list[str]]:
    """The properties that may be given, and the names of those that must."""
    given, asked = schema.get("properties"), schema.get("required")
    needed = [name for name in asked if isinstance(name, str)] if isinstance(asked, list) else []
    needed = list(dict.fromkeys(needed))
    listed = given if isinstance(given, dict) else {}
    ordered = {name: each for name, each in listed.items() if each is not False or name in needed}
    optional = [name for name in ordered if name not in needed][:_MOST_OPTIONAL]
    others = schema.get("additionalProperties")
    return {name: ordered.get(name, others) for name in (*needed, *optional)}, needed


def _may_be_object(schema: JsonObject) -> bool:
    kind = schema.get("type", "object")
    return kind == "object" or (isinstance(kind, list) and "object" in kind)


def _both(first: JsonObject, second: JsonObject) -> JsonObject:
    """What fits both schemas, as far as properties go; otherwise the second counts."""
    merged = {**first, **second}
    properties, more = first.get("properties"), second.get("properties")
    if isinstance(properties, dict) and isinstance(more, dict):
        merged["properties"] = {**properties, **more}
    needed, also = first.get("required"), second.get("required")
    if isinstance(needed, list) and isinstance(also, list):
        merged["required"] = [*needed, *also]
    return merged


def _bounds(schema: JsonObject, least: str, most: str) -> tuple[int, int | None]:
    low, high = _count(schema.get(least)), _count(schema.get(most))
    return (low or 0), (None if high is None else max(high, low or 0))


def _count(value: Json) -> int | None:
    """A number of repetitions that a grammar can spell out; None for others."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value <= _MOST_REPEATS else None


def _times(least: int, most: int | None) -> str:
    if most is None:
        return f"{{{least},}}" if least else "*"
    return f"{{{least},{most}}}"


def _text(value: Json) -> str:
    """JSON as the grammar writes it: a blank behind each colon and comma."""
    return json.dumps(value)


def _literal(text: str) -> str:
    """A text as GBNF quotes it."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
