"""Whatever the schemas of tools are, each sentence of the grammar is JSON that names one of them and fits its schema."""

import json
from random import Random
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cantle_ai.apis.llama_cpp_grammar import ANSWER_HEAD, call_head, grammar_of
from cantle_ai.context import ToolDefinition
from packages.ai.tests.local.gbnf import Grammar
from tests.support.samples import samples

DRAWS = 20


def tool(parameters: dict[str, Any], name: str = "t") -> ToolDefinition:
    return ToolDefinition(name, "", parameters)


def sentences(*tools: ToolDefinition, count: int = DRAWS) -> list[dict[str, Any]]:
    grammar = Grammar(grammar_of(tools))
    found = []
    for seed in range(count):
        try:
            found.append(json.loads(grammar.sentence(Random(seed))))
        except (
            RecursionError
        ):  # a schema may ask for an object in itself without end: the limit of tokens cuts it
            continue
    return found


def calls(parameters: dict[str, Any], count: int = DRAWS) -> list[Any]:
    """The arguments of the calls among sentences."""
    drawn = sentences(tool(parameters), count=count)
    return [sentence["arguments"] for sentence in drawn if "tool" in sentence]


def test_the_grammar_of_a_tool() -> None:
    parameters = {"type": "object", "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}}}
    root, _, rest = grammar_of([tool({**parameters, "required": ["path"]}, "read")]).partition("\n")
    assert root == (
        r'root ::= "{\"answer\": \"" char* "\"}" | "{\"tool\": \"read\", \"arguments\": " '
        r'("{" "\"path\"" ": " string (", " "\"limit\"" ": " integer)? "}") "}"'
    )
    assert "string ::= " in rest


def test_an_answer_is_words_or_a_call() -> None:
    drawn = sentences(
        tool({"type": "object", "properties": {}}, "a"), tool({"type": "object"}, 'o"dd\n é'), count=60
    )
    kinds = {sentence.get("tool") for sentence in drawn}
    assert kinds == {None, "a", 'o"dd\n é'}
    assert all(set(sentence) in ({"answer"}, {"tool", "arguments"}) for sentence in drawn)
    assert all(sentence["arguments"] == {} for sentence in drawn if "tool" in sentence)


def test_heads_are_what_sentences_begin_with() -> None:
    grammar = Grammar(grammar_of([tool({}, "x")]))
    drawn = {grammar.sentence(Random(seed)) for seed in range(DRAWS)}
    assert all(sentence.startswith((ANSWER_HEAD, call_head("x"))) for sentence in drawn)


@pytest.mark.parametrize(
    "parameters",
    [
        {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "number"}}},
        {"type": "object", "properties": {"a": {"type": "string"}, "b": {}}, "required": ["b", "c"]},
        {
            "type": "object",
            "properties": {"a": {"enum": ["x", 'q"\\', 1, None, {"k": [1]}]}},
            "required": ["a"],
        },
        {"type": "object", "properties": {"a": {"const": "only"}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"type": ["string", "null"]}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"anyOf": [{"type": "integer"}, {"type": "boolean"}]}}},
        {
            "type": "object",
            "properties": {"a": {"type": "array", "items": {"type": "integer"}, "minItems": 2}},
        },
        {"type": "object", "properties": {"a": {"type": "array", "maxItems": 0}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"type": "array", "minItems": 1, "maxItems": 2}}},
        {"type": "object", "properties": {"a": {"type": "string", "minLength": 2, "maxLength": 3}}},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"type": "object", "properties": {"a": {"type": "object"}}, "required": ["a"]},
        {"type": "object", "properties": {"a": False, "b": True}},
        {
            "type": "object",
            "properties": {"tree": {"$ref": "#/$defs/node"}},
            "required": ["tree"],
            "$defs": {
                "node": {
                    "type": "object",
                    "properties": {"name": {"type": "string"}, "left": {"$ref": "#/$defs/node"}},
                    "required": ["name"],
                    "additionalProperties": False,
                }
            },
        },
        {
            "$ref": "#/definitions/x",
            "definitions": {"x": {"type": "object", "properties": {"n": {"type": "null"}}}},
        },
        {"allOf": [{"type": "object", "required": ["a"]}, {"properties": {"a": {"type": "boolean"}}}]},
        {
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/b%20c~1d"}, "e": {"$ref": "#/allOf/0/properties/f"}},
            "required": ["a", "e"],
            "$defs": {"b c/d": {"type": "integer"}},
            "allOf": [{"properties": {"f": {"type": "boolean"}}}],
        },
        {"type": "object", "required": ["a"], "additionalProperties": {"type": "integer"}},
        {"type": "object", "properties": {"a": {"type": "array", "items": False}}, "required": ["a"]},
        {
            "anyOf": [
                {"type": "object", "properties": {"k": {"const": "a"}}, "required": ["k"]},
                {
                    "type": "object",
                    "properties": {"k": {"const": "b"}, "n": {"type": "integer"}},
                    "required": ["k", "n"],
                },
            ]
        },
    ],
    ids=lambda value: json.dumps(value)[:60],
)
def test_calls_fit_the_schema(parameters: dict[str, Any]) -> None:
    drawn = calls(parameters, 60)
    assert drawn
    for arguments in drawn:
        jsonschema_rs.validate(parameters, arguments)


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"type": "string"},
        {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(?=x)"}}},
        {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1/other"}}},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}},
        {"type": "object", "properties": {"a": {"$ref": "#"}}},
        {"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}},
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        {"anyOf": [{"$ref": "#"}, {"type": "object"}]},
        {"anyOf": []},
        {"type": "object", "properties": {"a": {"type": "weird"}, "b": {"type": []}, "c": {"enum": []}}},
        {"type": "object", "properties": {"a": {"not": {}}, "b": {"oneOf": [True, False]}}},
        {"type": "object", "properties": {"a": {"type": "array", "prefixItems": [{"type": "string"}]}}},
        {"type": "object", "properties": {"a": {"type": "string", "minLength": 100_000}}},
        {"type": "object", "properties": "none", "required": "none"},
        {
            "type": "object",
            "properties": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}},
            "$defs": {"b": {"anyOf": [{"$ref": "#/$defs/b"}]}},
        },
    ],
    ids=lambda value: json.dumps(value)[:60],
)
def test_what_a_grammar_cannot_say_still_gives_objects(parameters: dict[str, Any]) -> None:
    drawn = calls(parameters, 60)
    assert drawn and all(isinstance(arguments, dict) for arguments in drawn)


def test_a_schema_that_refers_to_itself_everywhere_stays_small() -> None:
    names = [f"n{number}" for number in range(30)]
    node = {
        "type": "object",
        "properties": {name: {"$ref": "#/$defs/node", "minProperties": 0} for name in names},
    }
    grammar = grammar_of([tool({"$ref": "#/$defs/node", "$defs": {"node": node}})])
    assert len(grammar) < 500_000
    Grammar(grammar)


def test_counts_do_not_stand_inside_counts() -> None:
    """llama.cpp multiplies those of one rule, and refuses the grammar from 2000 on; a rule's name begins anew."""
    words = {"type": "array", "maxItems": 50, "items": {"type": "string", "maxLength": 100}}
    properties = {"a": words, "b": {"type": "array", "maxItems": 50, "items": words}}
    rules = grammar_of([tool({"type": "object", "properties": properties})]).splitlines()
    assert any("{0,100}" in rule for rule in rules) and any("{0,49}" in rule for rule in rules)
    assert not any("{0,100}" in rule and "{0,49}" in rule for rule in rules)


def test_rules_that_say_the_same_are_one() -> None:
    properties = {name: {"type": "string", "maxLength": 9} for name in "abc"}
    tools = [tool({"type": "object", "properties": properties}, name) for name in ("t", "u")]
    assert grammar_of(tools).count("{0,9}") == 1


scalars = st.sampled_from(
    [
        {"type": "string"},
        {"type": "string", "maxLength": 4},
        {"type": "integer"},
        {"type": "number"},
        {"type": "boolean"},
        {"type": "null"},
        {"enum": ["a", "b c", 3]},
        {"const": {"x": 1}},
        {"type": ["integer", "string"]},
        {"$ref": "#/$defs/s"},
    ]
)
names = st.text(max_size=5)


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    @st.composite
    def draw(make: st.DrawFn) -> dict[str, Any]:
        properties = make(st.dictionaries(names, inner, max_size=4))
        needed = make(st.lists(st.sampled_from(sorted(properties)), unique=True)) if properties else []
        return {"type": "object", "properties": properties, "required": needed, "additionalProperties": False}

    return draw()


schemas = st.recursive(
    scalars,
    lambda inner: st.one_of(
        objects(inner),
        st.builds(
            lambda items, least: {"type": "array", "items": items, "minItems": least},
            inner,
            st.integers(0, 2),
        ),
        st.builds(lambda options: {"anyOf": options}, st.lists(inner, min_size=1, max_size=3)),
    ),
    max_leaves=8,
)


@given(st.dictionaries(names, objects(schemas), min_size=1, max_size=3), st.integers(0, 2**32))
@settings(max_examples=samples(500, 60), deadline=None)
def test_every_sentence_is_a_call_that_fits_or_words(tools: dict[str, Any], seed: int) -> None:
    tables = {name: {**schema, "$defs": {"s": {"type": "string"}}} for name, schema in tools.items()}
    grammar = Grammar(grammar_of([tool(schema, name) for name, schema in tables.items()]))
    random = Random(seed)
    for _ in range(5):
        sentence = json.loads(grammar.sentence(random))
        if "answer" not in sentence:
            jsonschema_rs.validate(tables[sentence["tool"]], sentence["arguments"])
