"""The page about the command line says what the parser says."""

from tests.docs import cli_page


def test_the_page_is_the_parsers() -> None:
    text = cli_page.PAGE.read_text(encoding="utf-8")
    assert cli_page.BEGIN in text
    assert cli_page.renewed(text) == text, "run: uv run python -m tests.docs.cli_page"


def test_every_option_has_a_help_text() -> None:
    assert "|  |" not in cli_page.options()
