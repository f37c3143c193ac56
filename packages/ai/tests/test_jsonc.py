"""Configuration files as people write them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cantle_ai.codec import Json
from cantle_ai.jsonc import JsoncError, parse_jsonc
from packages.ai.tests.json_values import objects
from tests.support.samples import samples

MANY = settings(max_examples=samples(2000, 100), deadline=None)


@MANY
@given(objects)
def test_json_is_read_as_json(value: dict[str, Json]) -> None:
    data = json.dumps(value, indent=2)
    assert repr(parse_jsonc(data.encode())) == repr(json.loads(data))


@MANY
@given(st.dictionaries(st.text('/*,"\\ ]}\n', max_size=8), st.text('/*,"\\ ]}\n', max_size=8), min_size=1))
def test_strings_that_look_like_comments_or_commas_are_left_alone(value: dict[str, str]) -> None:
    data = json.dumps([value, value], indent=1)
    loose = "// first\n" + data.replace("\n ]", ", // x\n /* y */ ]") + "/* last"
    assert parse_jsonc(loose.encode()) == [value, value]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", None),
        (b" // nothing\n", None),
        (b"\xef\xbb\xbf{}", {}),
        (b'{"a": [1, 2, ], }', {"a": [1, 2]}),
        (b'{"a": 1, // one\r\n "b": /* two */ 2\r\n}', {"a": 1, "b": 2}),
        (b'{"url": "http://x//y", "glob": "/*"}', {"url": "http://x//y", "glob": "/*"}),
        (b'{"a": 1,/* x */\n /* y */}', {"a": 1}),
    ],
)
def test_comments_and_trailing_commas(data: bytes, expected: Json) -> None:
    assert parse_jsonc(data) == expected


@pytest.mark.parametrize(
    ("data", "line", "column", "reason"),
    [
        (b'{"a": 1\n "b": 2}', 2, 2, "expecting ',' delimiter"),
        (b"// x\n\n{'a': 1}", 3, 2, "expecting property name"),
        (b'/* a\n b */ {"a": tru}', 2, 13, "expecting value"),
        (b'{"a": "x\ny"}', 1, 9, "invalid control character"),
        (b'{"a": 1', 1, 8, "expecting ',' delimiter"),
        ('{"é": "\xff'.encode("latin-1"), 1, 3, "the byte 0xe9 is not UTF-8"),
        ('{"é":\n "é'.encode() + b"\xff", 2, 4, "the byte 0xff is not UTF-8"),
        (b"[1,,]", 1, 3, "nothing follows this comma"),
        (b'{"a": 1,\n ,}', 1, 8, "nothing follows this comma"),
        (b"[" * 200_000, 1, 1, "nested too deeply"),
        (b"[" + b"9" * 5000 + b"]", 1, 1, "exceeds the limit"),
    ],
)
def test_a_mistake_is_found_where_it_is(data: bytes, line: int, column: int, reason: str) -> None:
    with pytest.raises(JsoncError) as caught:
        parse_jsonc(data)
    error = caught.value
    assert (error.line, error.column) == (line, column), str(error)
    assert reason in error.reason
    assert str(error).startswith(f"line {line}, column {column}: ")


@MANY
@given(st.binary(max_size=60))
def test_garbage_is_refused_with_one_kind_of_error(data: bytes) -> None:
    try:
        parse_jsonc(data)
    except JsoncError:
        pass
