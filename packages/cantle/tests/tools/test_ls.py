"""`ls` as a model uses it."""

import os
from pathlib import Path

import pytest

from cantle.tools.truncation import MAX_BYTES
from packages.cantle.tests.tools.harness import Tools, as_nobody, detail, text_of
from packages.cantle.tests.tools.searching import refusal, unchecked, write_files


async def ls(tools: Tools, **arguments: str | int) -> list[str]:
    return text_of(await tools.call("ls", dict(arguments))).split("\n")


@pytest.mark.parity("tools.ls-entries")
async def test_entries_are_sorted_without_regard_to_case_and_folders_marked(tools: Tools) -> None:
    write_files(
        tools.folder,
        {"B.txt": "", "a.txt": "", "C/x": "", ".env": "", ".git/HEAD": "", "_x": "", "10": "", "9": ""},
    )
    (tools.folder / "way").symlink_to("C")
    (tools.folder / "link").symlink_to("a.txt")
    assert await ls(tools) == [".env", ".git/", "10", "9", "_x", "a.txt", "B.txt", "C/", "link", "way/"]
    assert await ls(tools, path="C") == ["x"]
    assert await ls(tools, path="way") == ["x"]


@pytest.mark.parity("tools.ls-dangling")
async def test_a_link_to_nothing_is_listed(tools: Tools) -> None:
    (tools.folder / "gone").symlink_to("nowhere")
    (tools.folder / "self").symlink_to("self")
    assert await ls(tools) == ["gone", "self"]


async def test_ignored_entries_are_listed(tools: Tools) -> None:
    write_files(tools.folder, {".gitignore": "*\n", "a": ""})
    assert await ls(tools) == [".gitignore", "a"]


@pytest.mark.fault("I07")
@pytest.mark.parity("tools.ls-limit")
async def test_i07_the_limit_is_announced_where_there_is_more(tools: Tools) -> None:
    write_files(tools.folder, {f"{number:03}": "" for number in range(500)})
    result = await tools.call("ls", {})
    assert text_of(result).count("\n") == 499
    assert result.details is None
    write_files(tools.folder, {"x": ""})
    result = await tools.call("ls", {})
    notice = "[The first 500; there are more entries. Raise limit, or look for some with find.]"
    assert text_of(result).endswith(f"\n499\n\n{notice}")
    assert result.details == {"entryLimitReached": 500}
    assert await ls(tools, limit=1) == ["000", "", notice.replace("500", "1")]


async def test_a_result_has_at_most_50_kb(tools: Tools) -> None:
    write_files(tools.folder, {f"{'n' * 200}{number:04}": "" for number in range(300)})
    result = await tools.call("ls", {})
    assert len(text_of(result).partition("\n\n")[0]) <= MAX_BYTES
    assert detail(result, "truncation", "truncatedBy") == "bytes"


@pytest.mark.parity("tools.ls-empty")
async def test_an_empty_folder_and_what_is_none(tools: Tools) -> None:
    assert await ls(tools) == ["The folder is empty."]
    write_files(tools.folder, {"file": ""})
    assert await tools.failure("ls", path="file") == "file is not a folder."
    assert (await tools.failure("ls", path="nowhere")).startswith("There is no file nowhere")
    assert await tools.failure("ls", limit=0) == "limit must be at least 1; leave it out for 500."


async def test_odd_names(tools: Tools) -> None:
    (tools.folder / os.fsdecode(b"a\xff\n")).mkdir()
    assert await ls(tools) == ["$'a\\xff\\n'/"]


@pytest.mark.root
def test_a_folder_that_may_not_be_read_is_refused(open_folder: Path) -> None:
    from cantle.tools.ls.listing import list_folder

    (open_folder / "shut").mkdir(mode=0)

    def work() -> None:
        said = refusal(lambda: list_folder(open_folder, "shut", 10, unchecked))
        assert said == "shut can't be listed: permission denied.", said

    as_nobody(work)
