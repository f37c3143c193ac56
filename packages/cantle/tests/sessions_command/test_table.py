"""Tables and lines for people: their widths, and what they let through to a terminal."""

from __future__ import annotations

import tracemalloc
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cantle.sessions_command.lists import short_ids
from cantle.sessions_command.table import cost_of, cut, local_time, one_line, quantity, size_of, table
from cantle_ai.usage import Cost


@given(st.text())
def test_a_line_has_nothing_that_a_terminal_obeys(text: str) -> None:
    line = one_line(text)
    assert "\n" not in line
    categories = {unicodedata.category(character) for character in line}
    assert not categories & {"Cc", "Zl", "Zp"}
    assert not set(line) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c")


def test_a_line_shows_what_it_does_not_let_through() -> None:
    assert one_line("a\tb\r\n c \x1b[2J\x9b\u202e") == r"a b c \x1b[2J\x9b\u202e"


def columns_of(text: str) -> int:
    wide = [character for character in text if unicodedata.east_asian_width(character) in "WF"]
    return len(text) + len(wide) - sum(map(bool, map(unicodedata.combining, text)))


@given(st.text(st.sampled_from("ab 漢字é\u0301…")), st.integers(1, 12))
def test_a_cut_text_fits(text: str, width: int) -> None:
    short = cut(text, width)
    assert columns_of(short) <= width
    assert short == text or (short.endswith("…") and text.startswith(short[:-1]))


def test_cells_stand_under_one_another_however_wide_their_characters_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    rows = [("name", "size", "text"), ("漢字", "7", "x" * 40), ("e\u0301", "12", "")]
    assert table(rows, right=(1,)) == (
        "name  size  text\n"
        f"漢字     7  {'x' * 19}…\n"
        "e\u0301       12\n"
    )  # fmt: skip
    assert table([]) == ""


def test_what_takes_no_column_is_not_counted() -> None:
    for text in ("ab\u200d\ufe0f\u2060\u0301", "\u2764\ufe0f!"):
        assert cut(text, 2) == text
    assert cut("x\u0301" * 5, 4) == "x\u0301" * 3 + "…"


def test_of_a_long_cell_a_table_holds_no_more_than_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    tracemalloc.start()
    try:
        text = table((str(number), f"{number} " + "é" * 10_000) for number in range(1000))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert text.count("\n") == 1000 and peak < 3_000_000


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 KB"), (9_949, "9.9 KB"), (9_950, "10 KB"), (999_499, "999 KB"),
     (999_500, "1.0 MB"), (200_000_000, "200 MB"), (5_000_000_000_000, "5000 GB")],
)  # fmt: skip
def test_a_size(count: int, text: str) -> None:
    assert size_of(count) == text


def test_quantities_and_times() -> None:
    assert [quantity(1, "entry"), quantity(1200, "entry"), quantity(2, "branch"), quantity(0, "token")] == [
        "1 entry",
        "1,200 entries",
        "2 branches",
        "0 tokens",
    ]
    assert local_time(10**22) == "-"


@given(st.sets(st.text("0123456789ab-", min_size=1, max_size=14), max_size=8))
def test_a_short_id_fits_no_other(ids: set[str]) -> None:
    for whole, short in short_ids(ids).items():
        assert whole.startswith(short)
        assert short == whole or [each for each in ids if each.startswith(short)] == [whole]


@pytest.mark.parametrize(
    ("total", "unknown", "said"),
    [
        (0.0, False, "$0.0000"),
        (1.5, False, "$1.5000"),
        (0.0, True, "unknown"),
        (1.5, True, "at least $1.5000"),
    ],
)
def test_a_cost_that_nobody_knows_is_not_shown_as_nothing(total: float, unknown: bool, said: str) -> None:
    assert cost_of(Cost(total=total, unknown=unknown)) == said
