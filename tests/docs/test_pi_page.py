"""The page for users of Pi says what the ledger says."""

from tests.docs import pi_page
from tests.parity.ledger import rows
from tests.support.reference import VERSION


def test_the_page_is_the_ledgers() -> None:
    text = pi_page.PAGE.read_text(encoding="utf-8")
    assert pi_page.BEGIN in text
    assert pi_page.renewed(text) == text, "run: uv run python -m tests.docs.pi_page"


def test_the_page_names_the_version_that_is_compared_with() -> None:
    assert f"Pi {VERSION}" in pi_page.PAGE.read_text(encoding="utf-8")


def test_every_deviation_and_all_that_is_still_to_come_is_told() -> None:
    text = pi_page.differences(rows()) + pi_page.later(rows())
    assert text.count("\n| ") == sum(row.status == "deviation" for row in rows()) + text.count("| in Pi |")
    assert all(row.behaviour in text for row in rows() if row.status == "later")
