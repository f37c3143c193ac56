"""JSON that others wrote is read, and what is written is JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from cantle_ai.codec import Json, decode_json, decode_object, encode_json, kept_fields, unknown_fields
from packages.ai.tests.json_values import normal, values
from tests.support.samples import samples

MANY = settings(max_examples=samples(2000, 60), deadline=None)


def strict(data: bytes) -> object:
    """The value, read by a reader that refuses what is not in the standard."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    return json.loads(data.decode("utf-8"), parse_constant=refuse)


@MANY
@given(values)
def test_what_is_written_is_json_and_comes_back(value: Json) -> None:
    written = encode_json(value)
    assert b"\n" not in written and b"\r" not in written
    assert strict(written) == normal(value)
    assert decode_json(written) == normal(value)


@MANY
@given(values)
def test_it_reads_what_the_standard_library_writes(value: Json) -> None:
    assert normal(decode_json(json.dumps(value))) == normal(value)


@MANY
@given(st.binary(max_size=60))
def test_garbage_is_refused_with_one_kind_of_error(data: bytes) -> None:
    try:
        decode_json(data)
    except ValueError:
        pass


@MANY
@given(st.text(st.characters(exclude_categories=[]), max_size=60))
def test_garbage_text_is_refused_with_one_kind_of_error(text: str) -> None:
    try:
        decode_json(text)
    except ValueError:
        pass


@MANY
@given(values, st.data())
def test_a_torn_line_is_refused_or_read_and_never_more(value: Json, data: st.DataObject) -> None:
    written = encode_json({"a": value})
    with pytest.raises(ValueError, match=r"\w"):
        decode_json(written[: data.draw(st.integers(0, len(written) - 1))])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("beside", ["", "\ud800", 2**70])
def test_numbers_that_json_has_not_leave_as_null_on_both_ways(value: float, beside: Json) -> None:
    assert strict(encode_json([value, {"a": value}, beside])) == [None, {"a": None}, beside]


@pytest.mark.parametrize("text", ["\ud800", "a\udfff", "\udc00\ud800"])
def test_lone_surrogates_survive(text: str) -> None:
    assert encode_json(text) == json.dumps(text).encode()
    assert decode_json(encode_json({text: text})) == {text: text}
    assert decode_json(json.dumps([text])) == [text]
    assert decode_json(f'"{text}"') == text


@pytest.mark.parametrize("number", [2**63, 2**64, -(2**63) - 1, 10**4000])
def test_integers_past_64_bits_survive(number: int) -> None:
    assert decode_json(str(number)) == number
    assert decode_json(encode_json({"n": number})) == {"n": number}


def test_more_digits_than_python_converts_do_not_cost_the_line() -> None:
    assert decode_json(b'{"a": ' + b"9" * 5000 + b', "b": 1}') == {"a": float("inf"), "b": 1}
    with pytest.raises(TypeError, match="cannot be written as JSON"):
        encode_json(10**5000)


def test_bytes_that_are_not_utf_8_are_read_with_replacements() -> None:
    assert decode_json(b'{"a": "x\xffy"}') == {"a": "x\ufffdy"}


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'["\\ud800",['])
def test_endless_nesting_is_an_error_and_no_crash(opening: bytes) -> None:
    with pytest.raises(ValueError, match=r"nested too deeply|Expecting"):
        decode_json(opening * 200_000)
    deep: Json = []
    for _ in range(200_000):
        deep = [deep]
    for value in (deep, ["\ud800", deep]):
        with pytest.raises(TypeError, match="nested too deeply"):
            encode_json(value)


@pytest.mark.parametrize("value", [object(), ["\ud800", object()], {"a": lambda: None}])
def test_what_has_no_json_is_a_type_error(value: object) -> None:
    with pytest.raises(TypeError):
        encode_json(value)


def test_both_ways_of_writing_take_the_same_values() -> None:
    class Point(Struct):
        x: object

    for value in ((1, 2), {1: "a"}, Point(3), b"bytes"):
        fast, slow = encode_json([value, "-"]), encode_json([value, "\ud800"])
        assert decode_json(slow) == [decode_json(fast)[0], "\ud800"]  # type: ignore[index]


@pytest.mark.parametrize("data", [b"[]", b"null", b'"x"', b"1"])
def test_an_object_is_asked_for(data: bytes) -> None:
    with pytest.raises(ValueError, match="expected a JSON object"):
        decode_object(data)
    assert decode_object(b'{"a":1}') == {"a": 1}


def test_unknown_and_odd_fields_are_told_from_known_ones() -> None:
    known = frozenset({"a", "b"})
    assert unknown_fields({"a": 1}, known) is None
    assert unknown_fields({"a": 1, "c": 2}, known) == {"c": 2}
    assert kept_fields({"a": 1, "b": "x"}, {"a": object, "b": str}) is None
    assert kept_fields({"a": 1, "b": None, "c": 3}, {"a": object, "b": str}) == {"b": None, "c": 3}
