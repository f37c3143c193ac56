"""The ledger against the tests, both ways."""

from pathlib import Path

import pytest

from tests.parity.ledger import rows
from tests.support.ledgers import collected_tests, problems


@pytest.mark.timeout(300)  # run alone, it collects the tests of the whole repository
def test_rows_and_tests_agree(request: pytest.FixtureRequest) -> None:
    assert problems(rows(), "parity", collected_tests(request.session)) == []


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ('id = "other.a"\nstatus = "later"\nbrings = "x"', "does not begin with 'area'"),
        ('id = "area.a"\nstatus = "done"', "unknown status"),
        ('id = "area.a"\nstatus = "same"', "names at least one test"),
        ('id = "area.a"\nstatus = "later"', "`later` needs it"),
        ('id = "area.a"\nstatus = "deviation"\ntests = ["t"]', "`deviation` needs it"),
        ('id = "area.a"\nstatus = "same"\ntests = ["t"]\nnote = "n"', "unexpected keyword"),
        ('id = "area.a"\nstatus = "same"\ntests = ["t"]\ndiffers = ["a: b"]', "what is the same does not"),
        ('id = "area.a"\nstatus = "later"\nbrings = "x"\ndiffers = ["a"]', "is 'CASE: PATH'"),
    ],
)
def test_a_row_that_breaks_the_format_is_refused(row: str, problem: str, tmp_path: Path) -> None:
    text = f'[[row]]\nbehaviour = "b"\npage = "json.md"\n{row}\n'
    (tmp_path / "area.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=problem):
        rows(tmp_path)
