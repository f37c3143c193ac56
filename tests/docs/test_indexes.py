"""Index pages name every page of their folder."""

from pathlib import Path

import pytest

from tests.support.paths import ROOT


@pytest.mark.parametrize("folder", ["docs/guide", "docs/formats", "docs/decisions", "examples"])
def test_an_index_names_every_page_of_its_folder(folder: str) -> None:
    index = ROOT / folder / "README.md"
    if not index.exists():
        index = index.parent.parent / "README.md"
    text = index.read_text(encoding="utf-8")
    pages = [path for path in (ROOT / folder).rglob("*") if path.suffix in {".md", ".py"}]
    missing = [name for path in pages if path != index and (name := _relative(path, index)) not in text]
    assert missing == []


def _relative(path: Path, index: Path) -> str:
    return path.relative_to(index.parent).as_posix()
