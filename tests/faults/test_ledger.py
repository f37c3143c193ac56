"""The ledger of faults against the tests, both ways."""

from pathlib import Path

import pytest

from tests.faults.ledger import rows
from tests.support.ledgers import collected_tests, problems

GROUPS = {
    "A": [f"A{number:02}" for number in range(1, 16)],
    "B": [f"B{number:02}" for number in range(1, 25)],
    "C": [f"C{number:02}" for number in range(1, 9)],
    "D": [f"D{number:02}" for number in range(1, 12)],
    "E": [f"E{number:02}" for number in range(1, 11)],
    "F": [f"F{number:02}" for number in range(1, 13)],
    "G": [f"G{number:02}" for number in range(1, 10)],
    "H": [f"H-{number:02}" for number in range(1, 10)],
    "I": [f"I{number:02}" for number in range(1, 10)],
    "J": [f"J{number:02}" for number in range(1, 4)],
    "K": [f"K{number:02}" for number in range(1, 6)],
}


@pytest.mark.timeout(300)  # run alone, it collects the tests of the whole repository
def test_rows_and_tests_agree(request: pytest.FixtureRequest) -> None:
    assert problems(rows(), "fault", collected_tests(request.session)) == []


def test_every_fault_of_these_groups_has_a_row() -> None:
    assert [row.id for row in rows()] == [id for ids in GROUPS.values() for id in ids]


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ('id = "F01"\nstatus = "later"\nbrings = "x"', "is not 'E' and a number"),
        ('id = "E1a"\nstatus = "later"\nbrings = "x"', "is not 'E' and a number"),
        ('id = "E01"\nstatus = "mended"', "unknown status"),
        ('id = "E01"\nstatus = "tested"', "needs one at least"),
        ('id = "E01"\nstatus = "later"', "`later` needs it"),
        ('id = "E01"\nstatus = "not-ours"', "`not-ours` needs it"),
        ('id = "E01"\nstatus = "not-ours"\nreason = "r"\ntests = ["t"]', "belongs to `tested`"),
    ],
)
def test_a_row_that_breaks_the_format_is_refused(row: str, problem: str, tmp_path: Path) -> None:
    text = f'[[row]]\nsymptom = "s"\nwanted = "w"\n{row}\n'
    (tmp_path / "E.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=problem):
        rows(tmp_path)
