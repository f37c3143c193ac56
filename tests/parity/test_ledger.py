"""The ledger against the tests, both ways."""

from collections import Counter
from pathlib import Path

import pytest

from tests.parity.ledger import Row, rows
from tests.support.collection import collect_all, parity_marks


@pytest.fixture(scope="module")
def ledger() -> list[Row]:
    return rows()


@pytest.fixture(scope="module")
def collected(request: pytest.FixtureRequest) -> dict[str, list[str]]:
    config = request.config
    whole = not (config.option.keyword or config.option.markexpr or config.option.deselect)
    if whole and config.args == config.getini("testpaths"):
        return parity_marks(request.session.items)
    return collect_all()


def test_ids_are_unique(ledger: list[Row]) -> None:
    assert [name for name, count in Counter(row.id for row in ledger).items() if count > 1] == []


def test_every_test_that_a_row_names_exists(ledger: list[Row], collected: dict[str, list[str]]) -> None:
    assert [(row.id, test) for row in ledger for test in row.tests if test not in collected] == []


def test_every_marked_test_is_named_by_its_row(ledger: list[Row], collected: dict[str, list[str]]) -> None:
    named = {(row.id, test) for row in ledger for test in row.tests}
    marked = {(mark, test) for test, marks in collected.items() for mark in marks}
    assert sorted(marked - named) == []


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ('id = "other.a"\nstatus = "later"\nbrings = "x"', "does not begin with 'area'"),
        ('id = "area.a"\nstatus = "done"', "unknown status"),
        ('id = "area.a"\nstatus = "same"', "names at least one test"),
        ('id = "area.a"\nstatus = "later"', "`later` needs it"),
        ('id = "area.a"\nstatus = "deviation"\ntests = ["t"]', "`deviation` needs it"),
        ('id = "area.a"\nstatus = "same"\ntests = ["t"]\nnote = "n"', "unexpected keyword"),
    ],
)
def test_a_row_that_breaks_the_format_is_refused(row: str, problem: str, tmp_path: Path) -> None:
    text = f'[[row]]\nbehaviour = "b"\npage = "json.md"\n{row}\n'
    (tmp_path / "area.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=problem):
        rows(tmp_path)
