"""What is said of a text that is no JSON is the same on every version of Python."""

from __future__ import annotations

import json

import pytest

from cantle_ai.json_mistake import JsonMistake, json_mistake


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[1, 2,]", ("nothing follows this comma", 5, 1, 6)),
        ("[1,\n 2\t, \r\n ]", ("nothing follows this comma", 7, 2, 4)),
        ('{"a": 1 , }', ("nothing follows this comma", 8, 1, 9)),
        ('{"a": 1, ]', ("expecting property name enclosed in double quotes", 9, 1, 10)),
        ("[1,,]", ("expecting value", 3, 1, 4)),
        ("[}", ("expecting value", 1, 1, 2)),
        ("]", ("expecting value", 0, 1, 1)),
        ("", ("expecting value", 0, 1, 1)),
        ('["a', ("unterminated string starting", 1, 1, 2)),
        ('["\t"]', ("invalid control character", 2, 1, 3)),
        ("{} {}", ("extra data", 3, 1, 4)),
    ],
)
def test_reason_and_place(text: str, expected: tuple[str, int, int, int]) -> None:
    with pytest.raises(json.JSONDecodeError) as caught:
        json.loads(text)
    assert json_mistake(caught.value) == JsonMistake(*expected)
