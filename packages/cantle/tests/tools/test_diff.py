"""The diff of an edit, checked against applying it and against difflib."""

import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cantle.tools.diff import Change, diff_details
from tests.support.samples import samples


@st.composite
def changed(draw: st.DrawFn) -> tuple[str, list[Change], str]:
    """A text, changes of it, and what it becomes."""
    text = draw(st.text("ab\n", max_size=60))
    edges = sorted(draw(st.lists(st.integers(0, len(text)), max_size=8)))
    changes: list[Change] = []
    pieces: list[str] = []
    done = 0
    for start, end in zip(edges[::2], edges[1::2], strict=False):
        new = draw(st.text("bc\n", max_size=5))
        if new != text[start:end] and (not changes or start > changes[-1].end):
            changes.append(Change(start, end, new))
            pieces += [text[done:start], new]
            done = end
    return text, changes, "".join([*pieces, text[done:]])


def apply(text: str, patch: str) -> str:
    """What `patch` makes of `text`: a unified diff, applied strictly."""
    old = text.split("\n")
    old = [line + "\n" for line in old[:-1]] + ([old[-1]] if old[-1] else [])
    rows = patch.split("\n")[2:-1]
    result: list[str] = []
    done = 0
    for number, row in enumerate(rows):
        if row.startswith("@@"):
            start, _, count = row.split()[1][1:].partition(",")
            first = int(start) - (count != "0")
            result += old[done:first]
            done = first
            continue
        if row.startswith("\\"):
            continue
        bare = number + 1 < len(rows) and rows[number + 1].startswith("\\")
        line = row[1:] + ("" if bare else "\n")
        if row[0] in " -":
            assert old[done] == line
            done += 1
        if row[0] in " +":
            result.append(line)
    return "".join(result + old[done:])


@pytest.mark.timeout(300)
@settings(max_examples=samples(5_000, 300), deadline=None)
@given(changed())
def test_the_patch_makes_the_new_text_of_the_old(case: tuple[str, list[Change], str]) -> None:
    text, changes, expected = case
    details = diff_details(text, changes, "a.txt")
    patch = details["patch"]
    assert isinstance(patch, str)
    assert apply(text, patch) == expected
    first = details.get("firstChangedLine")
    if text != expected:
        assert isinstance(first, int)
        old, new = (re.findall(r"[^\n]*\n|[^\n]+", whole) for whole in (text, expected))
        assert old[: first - 1] == new[: first - 1]
        assert old[first - 1 :] != new[first - 1 :]


@pytest.mark.timeout(300)
@settings(max_examples=samples(5_000, 300), deadline=None)
@given(changed())
def test_the_rows_of_the_diff_are_those_of_the_files(case: tuple[str, list[Change], str]) -> None:
    text, changes, expected = case
    old, new = text.split("\n"), expected.split("\n")
    diff = diff_details(text, changes, "a.txt")["diff"]
    assert isinstance(diff, str)
    for row in diff.split("\n") if diff else []:
        if row.strip() == "...":
            continue
        sign, number, line = row[0], *row[1:].lstrip().split(" ", 1)
        assert (new if sign == "+" else old)[int(number) - 1] == line


def test_git_applies_the_patch(tmp_path: Path) -> None:
    text = "".join(f"{number}\n" for number in range(40))
    changes = [
        Change(0, 2, ""),
        Change(text.index("20"), text.index("20") + 2, "x\r\ny"),
        Change(len(text), len(text), "end"),
    ]
    (tmp_path / "a.txt").write_bytes(text.encode())
    patch = diff_details(text, changes, "a.txt")["patch"]
    assert isinstance(patch, str)
    subprocess.run(["git", "apply", "-p0", "-"], cwd=tmp_path, input=patch.encode(), check=True, timeout=30)
    expected = text[2:].replace("20", "x\r\ny") + "end"
    assert (tmp_path / "a.txt").read_bytes() == expected.encode()


@pytest.mark.parametrize("size", [1_000, 400_000])
def test_long_lines_do_not_make_long_details(size: int) -> None:
    details = diff_details("x" * size, [Change(5, 6, "y")], "a.txt")
    assert len(str(details["diff"])) < 5_000
    assert ("patch" in details) == (size < 100_000)


def test_a_file_with_cr_lines_has_rows() -> None:
    details = diff_details("one\rtwo\rthree", [Change(4, 7, "2")], "a.txt")
    assert details["diff"] == " 1 one\n-2 two\n+2 2\n 3 three"
