"""What is mended in arguments, what is refused, and in which words."""

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cantle_agent.errors import SchemaError
from cantle_agent.schema import ToolSchema, check_parameters, problem_text, schema_of
from cantle_ai.codec import JsonObject
from tests.support.samples import samples


def of(node: Any, *, required: bool = False, **root: Any) -> ToolSchema:
    """The schema of an object with the one property `x`."""
    schema: dict[str, Any] = {"type": "object", "properties": {"x": node}, **root}
    return ToolSchema({**schema, "required": ["x"]} if required else schema)


INTEGERS: JsonObject = {"type": "array", "items": {"type": "integer"}}
EDITS = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"old": {"type": "string"}, "all": {"type": "boolean"}},
        "required": ["old"],
    },
}
NULLABLE = {"anyOf": [{"type": "integer"}, {"type": "null"}]}
NOTHING: Any = object()


@pytest.mark.parametrize(
    ("node", "given", "mended"),
    [
        ({"type": "integer"}, "5", 5),
        ({"type": "integer"}, " -12 ", -12),
        ({"type": "integer"}, "5.0", 5),
        ({"type": "integer"}, "1e3", 1000),
        ({"type": "number"}, "5", 5),
        ({"type": "number"}, "2.5", 2.5),
        ({"type": "boolean"}, "true", True),
        ({"type": "boolean"}, "False", False),
        ({"type": "string"}, 5, "5"),
        ({"type": "string"}, 2.5, "2.5"),
        (INTEGERS, 5, [5]),
        (INTEGERS, "[1, 2]", [1, 2]),
        (INTEGERS, '["1", 2]', [1, 2]),
        (INTEGERS, "5", [5]),
        ({"type": "array", "items": {"type": "string"}}, "a", ["a"]),
        ({"type": "array", "items": {"type": "string"}}, "[not json", ["[not json"]),
        (EDITS, '[{"old": "a", "all": "true"}]', [{"old": "a", "all": True}]),
        (EDITS, {"old": "a"}, [{"old": "a"}]),
        (EDITS, '{"old": "a"}', [{"old": "a"}]),
        ({"type": "object"}, '{"a": 1}', {"a": 1}),
        ({"type": "integer"}, None, NOTHING),
        ({"type": "string", "enum": ["a"]}, None, NOTHING),
        (NULLABLE, "5", 5),
        (NULLABLE, None, None),
        ({"type": ["integer", "null"]}, "7", 7),
        ({"enum": [1, 2]}, "2", 2),
        ({"enum": ["1", "2"]}, 2, "2"),
        ({"const": 3}, "3", 3),
        ({"$ref": "#/$defs/N"}, "5", 5),
        ({"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]}, ["1"], [1]),
        ({"oneOf": [{"type": "boolean"}, {"type": "integer"}]}, "6", 6),
        ({"allOf": [{"type": "integer"}]}, "6", 6),
    ],
)
def test_what_is_meant_is_mended(node: Any, given: Any, mended: Any):
    more: dict[str, Any] = {"$defs": {"N": {"type": "integer"}}}
    schema = of(node, **more)
    arguments = {"x": given}
    fitted, problems = schema.fit(arguments)
    assert not problems
    assert fitted == ({} if mended is NOTHING else {"x": mended})
    assert arguments == {"x": given}
    if mended is not NOTHING:
        assert type(fitted["x"]) is type(mended)


@pytest.mark.parametrize(
    ("node", "given", "problem"),
    [
        ({"type": "integer"}, "five", "x: expected integer, got string"),
        ({"type": "integer"}, "5.5", "x: expected integer, got string"),
        ({"type": "integer"}, True, "x: expected integer, got boolean"),
        ({"type": "integer"}, "٣", "x: expected integer, got string"),
        ({"type": "integer"}, "9" * 5000, "x: expected integer, got string"),
        ({"type": "number"}, "1e9999", "x: expected number, got string"),
        ({"type": "number"}, "NaN", "x: expected number, got string"),
        ({"type": "boolean"}, "yes", "x: expected boolean, got string"),
        ({"type": "boolean"}, 1, "x: expected boolean, got integer"),
        ({"type": "string"}, {"a": 1}, "x: expected string, got object"),
        ({"type": "object"}, "{torn", "x: expected object, got string"),
        ({"type": "object"}, [], "x: expected object, got array"),
        ({"type": "integer", "minimum": 3}, "2", "x: the value is less than the minimum of 3"),
        (EDITS, '[{"new": "a"}]', "x[0].old: missing"),
        ({"enum": ["a", "b"]}, "c", 'x: the value is not one of "a" or "b"'),
    ],
)
def test_what_can_not_be_mended_is_named_with_what_was_expected(node: Any, given: Any, problem: str):
    _, problems = of(node).fit({"x": given})
    assert problems == [problem]


def test_null_for_a_required_argument_is_missing():
    _, problems = of({"type": "integer"}, required=True).fit({"x": None})
    assert problems == ["x: missing"]


def test_every_failing_place_is_named():
    schema = ToolSchema(
        {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": INTEGERS},
            "required": ["c"],
            "additionalProperties": False,
        }
    )
    _, problems = schema.fit({"a": "x", "b": [1, {}], "d": 1})
    assert set(problems) == {
        "a: expected integer, got string",
        "b[1]: expected integer, got object",
        "c: missing",
        "d: not a known argument",
    }


def test_the_text_for_the_model_is_bounded():
    schema = of({"type": "array", "items": {"type": "integer"}})
    _, problems = schema.fit({"x": ["y" * 10_000] * 500})
    text = problem_text("tool", problems)
    assert len(text) < 1500 and "- and 490 more" in text
    _, problems = of({"enum": ["v" * 5000]}).fit({"x": "w" * 5000})
    assert len(problem_text("tool", problems)) < 500


def test_alternatives_are_listed_when_none_fits():
    _, problems = of({"anyOf": [{"type": "integer"}, {"type": "object"}]}).fit({"x": "?"})
    assert problems == [
        "x: fits none of its alternatives: x: expected integer, got string; x: expected object, got string"
    ]


def test_valid_arguments_come_back_as_they_are():
    schema = of({"anyOf": [{"type": "string"}, {"type": "integer"}]})
    given: list[JsonObject] = [{"x": "5"}, {"x": 5}, {}, {"other": None}]
    for arguments in given:
        fitted, problems = schema.fit(arguments)
        assert fitted is arguments and not problems


def test_what_is_valid_beside_a_mistake_is_not_changed():
    schema = ToolSchema(
        {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": ["string", "integer"]}}}
    )
    fitted, _ = schema.fit({"a": "1", "b": "2", "c": "3"})
    assert fitted == {"a": 1, "b": "2", "c": "3"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
NODES = st.recursive(
    st.sampled_from(["string", "integer", "number", "boolean", "null"]).map(lambda name: {"type": name})
    | st.just({}),
    lambda inner: (
        inner.map(lambda node: {"type": "array", "items": node})
        | inner.map(lambda node: {"type": "object", "properties": {"k": node}})
        | st.lists(inner, min_size=1, max_size=3).map(lambda nodes: {"anyOf": nodes})
    ),
    max_leaves=5,
)


@settings(max_examples=samples(full=2000, quick=150), deadline=None)
@given(node=NODES, value=JSON)
def test_mending_is_safe_whatever_comes(node: Any, value: Any):
    schema = of(node)
    arguments = {"x": value}
    fitted, problems = schema.fit(arguments)
    assert arguments == {"x": value}
    if problems:
        problem_text("tool", problems)
    else:
        again, none = schema.fit(fitted)
        assert again is fitted and not none


def test_a_lone_surrogate_is_data():
    schema = of({"type": "string"}, required=True)
    arguments: JsonObject = {"x": "\ud800 half a pair"}
    assert schema.fit(arguments) == (arguments, [])
    fitted, problems = of({"type": "array", "items": {"type": "string"}}).fit({"x": "\ud800"})
    assert (fitted, problems) == ({"x": ["\ud800"]}, [])


def test_an_integer_past_64_bits_is_data():
    huge = 10**40
    assert of({"type": "integer"}).fit({"x": huge}) == ({"x": huge}, [])
    assert of({"type": "integer"}).fit({"x": str(huge)}) == ({"x": huge}, [])


def test_arguments_that_are_no_json_are_refused_in_words():
    with pytest.raises(ValueError, match="not JSON"):
        of({"type": "integer"}).fit({"x": object()})  # type: ignore[dict-item]


def test_cost_grows_with_the_arguments():
    schema = of(INTEGERS)

    def cost(count: int) -> float:
        began = time.process_time()
        fitted, problems = schema.fit({"x": ["1"] * count})
        assert not problems and fitted["x"] == [1] * count
        return time.process_time() - began

    small = min(cost(2_000) for _ in range(9))
    assert min(cost(20_000) for _ in range(9)) < 30 * small


# --- schemas


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        (None, "a JSON schema, an object, not NoneType"),
        ([], "not list"),
        ({"type": "string"}, "must describe an object"),
        ({"type": "objekt"}, "must describe an object"),
        ({"properties": []}, "parameters.properties must be an object of schemas"),
        ({"properties": {"a": "string"}}, "parameters.properties.a must be a schema, not str"),
        ({"properties": {"a": {"type": "int"}}}, "parameters.properties.a.type: 'int' is not a JSON type"),
        ({"required": "a"}, "parameters.required must be a list of names"),
        ({"properties": {"a": {"items": 5}}}, "parameters.properties.a.items must be a schema"),
        ({"anyOf": {}}, "parameters.anyOf must be a list of schemas"),
        ({"properties": {"a": {"$ref": "http://x/y"}}}, "nothing is fetched"),
        ({"properties": {"a": {"$ref": "file:///etc/passwd"}}}, "nothing is fetched"),
    ],
)
def test_what_is_no_schema_is_said_at_registration(parameters: Any, problem: str):
    with pytest.raises(SchemaError) as refused:
        check_parameters(parameters)
    assert problem in str(refused.value)
    with pytest.raises(SchemaError):
        ToolSchema(parameters)


@pytest.mark.parametrize(
    "parameters",
    [
        {"properties": {"a": {"pattern": "("}}},
        {"properties": {"a": {"$ref": "#/nowhere"}}},
        {"properties": {"a": {"minimum": "3"}}},
        {"$id": "http://127.0.0.1:9/", "properties": {"a": {"$dynamicRef": "http://127.0.0.1:9/other"}}},
        {"$schema": "http://127.0.0.1:9/meta"},
    ],
)
def test_what_only_the_validator_sees_is_said_at_compilation(parameters: Any):
    check_parameters(parameters)
    with pytest.raises(SchemaError) as refused:
        ToolSchema(parameters)
    assert 0 < len(str(refused.value)) <= 200


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"type": "object"},
        {"properties": {"a": True}},
        {"properties": {"a": {"items": [{}, {}]}}, "$defs": {}},
    ],
)
def test_odd_but_valid_schemas_pass(parameters: Any):
    check_parameters(parameters)


def test_a_schema_is_compiled_once():
    parameters: dict[str, Any] = {"type": "object"}
    assert schema_of(parameters) is schema_of(parameters)
    assert schema_of(parameters) is not schema_of({"type": "object"})
    for number in range(600):
        schema_of({"title": str(number)})
    assert schema_of(parameters).fit({}) == ({}, [])
