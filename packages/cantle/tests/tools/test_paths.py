"""Paths as models and macOS write them."""

import unicodedata
from pathlib import Path

import pytest

from packages.cantle.tests.tools.harness import Tools, text_of


@pytest.mark.parametrize(
    ("real", "asked"),
    [
        ("a b/Screen 3.00\u202fPM.png.txt", "a b/Screen 3.00 PM.png.txt"),
        ("Screen 3.00 PM.txt", "Screen 3.00\u202fPM.txt"),
        (unicodedata.normalize("NFD", "café/résumé.txt"), "café/résumé.txt"),
        ("café.txt", unicodedata.normalize("NFD", "café.txt")),
        ("Capture d\u2019écran.txt", "Capture d'écran.txt"),
        (unicodedata.normalize("NFD", "d\u2019été 3\u202fPM.txt"), "d'été 3 PM.txt"),
    ],
)
async def test_i04_names_that_macos_writes_are_found(tools: Tools, real: str, asked: str) -> None:
    path = tools.folder / real
    path.parent.mkdir(exist_ok=True)
    path.write_text("found\n", encoding="utf-8")
    assert text_of(await tools.read(asked)) == "found\n"
    await tools.edit(asked, ("found", "edited"))
    assert path.read_text(encoding="utf-8") == "edited\n"
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


async def test_i04_two_names_that_look_alike_are_not_chosen_between(tools: Tools) -> None:
    for name in ("a\u202fb", "a\u00a0b"):
        (tools.folder / name).write_text(name, encoding="utf-8")
    assert "There is no file" in await tools.failure("read", path="a b")
    assert text_of(await tools.read("a\u202fb")) == "a\u202fb"


@pytest.mark.parity("tools.at-prefix")
async def test_i04_a_leading_at_is_a_mention(tools: Tools) -> None:
    (tools.folder / "src").mkdir()
    (tools.folder / "src" / "a.txt").write_text("one\n", encoding="utf-8")
    assert text_of(await tools.read("@src/a.txt")) == "one\n"
    await tools.write("@src/b.txt", "two")
    assert (tools.folder / "src" / "b.txt").exists()


async def test_i04_a_name_that_begins_with_at_is_taken_as_it_is(tools: Tools) -> None:
    (tools.folder / "@types").mkdir()
    (tools.folder / "@types" / "a.txt").write_text("one\n", encoding="utf-8")
    assert text_of(await tools.read("@types/a.txt")) == "one\n"
    await tools.write("@scope/package/a.txt", "two")
    assert (tools.folder / "@scope" / "package" / "a.txt").exists()


async def test_a_tilde_is_the_home_folder(
    tools: Tools, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    (tmp_path / "a.txt").write_text("home\n", encoding="utf-8")
    assert text_of(await tools.read("~/a.txt")) == "home\n"
    (tools.folder / "~a").write_text("here\n", encoding="utf-8")
    assert text_of(await tools.read("~a")) == "here\n"


async def test_a_missing_file_names_its_nearest_neighbours(tools: Tools) -> None:
    (tools.folder / "src").mkdir()
    (tools.folder / "src" / "configuration.py").touch()
    failure = await tools.failure("read", path="src/configurations.py")
    assert "src/configurations.py" in failure
    assert "configuration.py" in failure.partition("Similar")[2]
    failure = await tools.failure("edit", path="source/a.py", edits=[{"oldText": "a", "newText": "b"}])
    assert "no folder source" in failure
    assert str(tools.folder) in failure


@pytest.mark.parametrize("path", ["", "  ", "a\0b", "\ud800"])
async def test_what_is_no_path_is_refused(tools: Tools, path: str) -> None:
    assert (await tools.failure("read", path=path)).startswith("path ")
    assert (await tools.failure("write", path=path, content="x")).startswith("path ")


async def test_other_names_for_path_are_understood(tools: Tools) -> None:
    await tools.call("write", {"file_path": "a.txt", "content": "x"})
    assert text_of(await tools.call("read", {"file_path": "a.txt"})) == "x"
