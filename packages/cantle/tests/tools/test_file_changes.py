"""What `edit` and `write` do to files beside their content: whole or not at all, and in turn."""

import asyncio
import os
import stat
import sys
import threading
from pathlib import Path

import pytest

from cantle.tools.edit.file import edit_file
from cantle.tools.file_queue import FileQueue
from cantle.tools.regular_files import FileState, replace_file
from cantle_agent.tool import ToolError
from packages.cantle.tests.tools.harness import FakeContext, Tools, as_nobody, detail, edit_json, text_of

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions and links")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def unwanted() -> None:
    raise ToolError("stopped")


def wanted() -> None:
    return


@posix
@pytest.mark.parametrize("mode", [0o755, 0o640, 0o600, 0o666, 0o4755])
async def test_mode_bits_stay(tools: Tools, mode: int) -> None:
    path = tools.folder / "a.sh"
    path.write_text("one\n", encoding="utf-8")
    path.chmod(mode)
    await tools.edit("a.sh", ("one", "two"))
    assert stat.S_IMODE(path.stat().st_mode) == mode
    await tools.write("a.sh", "three\n")
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert names(tools.folder) == ["a.sh"]


@posix
async def test_a_new_file_obeys_the_umask(tools: Tools) -> None:
    before = os.umask(0o027)
    try:
        await tools.write("a.txt", "x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tools.folder / "a.txt").stat().st_mode) == 0o640


@posix
@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only the super-user can give files away"
)
async def test_the_owner_stays(tools: Tools) -> None:
    path = tools.folder / "a.txt"
    path.write_text("one\n", encoding="utf-8")
    os.chown(path, 1234, 2345)
    await tools.edit("a.txt", ("one", "two"))
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 2345)


async def test_extended_attributes_stay(tools: Tools) -> None:
    if not hasattr(os, "setxattr"):
        pytest.skip("no extended attributes here")
    path = tools.folder / "a.txt"
    path.write_text("one\n", encoding="utf-8")
    try:
        os.setxattr(path, "user.note", b"kept")
    except OSError:
        pytest.skip("this file system has no extended attributes")
    await tools.edit("a.txt", ("one", "two"))
    assert os.getxattr(path, "user.note") == b"kept"


@posix
async def test_symbolic_links_stay_and_their_file_changes(tools: Tools) -> None:
    (tools.folder / "real").mkdir()
    target = tools.folder / "real" / "a.txt"
    target.write_text("one\n", encoding="utf-8")
    (tools.folder / "link").symlink_to("real/a.txt")
    (tools.folder / "link2").symlink_to("link")
    await tools.edit("link2", ("one", "two"))
    assert target.read_text(encoding="utf-8") == "two\n"
    await tools.write("link2", "three\n")
    assert target.read_text(encoding="utf-8") == "three\n"
    assert (tools.folder / "link2").is_symlink() and (tools.folder / "link").is_symlink()
    (tools.folder / "dangling").symlink_to("real/new.txt")
    assert detail(await tools.write("dangling", "new\n"), "created") is True
    assert (tools.folder / "real" / "new.txt").read_text(encoding="utf-8") == "new\n"
    assert (tools.folder / "dangling").is_symlink()


@posix
async def test_a_hard_link_keeps_the_old_file(tools: Tools) -> None:
    (tools.folder / "a.txt").write_text("one\n", encoding="utf-8")
    (tools.folder / "b.txt").hardlink_to(tools.folder / "a.txt")
    await tools.edit("a.txt", ("one", "two"))
    assert (tools.folder / "a.txt").read_text(encoding="utf-8") == "two\n"
    assert (tools.folder / "b.txt").read_text(encoding="utf-8") == "one\n"


@posix
async def test_a_read_only_file_is_not_changed(tools: Tools) -> None:
    path = tools.folder / "a.txt"
    path.write_text("one\n", encoding="utf-8")
    path.chmod(0o444)
    assert "read-only (mode 0444)" in await tools.failure(
        "edit", path="a.txt", edits=[edit_json("one", "two")]
    )
    assert "read-only (mode 0444)" in await tools.failure("write", path="a.txt", content="two")
    assert path.read_text(encoding="utf-8") == "one\n"
    assert names(tools.folder) == ["a.txt"]


def test_a_file_changed_since_it_was_read_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\n", encoding="utf-8")
    asked = 0

    def meanwhile() -> None:
        nonlocal asked
        asked += 1
        if asked == 2:
            path.write_text("other work\n", encoding="utf-8")

    with pytest.raises(ToolError, match="Read it again"):
        edit_file(path, "a.txt", [("one", "two")], meanwhile)
    assert asked == 2
    assert path.read_text(encoding="utf-8") == "other work\n"
    assert names(tmp_path) == ["a.txt"]


def test_a_file_that_came_up_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"

    def meanwhile() -> None:
        path.write_text("other work\n", encoding="utf-8")

    with pytest.raises(ToolError, match="Read it again"):
        replace_file(path, b"mine", "a.txt", expected=None, check=meanwhile)
    assert path.read_text(encoding="utf-8") == "other work\n"
    assert names(tmp_path) == ["a.txt"]


def test_an_abort_before_the_file_is_replaced_leaves_it(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\n", encoding="utf-8")
    calls = 0

    def last_moment() -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise ToolError("stopped")

    with pytest.raises(ToolError, match="stopped"):
        edit_file(path, "a.txt", [("one", "two")], last_moment)
    assert path.read_text(encoding="utf-8") == "one\n"
    assert names(tmp_path) == ["a.txt"]


@pytest.mark.parametrize(
    ("name", "arguments"), [("edit", {"edits": [edit_json("one", "two")]}), ("write", {"content": "two"})]
)
async def test_an_aborted_call_changes_nothing(tools: Tools, name: str, arguments: dict[str, object]) -> None:
    (tools.folder / "a.txt").write_text("one\n", encoding="utf-8")
    context = FakeContext()
    context.controller.abort("Operation aborted")
    with pytest.raises(ToolError, match="Operation aborted"):
        await tools.call(name, {"path": "a.txt", **arguments}, context)  # type: ignore[dict-item]
    assert (tools.folder / "a.txt").read_text(encoding="utf-8") == "one\n"


@posix
def test_a_file_in_a_folder_that_takes_no_new_ones_is_written_in_place(open_folder: Path) -> None:
    path = open_folder / "a.txt"
    path.write_text("one two three\n", encoding="utf-8")
    path.chmod(0o666)
    inode = path.stat().st_ino
    open_folder.chmod(0o555)
    try:
        as_nobody(lambda: edit_file(path, "a.txt", [("two", "2")], wanted))
    finally:
        open_folder.chmod(0o755)
    assert path.read_text(encoding="utf-8") == "one 2 three\n"
    assert path.stat().st_ino == inode


@posix
def test_a_file_that_may_not_be_written_is_refused(open_folder: Path) -> None:
    path = open_folder / "a.txt"
    path.write_text("one\n", encoding="utf-8")
    path.chmod(0o644)
    with pytest.raises(AssertionError, match="read-only"):
        as_nobody(lambda: edit_file(path, "a.txt", [("one", "two")], wanted))
    assert path.read_text(encoding="utf-8") == "one\n"


async def test_a_failed_write_leaves_no_file_behind(tools: Tools, tmp_path: Path) -> None:
    path = tools.folder / "a.txt"
    path.write_text("one\n", encoding="utf-8")
    state = FileState.of(path.stat())
    with pytest.raises(ToolError):
        replace_file(path, b"two", "a.txt", expected=state, check=unwanted)
    assert names(tools.folder) == ["a.txt"]
    assert path.read_text(encoding="utf-8") == "one\n"


async def test_i02_edits_of_one_file_in_one_batch_all_arrive(tools: Tools) -> None:
    count = 40
    (tools.folder / "a.txt").write_text("".join(f"<{number}>\n" for number in range(count)), encoding="utf-8")
    (tools.folder / "link.txt").symlink_to("a.txt")
    calls = [
        tools.edit("link.txt" if number % 2 else "a.txt", (f"<{number}>", f"[{number}]"))
        for number in range(count)
    ]
    await asyncio.gather(*calls)
    expected = "".join(f"[{number}]\n" for number in range(count))
    assert (tools.folder / "a.txt").read_text(encoding="utf-8") == expected


@pytest.mark.parity("tools.file-queue")
async def test_i02_changes_of_one_file_happen_in_the_order_of_the_calls(tools: Tools) -> None:
    await asyncio.gather(*(tools.write("a.txt", str(number)) for number in range(30)))
    assert (tools.folder / "a.txt").read_text(encoding="utf-8") == "29"
    calls = [
        tools.write("a.txt", "one"),
        tools.edit("a.txt", ("one", "two")),
        tools.edit("a.txt", ("two", "three")),
    ]
    await asyncio.gather(*calls)
    assert (tools.folder / "a.txt").read_text(encoding="utf-8") == "three"


async def test_i02_other_files_do_not_wait(tmp_path: Path) -> None:
    queue = FileQueue()
    async with queue.turn(tmp_path / "a"), queue.turn(tmp_path / "b") as real:
        assert real == Path(os.path.realpath(tmp_path / "b"))


@posix
async def test_i02_hard_links_wait_for_each_other(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    (tmp_path / "b").hardlink_to(tmp_path / "a")
    queue = FileQueue()
    async with queue.turn(tmp_path / "a"):
        waiting = asyncio.create_task(enter(queue, tmp_path / "b"))
        done, _ = await asyncio.wait([waiting], timeout=0.05)
        assert not done
    await asyncio.wait_for(waiting, 5)


async def enter(queue: FileQueue, path: Path) -> None:
    async with queue.turn(path):
        pass


async def test_i02_a_cancelled_wait_lets_the_next_one_in(tmp_path: Path) -> None:
    queue = FileQueue()
    async with queue.turn(tmp_path / "a"):
        first, second = (asyncio.create_task(enter(queue, tmp_path / "a")) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
    await asyncio.wait_for(second, 5)
    assert first.cancelled()
    assert not queue._locks


async def test_i02_a_cancelled_change_keeps_its_turn_until_it_is_over(tmp_path: Path) -> None:
    from cantle.tools.blocking import run_blocking

    queue, started, release = FileQueue(), threading.Event(), threading.Event()
    log: list[str] = []

    def work(check: object) -> None:
        started.set()
        release.wait(10)
        log.append("first is over")

    async def change() -> None:
        async with queue.turn(tmp_path / "a"):
            await run_blocking(work, FakeContext().signal)

    async def follow() -> None:
        async with queue.turn(tmp_path / "a"):
            log.append("second begins")

    first = asyncio.create_task(change())
    await asyncio.to_thread(started.wait, 10)
    second = asyncio.create_task(follow())
    first.cancel()
    await asyncio.sleep(0)
    release.set()
    await asyncio.gather(first, second, return_exceptions=True)
    assert first.cancelled()
    assert log == ["first is over", "second begins"]


@pytest.mark.parity("tools.write-result")
async def test_write_makes_folders_and_counts(tools: Tools) -> None:
    result = await tools.write("x/y/a.txt", "one\ntwo é")
    assert text_of(result) == "Created x/y/a.txt (2 lines, 10 bytes)."
    assert result.details == {"created": True, "bytes": 10, "lines": 2}
    assert (tools.folder / "x/y/a.txt").read_bytes() == "one\ntwo é".encode()
    result = await tools.write("x/y/a.txt", "")
    assert result.details == {"created": False, "bytes": 0, "lines": 0}


@pytest.mark.parametrize("content", ["a\r\nb\rc\n", "\ufeffmarked", "no end", "\0\x01"])
async def test_write_writes_exactly_what_it_is_given(tools: Tools, content: str) -> None:
    await tools.write("a.txt", content)
    await tools.write("a.txt", content)
    assert (tools.folder / "a.txt").read_bytes() == content.encode()


async def test_write_says_when_an_encoding_goes(tools: Tools) -> None:
    (tools.folder / "a.txt").write_bytes("old\n".encode("utf-16"))
    assert "It was UTF-16-LE before and is plain UTF-8 now." in text_of(await tools.write("a.txt", "new\n"))
    (tools.folder / "b.txt").write_bytes(b"\xef\xbb\xbfold\n")
    assert "byte order mark before" in text_of(await tools.write("b.txt", "new\n"))
    (tools.folder / "b.txt").write_bytes(b"\xef\xbb\xbfold\n")
    assert "before" not in text_of(await tools.write("b.txt", "\ufeffnew\n"))


async def test_write_refuses_what_is_no_file(tools: Tools) -> None:
    (tools.folder / "folder").mkdir()
    (tools.folder / "file").touch()
    assert "is a directory" in await tools.failure("write", path="folder", content="x")
    assert "is a file" in await tools.failure("write", path="file/a.txt", content="x")
    assert "is a file" in await tools.failure("write", path="file/a/b.txt", content="x")
    assert "surrogate" in await tools.failure("write", path="a.txt", content="x\ud800")
    if sys.platform != "win32":
        assert "is a device" in await tools.failure("write", path="/dev/null", content="x")
    assert names(tools.folder) == ["file", "folder"]
