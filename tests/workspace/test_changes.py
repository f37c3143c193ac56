"""Change fragments: the ones that are there keep the format, and the tool that assembles them works."""

import datetime
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tools import changelog


def test_every_fragment_keeps_the_format() -> None:
    assert changelog.fragments(ROOT / "changes")


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("Something.md", "Text.", "the name is not"),
        ("a.improved.md", "Text.", "'improved' is not one of added, changed"),
        ("a.fixed.md", "Text", "full stop"),
        ("a.fixed.md", "# Title.", "not one plain paragraph"),
        ("a.fixed.md", "One.\n\nTwo.", "not one plain paragraph"),
    ],
)
def test_a_bad_fragment_is_named_with_the_rule(name: str, text: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(changelog.BadFragment, match=reason):
        changelog.read_fragment(path)


def test_a_release_moves_the_fragments_to_the_top_of_the_changelog(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "0.2.0"\n', encoding="utf-8")
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 0.1.0 (2026-01-01)\n", encoding="utf-8")
    folder = tmp_path / "changes"
    folder.mkdir()
    (folder / "README.md").write_text("The format.\n", encoding="utf-8")
    (folder / "b.fixed.md").write_text("It no longer\nbreaks.\n", encoding="utf-8")
    (folder / "a.added.md").write_text("It can fly.\n", encoding="utf-8")

    changelog.release(tmp_path, datetime.date(2026, 2, 3))

    assert (tmp_path / "CHANGELOG.md").read_text(encoding="utf-8") == (
        "# Changelog\n\n"
        "## 0.2.0 (2026-02-03)\n\n"
        "### Added\n\n- It can fly.\n\n"
        "### Fixed\n\n- It no longer breaks.\n\n"
        "## 0.1.0 (2026-01-01)\n"
    )
    assert [path.name for path in folder.iterdir()] == ["README.md"]
