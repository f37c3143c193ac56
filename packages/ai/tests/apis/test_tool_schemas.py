"""Schemas as providers take them."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cantle_ai.apis.null_arguments import without_nulls
from cantle_ai.apis.tool_schemas import (
    gemini_schema,
    inlined,
    object_schema,
    openapi_schema,
    strict_for_anthropic,
    strict_for_openai,
)
from cantle_ai.codec import Json, JsonObject, encode_json
from cantle_ai.testing.server.schemas import check_schema
from tests.support.samples import samples

NULL: JsonObject = {"type": "null"}


def objects(properties: JsonObject, **more: Any) -> JsonObject:
    return {"type": "object", "properties": properties, **more}


def closed(properties: JsonObject, **more: Any) -> JsonObject:
    return objects(properties, required=[*properties], additionalProperties=False, **more)


def openai(parameters: JsonObject) -> JsonObject | None:
    made = strict_for_openai(parameters)
    return None if made is None else made.parameters


def anthropic(parameters: JsonObject) -> JsonObject | None:
    made = strict_for_anthropic(parameters)
    return None if made is None else made.parameters


TREE: JsonObject = objects(
    {"root": {"$ref": "#/$defs/Node"}},
    required=["root"],
    **{
        "$defs": {
            "Node": objects(
                {
                    "name": {"type": "string", "description": "what it is called"},
                    "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
                },
                required=["name", "children"],
            )
        }
    },
)


def test_strict_for_openai_requires_all_and_lets_the_optional_be_null() -> None:
    schema = objects({"a": {"type": "string"}, "b": {"type": "integer", "minimum": 1}}, required=["a"])
    made = strict_for_openai(schema)
    assert made is not None
    assert made.nulled
    assert made.parameters == closed(
        {"a": {"type": "string"}, "b": {"anyOf": [{"type": "integer", "minimum": 1}, NULL]}}
    )


@pytest.mark.parametrize(
    "optional",
    [
        {"type": ["string", "null"]},
        {"anyOf": [{"type": "string"}, NULL]},
        {"type": ["string", "null"], "enum": ["a", None]},
    ],
)
def test_what_may_be_null_already_is_not_made_nullable_again(optional: JsonObject) -> None:
    made = strict_for_openai(objects({"a": optional}))
    assert made is not None
    assert made.parameters == closed({"a": optional})
    assert not made.nulled


def test_objects_inside_are_closed_too() -> None:
    schema = objects(
        {"list": {"type": "array", "items": objects({"x": {"type": "number"}}, required=["x"])}},
        required=["list"],
    )
    assert openai(schema) == closed({"list": {"type": "array", "items": closed({"x": {"type": "number"}})}})


def test_a_tool_without_arguments_can_be_strict() -> None:
    assert openai({"type": "object"}) == closed({})
    assert openai(objects({})) == closed({})


@pytest.mark.fault("B05")
@pytest.mark.parametrize(
    "node",
    [
        {},
        {"description": "anything"},
        {"type": "array"},
        {"type": "array", "items": {}},
        {"type": "object"},
        {"type": "object", "additionalProperties": True},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "string", "minLength": 1},
        {"type": "string", "format": "no-such-format"},
        {"type": "string", "pattern": "(?=a)b"},
        {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        {"type": "array", "prefixItems": [{"type": "string"}]},
        {"allOf": [{"type": "string"}, {"pattern": "a"}]},
        {"not": {"type": "string"}},
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["b"]},
        {"anyOf": [{"type": "string"}, {}]},
        {"anyOf": []},
        {"type": "sting"},
        {"enum": [{"a": 1}]},
        {"$ref": "#/$defs/nowhere"},
        {"$ref": "https://example.com/schema"},
        True,
    ],
)
def test_b05_a_node_that_strict_mode_refuses_leaves_the_tool_as_it_is(node: Json) -> None:
    assert openai(objects({"a": node})) is None
    assert anthropic(objects({"a": node})) is None


@pytest.mark.fault("B05")
@pytest.mark.parametrize(
    "node",
    [
        {"type": "integer", "minimum": 1},
        {"type": "number", "exclusiveMaximum": 1},
        {"type": "number", "multipleOf": 2},
        {"type": "array", "items": {"type": "string"}, "maxItems": 3},
        {"type": "array", "items": {"type": "string"}, "minItems": 2},
        {"type": "string", "pattern": r"\bword"},
    ],
)
def test_b05_anthropic_takes_fewer_keywords(node: JsonObject) -> None:
    assert anthropic(objects({"a": node})) is None
    assert openai(objects({"a": node}, required=["a"])) == closed({"a": node})


@pytest.mark.parametrize(
    "root",
    [
        {"type": "object", "anyOf": [{"required": ["a"]}]},
        {"$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "properties": {}}}},
        {"type": "object", "additionalProperties": True},
        {"type": "string"},
    ],
)
def test_the_arguments_must_be_one_object(root: JsonObject) -> None:
    assert openai(root) is None
    assert anthropic(root) is None


def test_strict_for_anthropic_leaves_the_optional_optional() -> None:
    made = strict_for_anthropic(
        objects({"a": {"type": "string"}, "b": {"type": ["string", "null"]}}, required=["a"])
    )
    assert made is not None
    assert made.parameters == objects(
        {"a": {"type": "string"}, "b": {"type": ["string", "null"]}},
        required=["a"],
        additionalProperties=False,
    )
    assert (made.nulled, made.optional, made.unions) == (False, 1, 1)


def test_values_alone_get_their_type() -> None:
    assert openai(objects({"a": {"enum": ["x", "y"]}, "b": {"const": 1}}, required=["a", "b"])) == closed(
        {"a": {"enum": ["x", "y"], "type": "string"}, "b": {"const": 1, "type": "integer"}}
    )


def test_annotations_that_are_refused_are_dropped_and_a_default_is_said() -> None:
    schema = objects(
        {"a": {"type": "string", "default": "x", "examples": ["y"], "description": "A word."}},
        required=["a"],
        **{"$schema": "https://json-schema.org/draft/2020-12/schema"},
    )
    assert openai(schema) == closed({"a": {"type": "string", "description": 'A word. (Default: "x")'}})


def test_generators_wrappings_are_taken_off() -> None:
    schema = objects(
        {
            "a": {"allOf": [{"type": "string"}], "description": "one"},
            "b": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
        },
        required=["a", "b"],
    )
    assert openai(schema) == closed(
        {
            "a": {"type": "string", "description": "one"},
            "b": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        }
    )


@pytest.mark.fault("B07")
def test_b07_references_keep_their_definitions() -> None:
    made = openai(TREE)
    assert made is not None
    assert made["properties"] == {"root": {"$ref": "#/$defs/Node"}}
    assert made["$defs"] == {
        "Node": closed(
            {
                "name": {"type": "string", "description": "what it is called"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
            }
        )
    }
    assert anthropic(TREE) is None  # which takes no recursion


def test_a_reference_with_words_beside_it_is_put_in_place() -> None:
    schema = objects(
        {"a": {"$ref": "#/definitions/A", "description": "mine"}, "b": {"$ref": "#/definitions/A"}},
        required=["a", "b"],
        definitions={"A": {"type": "string", "description": "general"}},
    )
    for strict in (openai, anthropic):
        assert strict(schema) == closed(
            {"a": {"type": "string", "description": "mine"}, "b": {"$ref": "#/$defs/A"}},
            **{"$defs": {"A": {"type": "string", "description": "general"}}},
        )


def test_an_optional_reference_to_what_may_be_null_is_not_made_nullable() -> None:
    schema = objects({"a": {"$ref": "#/$defs/A"}}, **{"$defs": {"A": {"type": ["string", "null"]}}})
    made = strict_for_openai(schema)
    assert made is not None
    assert not made.nulled
    recursive = objects(
        {"a": {"$ref": "#/$defs/A"}}, **{"$defs": {"A": objects({"a": {"$ref": "#/$defs/A"}})}}
    )
    made = strict_for_openai(recursive)
    assert made is not None
    assert made.nulled
    assert made.parameters["$defs"] == {"A": closed({"a": {"anyOf": [{"$ref": "#/$defs/A"}, NULL]}})}


@pytest.mark.fault("B07")
def test_b07_references_can_be_put_in_place() -> None:
    schema = objects(
        {"a": {"$ref": "#/$defs/A", "description": "mine"}, "l": {"items": {"$ref": "#/$defs/B"}}},
        **{"$defs": {"A": {"type": "string", "title": "A"}, "B": {"anyOf": [{"$ref": "#/$defs/A"}, NULL]}}},
    )
    assert inlined(schema) == objects(
        {
            "a": {"type": "string", "title": "A", "description": "mine"},
            "l": {"items": {"anyOf": [{"type": "string", "title": "A"}, NULL]}},
        }
    )


@pytest.mark.fault("B07")
def test_b07_what_holds_itself_is_left_open_inside() -> None:
    made = inlined(TREE)
    assert "$ref" not in encode_json(made).decode()
    node = objects(
        {
            "name": {"type": "string", "description": "what it is called"},
            "children": {"type": "array", "items": {"type": "object"}},
        },
        required=["name", "children"],
    )
    assert made == objects({"root": node}, required=["root"])


def test_references_that_double_with_every_level_stay_bounded() -> None:
    definitions: JsonObject = {
        f"d{n}": objects({"a": {"$ref": f"#/$defs/d{n + 1}"}, "b": {"$ref": f"#/$defs/d{n + 1}"}})
        for n in range(60)
    }
    schema = objects({"a": {"$ref": "#/$defs/d0"}}, **{"$defs": definitions})
    assert len(encode_json(inlined(schema))) < 4_000_000


def test_a_property_may_be_called_like_a_keyword() -> None:
    schema = objects(
        {"$ref": {"type": "string"}, "definitions": {"type": "string"}, "const": {"type": "string"}}
    )
    assert inlined(schema) == schema
    assert gemini_schema(schema) == schema


@pytest.mark.fault("B07")
def test_b07_gemini_gets_enumerations_for_constants_and_no_schema_names() -> None:
    schema = objects(
        {"a": {"const": "x"}, "b": {"oneOf": [{"const": 1}, {"type": "string"}]}, "c": {"$ref": "#/$defs/C"}},
        **{"$schema": "s", "$id": "i", "$defs": {"C": {"const": None}}},
    )
    assert gemini_schema(schema) == objects(
        {"a": {"enum": ["x"]}, "b": {"anyOf": [{"enum": [1]}, {"type": "string"}]}, "c": {"enum": [None]}}
    )


def test_openapi_has_one_type_a_node() -> None:
    schema = objects(
        {
            "a": {"type": ["string", "null"], "minLength": 1},
            "b": {"type": ["string", "integer"]},
            "c": {"anyOf": [{"type": "integer", "exclusiveMinimum": 0}, NULL], "description": "c"},
            "d": {"const": "x"},
            "e": {"enum": [1, 2]},
            "f": {"type": "array"},
            "g": {"type": "object", "additionalProperties": {"type": "string"}},
            "h": {"type": "string", "format": "uri"},
        },
        additionalProperties=False,
    )
    assert openapi_schema(schema) == objects(
        {
            "a": {"type": "string", "nullable": True, "minLength": 1},
            "b": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            "c": {"type": "integer", "nullable": True, "description": "c"},
            "d": {"type": "string", "enum": ["x"]},
            "e": {"type": "integer"},
            "f": {"type": "array", "items": {"type": "string"}},
            "g": {"type": "object"},
            "h": {"type": "string"},
        }
    )


def test_nulls_that_stand_for_nothing_are_taken_away() -> None:
    schema = objects(
        {
            "a": {"type": "string"},
            "b": {"type": "string"},
            "n": {"type": ["string", "null"]},
            "deep": {"type": "array", "items": objects({"x": {"type": "string"}})},
        },
        required=["a"],
    )
    arguments: JsonObject = {
        "a": None,
        "b": None,
        "n": None,
        "other": None,
        "deep": [{"x": None}, {"x": "y"}],
    }
    assert without_nulls(schema, arguments) == {
        "a": None,
        "n": None,
        "other": None,
        "deep": [{}, {"x": "y"}],
    }
    whole: JsonObject = {"a": "x", "deep": [{"x": "y"}]}
    assert without_nulls(schema, whole) is whole


def test_nulls_go_wherever_a_strict_schema_asked_for_them() -> None:
    note: Any = {"type": "string"}
    schema = objects(
        {
            "tree": {"$ref": "#/$defs/Node"},
            "maybe": {"anyOf": [objects({"note": note}), NULL]},
            "either": {
                "oneOf": [
                    objects({"kind": {"const": "a"}, "x": note}, required=["kind"]),
                    objects({"kind": {"enum": ["b"]}, "x": {"type": ["string", "null"]}}, required=["kind"]),
                    objects({"items": {"type": "array", "items": objects({"note": note})}}),
                ]
            },
            "wrapped": {"allOf": [{"$ref": "#/$defs/Node"}], "description": "d"},
            "listed": {"anyOf": [note, {"type": "array", "items": objects({"note": note})}]},
        },
        **{
            "$defs": {
                "Node": objects(
                    {"note": note, "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
                    required=["children"],
                )
            }
        },
    )
    node: Json = {"note": "n", "children": []}
    for _ in range(20):
        node = {"note": None, "children": [node]}
    bare: Json = {"note": "n", "children": []}
    for _ in range(20):
        bare = {"children": [bare]}
    cases: list[tuple[Any, Any]] = [
        ({"tree": node}, {"tree": bare}),
        ({"maybe": {"note": None}}, {"maybe": {}}),
        ({"maybe": None, "tree": None, "listed": None}, {"maybe": None}),
        ({"either": {"kind": "a", "x": None}}, {"either": {"kind": "a"}}),
        ({"either": {"kind": "b", "x": None}}, {"either": {"kind": "b", "x": None}}),
        ({"either": {"items": [{"note": None}, {"note": "n"}]}}, {"either": {"items": [{}, {"note": "n"}]}}),
        ({"either": {"strange": None}}, {"either": {"strange": None}}),
        ({"wrapped": {"note": None, "children": []}}, {"wrapped": {"children": []}}),
        ({"listed": [{"note": None}]}, {"listed": [{}]}),
    ]
    for said, meant in cases:
        assert without_nulls(schema, said) == meant
    assert openai(schema) is not None


def test_what_was_made_of_a_schema_is_kept() -> None:
    schema = objects({"a": {"type": "string"}})
    for make in (strict_for_openai, strict_for_anthropic, gemini_schema, openapi_schema, inlined):
        assert make(schema) is make(schema)
    assert strict_for_openai(copy.deepcopy(schema)) is not strict_for_openai(schema)


def test_deep_schemas_end() -> None:
    deep: Json = {"type": "string"}
    for _ in range(500):
        deep = {"type": "array", "items": {"anyOf": [deep]}}
    schema = objects({"a": deep})
    assert openai(schema) is None
    assert anthropic(schema) is None
    for make in (inlined, gemini_schema, openapi_schema):
        assert make(schema)["type"] == "object"


_leaf = st.sampled_from(
    ["string", "integer", "null", "object", "array", "x", "#/$defs/A", "#", 1, None, True]
)
_keys = st.sampled_from(
    "type properties required items anyOf oneOf allOf enum const $ref $defs additionalProperties description default "
    "minimum format pattern A definitions".split()
)
_trees = st.recursive(
    _leaf,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_keys, inner, max_size=4),
    max_leaves=25,
)


@settings(max_examples=samples(2000, 100), deadline=None)
@given(st.dictionaries(_keys, _trees, max_size=5))
def test_any_object_is_read_without_a_fault_and_left_alone(schema: JsonObject) -> None:
    before = copy.deepcopy(schema)
    for make in (inlined, gemini_schema, openapi_schema):
        assert isinstance(make(schema), dict)
        encode_json(make(schema))
    for strict in (strict_for_openai, strict_for_anthropic):
        made = strict(schema)
        if made is not None:
            encode_json(made.parameters)
            assert made.parameters["additionalProperties"] is False
            if strict is strict_for_openai:
                check_schema(made.parameters, "parameters", strict=True)
    without_nulls(schema, {"A": None, "description": {"A": None}})
    assert schema == before


_names = st.sampled_from(["a", "b", "c"])
_scalars = st.fixed_dictionaries(
    {"type": st.sampled_from(["string", "integer", "boolean", "null", ["string", "null"]])},
    optional={
        "description": st.just("d"),
        "default": st.sampled_from([None, 1, "x"]),
        "enum": st.just(["x"]),
        "minimum": st.just(1),
        "format": st.sampled_from(["date", "odd"]),
    },
)
_nodes = st.recursive(
    _scalars
    | st.sampled_from([{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b", "description": "d"}, {"const": "x"}]),
    lambda inner: (
        st.fixed_dictionaries({"type": st.just("array"), "items": inner})
        | st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=2)})
        | st.fixed_dictionaries({"allOf": st.lists(inner, min_size=1, max_size=1)})
        | st.fixed_dictionaries(
            {"type": st.just("object"), "properties": st.dictionaries(_names, inner, min_size=1, max_size=3)}
        )
    ),
    max_leaves=8,
)


@pytest.mark.fault("B05", "B07")
@settings(max_examples=samples(2000, 100), deadline=None)
@given(st.dictionaries(_names, _nodes, max_size=3), st.lists(_names, unique=True), _nodes, _nodes)
def test_b05_what_is_strict_is_taken_by_a_strict_server(
    properties: JsonObject, required: list[str], one: JsonObject, two: JsonObject
) -> None:
    schema = objects(
        properties,
        required=[name for name in required if name in properties],
        **{"$defs": {"a": one, "b": two}},
    )
    made = openai(schema)
    if made is not None:
        check_schema(made, "parameters", strict=True)
    for make in (inlined, gemini_schema, openapi_schema):
        assert "$ref" not in encode_json(make(schema)).decode()


# --- an object at the top

TEXT: JsonObject = {"type": "string"}


@pytest.mark.fault("B07")
@pytest.mark.parametrize(
    ("given", "sent"),
    [
        (
            objects({"route": TEXT, "file": TEXT}, anyOf=[{"required": ["route"]}, {"required": ["file"]}]),
            objects({"route": TEXT, "file": TEXT}),
        ),
        (
            {
                "description": "d",
                "oneOf": [closed({"a": TEXT}), closed({"b": TEXT, "a": {"type": "integer"}})],
            },
            {"description": "d", **objects({"a": TEXT, "b": TEXT})},
        ),
        (
            objects({"a": TEXT}, required=["a"], allOf=[objects({"b": TEXT}, required=["b", "a"])]),
            objects({"a": TEXT, "b": TEXT}, required=["a", "b"]),
        ),
        (
            {"$ref": "#/$defs/In", "$defs": {"In": objects({"a": TEXT}, required=["a"])}},
            {"$defs": {"In": objects({"a": TEXT}, required=["a"])}, **objects({"a": TEXT}, required=["a"])},
        ),
        ({"$ref": "#", "anyOf": [{"$ref": "#"}, 3, {"properties": 1, "required": 2}]}, {"type": "object"}),
        ({}, {"type": "object"}),
        (objects({"a": {"anyOf": [TEXT, NULL]}}, enum=[{}]), objects({"a": {"anyOf": [TEXT, NULL]}})),
    ],
)
def test_b07_a_tool_is_an_object_without_alternatives_at_its_top(given, sent):
    before = copy.deepcopy(given)
    made = object_schema(given)
    assert (made, given) == (sent, before)
    check_schema(made, "tool")
    assert object_schema(made) is made


def test_an_object_is_left_as_it_is():
    assert object_schema(TREE) is TREE
