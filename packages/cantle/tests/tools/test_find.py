"""`find` as a model uses it."""

import os
from pathlib import Path

import pytest

from cantle.tools.truncation import MAX_BYTES
from packages.cantle.tests.tools.harness import Tools, detail, text_of
from packages.cantle.tests.tools.searching import write_files


async def find(tools: Tools, pattern: str, **more: str | int) -> list[str]:
    return text_of(await tools.call("find", {"pattern": pattern, **more})).split("\n")


@pytest.mark.parity("tools.find-paths")
async def test_paths_count_from_the_searched_folder(tools: Tools) -> None:
    write_files(
        tools.folder, {"a/x.py": "", "a/b/y.py": "", ".hid/z.py": "", "b.txt": "", "py/c": "", ".env": ""}
    )
    (tools.folder / "link.py").symlink_to("a")
    assert await find(tools, "*.py") == [".hid/z.py", "a/b/y.py", "a/x.py", "link.py"]
    assert await find(tools, "*.py", path="a") == ["b/y.py", "x.py"]
    assert await find(tools, "b*") == ["a/b/", "b.txt"]
    assert await find(tools, "a/**") == ["a/b/", "a/b/y.py", "a/x.py"]
    assert await find(tools, "b/") == ["a/b/"]
    assert await find(tools, ".*") == [".env", ".hid/"]


@pytest.mark.fault("I06")
@pytest.mark.parity("tools.find-spellings")
async def test_i06_a_glob_may_be_spelt_from_elsewhere(tools: Tools) -> None:
    write_files(tools.folder, {"a/x.py": "", "a/b/y.py": ""})
    for pattern, path in [
        ("./a/*.py", "."),
        ("a/*.py", "."),
        ("/*.py", "a"),
        (f"{tools.folder.resolve()}/a/*.py", "."),
    ]:
        found = await find(tools, pattern, path=path)
        assert found == [("" if path == "a" else "a/") + "x.py"], pattern
    assert await find(tools, f"{tools.folder.resolve()}/**/*.py", path="a") == [
        "No path matches, among 3 entries."
    ]
    assert await find(tools, "!*.py") == ["a/", "a/b/"]
    assert await find(tools, f"!{tools.folder.resolve()}/a/*.py") == ["a/", "a/b/", "a/b/y.py"]
    assert await find(tools, "") == ["a/", "a/b/", "a/b/y.py", "a/x.py"]


@pytest.mark.parity("tools.search-git-folder")
@pytest.mark.parity("tools.find-ignores")
async def test_ignored_paths_and_those_of_git_are_not_found(tools: Tools) -> None:
    write_files(tools.folder, {".gitignore": "out/\n", ".git/HEAD": "", "out/x": "", "x": ""})
    assert await find(tools, "*") == [".gitignore", "x"]
    assert await find(tools, "*", path="out") == ["x"]


@pytest.mark.fault("I07")
@pytest.mark.parity("tools.find-limit")
async def test_i07_the_limit_is_announced_where_there_is_more(tools: Tools) -> None:
    write_files(tools.folder, {f"{number:04}": "" for number in range(1_000)})
    result = await tools.call("find", {"pattern": "*"})
    assert text_of(result).count("\n") == 999
    assert result.details is None
    write_files(tools.folder, {"x": ""})
    result = await tools.call("find", {"pattern": "*"})
    assert text_of(result).endswith(
        "\n0999\n\n[The first 1,000; there are more paths. Narrow the glob, or raise limit.]"
    )
    assert result.details == {"resultLimitReached": 1_000}
    assert (await tools.call("find", {"pattern": "*", "limit": 1_001})).details is None


async def test_a_result_has_at_most_50_kb_in_whole_lines(tools: Tools) -> None:
    write_files(tools.folder, {f"{'n' * 200}{number:04}": "" for number in range(300)})
    result = await tools.call("find", {"pattern": "*"})
    shown, _, notice = text_of(result).partition("\n\n")
    assert MAX_BYTES - 205 < len(shown) <= MAX_BYTES
    assert all(len(line) == 204 for line in shown.split("\n"))
    assert notice == "[The first 50.0 KB; there are more paths. Narrow the glob.]"
    assert detail(result, "truncation", "truncatedBy") == "bytes"


async def test_nothing_found_and_what_can_not_be_searched(tools: Tools) -> None:
    write_files(tools.folder, {"file": ""})
    assert await find(tools, "*.nope") == ["No path matches, among 1 entry."]
    assert await tools.failure("find", pattern="*", path="file") == "file is not a folder."
    assert (await tools.failure("find", pattern="*", path="nowhere")).startswith("There is no file nowhere")
    assert await tools.failure("find", pattern="[") == "The glob [ can't be used: its [ is not closed by ]."
    assert (
        await tools.failure("find", pattern="*", limit=0)
        == "limit must be at least 1; leave it out for 1000."
    )
    assert await tools.failure("find") == "pattern must be given, as text."


async def test_odd_names(tools: Tools) -> None:
    write_files(tools.folder, {"-x": "", "new\nline": "", "[a]": "", "a b": ""})
    (tools.folder / os.fsdecode(b"\xff")).mkdir()
    assert await find(tools, "-*") == ["-x"]
    assert await find(tools, "*") == ["-x", "[a]", "a b", "$'new\\nline'", "$'\\xff'/"]
    assert await find(tools, "\\[a\\]") == ["[a]"]
    assert await find(tools, "?") == ["$'\\xff'/"]


def test_a_path_is_the_same_from_a_folder_that_is_reached_by_a_link(tmp_path: Path) -> None:
    from cantle.tools.find.search import search
    from packages.cantle.tests.tools.searching import unchecked

    write_files(tmp_path, {"real/a/x": ""})
    (tmp_path / "way").symlink_to("real")
    assert text_of(search(tmp_path / "way", "**/x", ".", 10, unchecked)) == "a/x"


@pytest.mark.skipif(os.name == "nt", reason="names that Windows does not have")
async def test_a_name_as_it_is_shown_is_understood_by_every_tool(tools: Tools) -> None:
    names = [
        b"new\nline",
        b"caf\xe9'\\x",
        b"\x1b[31m\ttab\r",
        "\u2028\x85".encode(),
        b"d\xff/plain",
        b"d\xff/e\xfe",
    ]
    for name in names:
        path = tools.folder / "in" / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"hit {name!r}\n", "utf-8")
    shown = [name for name in await find(tools, "*", path="in") if not name.endswith("/")]
    assert sum(name.startswith("$'") for name in shown) == len(names)
    found = set()
    for line in shown:
        text = text_of(await tools.read(f"in/{line}"))
        assert text_of(await tools.call("grep", {"pattern": "hit", "path": f"in/{line}"})).endswith(
            text.strip()
        )
        found.add(text.strip())
    assert found == {f"hit {name!r}" for name in names}
    assert await find(tools, "*", path="in/$'d\\xff'/") == ["$'e\\xfe'", "plain"]
    # One that is called like that comes first.
    (tools.folder / "$'a\\nb'").write_text("itself\n", "utf-8")
    (tools.folder / "a\nb").write_text("other\n", "utf-8")
    assert text_of(await tools.read("$'a\\nb'")).startswith("itself")
    assert "There is no file $'x" in await tools.failure("read", path="$'x\\x00'")
