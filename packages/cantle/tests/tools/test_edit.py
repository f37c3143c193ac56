"""`edit`: what is matched, what is refused, and what a model is told then."""

import json
import time

import pytest

from cantle_ai.codec import Json, JsonObject
from packages.cantle.tests.tools.harness import Tools, detail, edit_json, text_of

TWENTY = "".join(f"line {number} of it\n" for number in range(1, 21))


@pytest.fixture
def file(tools: Tools) -> str:
    (tools.folder / "a.txt").write_text(TWENTY, encoding="utf-8")
    return "a.txt"


def content(tools: Tools, name: str = "a.txt") -> str:
    return (tools.folder / name).read_bytes().decode()


@pytest.mark.parity("tools.edit-several")
async def test_several_edits_are_matched_against_the_original(tools: Tools, file: str) -> None:
    result = await tools.edit(file, ("line 3 ", "line 5 "), ("line 5 ", "line 3 "), ("line 20 of it\n", ""))
    assert text_of(result) == "Changed 3 places in a.txt."
    expected = (
        TWENTY.replace("line 3 ", "line X ").replace("line 5 ", "line 3 ").replace("line X ", "line 5 ")
    )
    assert content(tools) == expected.removesuffix("line 20 of it\n")


async def test_edits_may_touch(tools: Tools, file: str) -> None:
    await tools.edit(file, ("line 3 of", "A"), (" it\nline 4", "B"))
    assert "AB of it\n" in content(tools)


@pytest.mark.parametrize(
    ("edits", "words"),
    [
        ([("no such text anywhere?", "x")], ["edits[0]", "not in a.txt"]),
        ([("line 1 ", "x"), ("line", "y")], ["edits[1]", "20 times", "1, 2, 3", "..."]),
        ([("line 1", "x")], ["11 times", "lines 1, 10, 11"]),
        ([("line 3 of it\nline 4", "x"), (" it\nline 4", "y")], ["edits[0]", "edits[1]", "overlap"]),
        ([(" it\nline 4", "y"), ("line 3 of it\nline 4", "x")], ["edits[0]", "edits[1]", "overlap"]),
        ([("line 7 ", "a"), ("line 7 ", "b")], ["overlap"]),
        ([("line 7 ", "line 7 ")], ["Nothing would change"]),
        ([("", "x")], ["edits[0]", "empty", "write"]),
    ],
)
@pytest.mark.parity("tools.edit-refusals")
async def test_a_refused_edit_changes_nothing(
    tools: Tools, file: str, edits: list[tuple[str, str]], words: list[str]
) -> None:
    listed: list[Json] = [edit_json("line 9 ", "line nine "), *(edit_json(*edit) for edit in edits)]
    if "Nothing" in words[0]:
        listed = listed[1:]
    words = [
        word.replace("[1]", "[2]").replace("[0]", "[1]") if len(listed) > len(edits) else word
        for word in words
    ]
    failure = await tools.failure("edit", path=file, edits=listed)
    assert all(word in failure for word in words), failure
    assert content(tools) == TWENTY


@pytest.mark.parametrize("edits", [None, [], "x", [1], [{"oldText": "a"}], [{"newText": "a"}], {}])
async def test_edits_of_no_use_are_refused_in_words(tools: Tools, file: str, edits: Json) -> None:
    assert "edits" in await tools.failure("edit", path=file, edits=edits)
    assert content(tools) == TWENTY


async def test_overlapping_occurrences_count(tools: Tools) -> None:
    (tools.folder / "a.txt").write_text("aaa", encoding="utf-8")
    assert "2 times" in await tools.failure("edit", path="a.txt", edits=[edit_json("aa", "b")])


async def test_a_text_without_lines_is_not_mistaken_for_a_pattern(tools: Tools) -> None:
    (tools.folder / "a.txt").write_text(r"a.*b \1 $x", encoding="utf-8")
    await tools.edit("a.txt", (".*", r"\2"), ("$x", r"\g<0>"))
    assert content(tools) == r"a\2b \1 \g<0>"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"edits": {"oldText": "line 7 ", "newText": "X"}}, "X"),
        ({"edits": json.dumps([{"oldText": "line 7 ", "newText": "X"}])}, "X"),
        ({"edits": json.dumps({"oldText": "line 7 ", "newText": "X"})}, "X"),
        ({"edits": [json.dumps({"oldText": "line 7 ", "newText": "X"})]}, "X"),
        ({"oldText": "line 7 ", "newText": "X"}, "X"),
        ({"old_string": "line 7 ", "new_string": "X", "replace_all": False}, "X"),
        ({"edits": [{"oldText": "line 7 ", "newText": "X", "reason": "why", "line": 3}], "note": 1}, "X"),
        ({"edits": [{"old_text": "line 7 ", "new_text": "X"}]}, "X"),
        ({"edits": [{"oldText": "line 8 ", "newText": "Y"}], "oldText": "line 7 ", "newText": "X"}, "X"),
    ],
)
@pytest.mark.parity("tools.edit-shapes")
async def test_i08_shapes_that_models_send_are_understood(
    tools: Tools, file: str, arguments: JsonObject, expected: str
) -> None:
    prepare = tools.tools["edit"].prepare
    assert prepare is not None
    prepared = prepare({"path": file, **arguments})
    assert prepared.keys() == {"path", "edits"}
    assert isinstance(prepared["edits"], list)
    assert all(isinstance(edit, dict) and edit.keys() == {"oldText", "newText"} for edit in prepared["edits"])
    await tools.call("edit", {"file_path": file, **arguments})
    assert content(tools).split("\n")[6] == f"{expected}of it"


@pytest.mark.parametrize("edits", ["not json", "[1", "3", "[[1]]", "null"])
def test_i08_what_is_no_edit_is_left_to_the_validation(tools: Tools, edits: str) -> None:
    prepare = tools.tools["edit"].prepare
    assert prepare is not None
    prepare({"path": "a", "edits": edits})
    prepare({})


@pytest.mark.parametrize(
    ("old", "words"),
    [
        ("line 12  of it\n", ["12 line 12 of it", "'line 12 of it'", "'line 12  of it'"]),
        ("\tline 5 of it\n\tline 6 of it\n", ["5 line 5 of it", "6 line 6 of it", "'\\tline 5 of it'"]),
        ("line 12 of them", ["12 line 12 of it"]),
        ("line 7 of it\nline 8 if it\nline 9 of it", ["7 line 7 of it", "8 line 8 of it", "line 8 if it"]),
        ("line 20 of it\nline 21 of it", ["20 line 20 of it", "ends there"]),
        ("nothing of the kind: ????", ["Nothing in it is similar"]),
    ],
)
async def test_a_missing_text_comes_with_the_nearest_places(
    tools: Tools, file: str, old: str, words: list[str]
) -> None:
    failure = await tools.failure("edit", path=file, edits=[edit_json(old, "x")])
    assert all(word in failure for word in words), failure


@pytest.mark.parametrize(
    ("text", "old", "words"),
    [
        ("alpha\nbeta\n", "beta2", ["2 beta", "'beta2'"]),
        ("x = calculate_totl(a)\n", "x = calculate_total(a)", ["1 x = calculate_totl(a)"]),
        ("abcd\n", "abxd", ["1 abcd"]),
        ("return value\n" * 400 + "return totals\n", "return total_s", ["401 return totals", "'rn totals'"]),
        ("a  \nb\n", "a\nb", ["1 a  ", "Line 1 has 'a  ' where oldText has 'a'"]),
        ("a\nb \nc\n", "a\nb\n", ["Line 2 has 'b ' where oldText has 'b'"]),
        ("foo\n", "???", ["Nothing in it is similar"]),
        ("foo\n", "\n\n\n", ["Nothing in it is similar"]),
    ],
)
async def test_the_nearest_place_is_found_without_a_word_in_common(
    tools: Tools, text: str, old: str, words: list[str]
) -> None:
    (tools.folder / "a.txt").write_text(text, encoding="utf-8")
    failure = await tools.failure("edit", path="a.txt", edits=[edit_json(old, "x")])
    assert all(word in failure for word in words), failure
    assert (tools.folder / "a.txt").read_text(encoding="utf-8") == text


async def test_a_character_that_looks_the_same_is_shown_by_its_number(tools: Tools) -> None:
    (tools.folder / "a.txt").write_text("say \u201chello\u201d now\n", encoding="utf-8")
    failure = await tools.failure("edit", path="a.txt", edits=[edit_json('say "hello" now', "x")])
    assert "\\u201chello" in failure


@pytest.mark.parametrize(
    ("line", "old"),
    [
        ("the same line again and again\n", "the same line again and again!\n" * 40),
        ("x" * 100_000 + "\n", "x" * 90_000 + "y"),
        ("}\n", "}\n}\n}\n;"),
        ("def function(argument, other): return argument\n", "def functoin(argument, other): return other"),
    ],
)
async def test_the_search_for_similar_places_is_bounded(tools: Tools, line: str, old: str) -> None:
    (tools.folder / "a.txt").write_text(line * (3_000_000 // len(line)), encoding="utf-8")
    begin = time.process_time()
    failure = await tools.failure("edit", path="a.txt", edits=[edit_json(old, "x")])
    assert time.process_time() - begin < 5
    assert len(failure) < 6_000


@pytest.mark.parity("tools.edit-details")
async def test_the_details_have_a_diff_a_patch_and_the_first_line(tools: Tools, file: str) -> None:
    result = await tools.edit(file, ("line 2 of", "line TWO of"), ("line 18 of it", "18\n18b"))
    assert detail(result, "firstChangedLine") == 2
    assert detail(result, "diff") == "\n".join(
        [
            "  1 line 1 of it",
            "- 2 line 2 of it",
            "+ 2 line TWO of it",
            "  3 line 3 of it",
            "  4 line 4 of it",
            "  5 line 5 of it",
            "  6 line 6 of it",
            "    ...",
            " 14 line 14 of it",
            " 15 line 15 of it",
            " 16 line 16 of it",
            " 17 line 17 of it",
            "-18 line 18 of it",
            "+18 18",
            "+19 18b",
            " 19 line 19 of it",
            " 20 line 20 of it",
        ]
    )
    assert str(detail(result, "patch")).startswith(
        "--- a.txt\n+++ a.txt\n@@ -1,6 +1,6 @@\n line 1 of it\n-line 2 of it\n"
    )
    assert "@@ -14,7 +14,8 @@" in str(detail(result, "patch"))


async def test_a_file_too_large_to_edit_is_refused(tools: Tools) -> None:
    with (tools.folder / "huge").open("wb") as file:
        file.truncate(1 << 32)
    assert "sed" in await tools.failure("edit", path="huge", edits=[edit_json("a", "b")])


async def test_a_hundred_edits_of_a_large_file_cost_one_pass(tools: Tools) -> None:
    (tools.folder / "a.txt").write_bytes(
        b"".join(b"row %d \xc3\xa9\r\n" % number for number in range(200_000))
    )
    edits = [(f"row {number} é\nrow {number + 1} ", "x\ny") for number in range(0, 200_000, 2_000)]
    begin = time.process_time()
    await tools.edit("a.txt", *edits)
    assert time.process_time() - begin < 5
    assert (tools.folder / "a.txt").read_bytes().startswith(b"x\r\ny\xc3\xa9\r\nrow 2 ")
