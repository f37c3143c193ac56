"""The page about providers says what their rows say."""

from cantle_ai.providers import BUILTIN_PROVIDERS
from tests.docs import providers_page


def test_the_page_is_the_rows() -> None:
    text = providers_page.PAGE.read_text(encoding="utf-8")
    assert providers_page.BEGIN in text
    assert providers_page.renewed(text) == text, "run: uv run python -m tests.docs.providers_page"


def test_the_table_names_every_provider_that_is_asked_over_a_network() -> None:
    listed = {row.id for row in BUILTIN_PROVIDERS if f"[`{row.id}`](" in providers_page.table()}
    others = {row.id for row in BUILTIN_PROVIDERS} - listed
    assert others == {"local", *(row.id for row in BUILTIN_PROVIDERS if row.server is not None)}


def test_the_pages_that_it_leads_to_are_there() -> None:
    folder = providers_page.PAGE.parent
    named = {
        line.split("](")[1].split(")")[0] for line in providers_page.table().splitlines() if "](" in line
    }
    assert sorted(name for name in named if not (folder / name).is_file()) == []
