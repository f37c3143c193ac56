"""`read` on text: windows, limits, and the notices that say how to go on."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cantle.tools.read.file import read_file
from cantle.tools.truncation import MAX_BYTES, MAX_LINES
from cantle_agent.tool import ToolError
from packages.cantle.tests.tools.harness import FakeContext, Tools, as_nobody, detail, text_of
from tests.support.samples import samples


def numbered(count: int) -> str:
    return "".join(f"line {number}\n" for number in range(1, count + 1))


@pytest.mark.parametrize("content", ["one\ntwo\n", "one\ntwo", "\n\n\n", " \t\n", "a\fb\x0bc\u2028d\n"])
async def test_a_short_file_is_shown_as_it_is(tools: Tools, content: str) -> None:
    (tools.folder / "a.txt").write_bytes(content.encode())
    result = await tools.read("a.txt")
    assert text_of(result) == content
    assert result.details is None


@pytest.mark.parity("tools.read-crlf")
async def test_crlf_is_shown_and_counts_once(tools: Tools) -> None:
    (tools.folder / "a.txt").write_bytes(b"one\r\ntwo\r\nthree\r\nfour\r\n")
    assert text_of(await tools.read("a.txt")) == "one\r\ntwo\r\nthree\r\nfour\r\n"
    assert text_of(await tools.read("a.txt", offset=2, limit=2)) == (
        "two\r\nthree\n\n[Lines 2-3 of 4; the next ones: offset=4]"
    )


async def test_lines_may_end_with_cr_alone(tools: Tools) -> None:
    (tools.folder / "a.txt").write_bytes(b"one\rtwo\rthree")
    result = await tools.read("a.txt", offset=2, limit=1)
    assert text_of(result) == "two\n\n[Lines 2-2 of 3; the next ones: offset=3]"


async def test_an_empty_file_says_so(tools: Tools) -> None:
    (tools.folder / "a.txt").touch()
    assert text_of(await tools.read("a.txt")) == "[The file is empty.]"


@pytest.mark.parity("tools.read-limits")
async def test_the_line_limit_has_a_notice_that_says_how_to_go_on(tools: Tools) -> None:
    (tools.folder / "a.txt").write_text(numbered(3_000), encoding="utf-8")
    result = await tools.read("a.txt")
    assert text_of(result) == numbered(MAX_LINES) + "\n[Lines 1-2000 of 3000; the next ones: offset=2001]"
    assert detail(result, "truncation") == {
        "truncated": True,
        "truncatedBy": "lines",
        "totalLines": 3_000,
        "totalBytes": len(numbered(3_000)),
        "outputLines": MAX_LINES,
        "outputBytes": len(numbered(MAX_LINES)) - 1,
        "lastLinePartial": False,
        "firstLineExceedsLimit": False,
        "maxLines": MAX_LINES,
        "maxBytes": MAX_BYTES,
    }
    rest = await tools.read("a.txt", offset=2_001)
    assert text_of(rest) == "".join(f"line {number}\n" for number in range(2_001, 3_001))
    assert rest.details is None


async def test_the_byte_limit_leaves_whole_lines(tools: Tools) -> None:
    (tools.folder / "a.txt").write_text(("y" * 100 + "\n") * 1_000, encoding="utf-8")
    result = await tools.read("a.txt", offset=10)
    shown, _, notice = text_of(result).rpartition("\n\n")
    assert shown == "\n".join(["y" * 100] * 506)
    assert notice == "[Lines 10-515 of 1000, 50.0 KB at a time; the next ones: offset=516]"
    assert detail(result, "truncation", "truncatedBy") == "bytes"


@pytest.mark.parametrize("lines", [MAX_LINES, MAX_LINES - 1])
@pytest.mark.parametrize("end", ["\n", ""])
@pytest.mark.parity("tools.read-exact")
async def test_i07_no_notice_when_nothing_is_left(tools: Tools, lines: int, end: str) -> None:
    content = numbered(lines).removesuffix("\n") + end
    (tools.folder / "a.txt").write_text(content, encoding="utf-8")
    result = await tools.read("a.txt")
    assert text_of(result) == content
    assert result.details is None


@pytest.mark.parametrize("end", [b"\n", b""])
async def test_i07_no_notice_at_exactly_the_byte_limit(tools: Tools, end: bytes) -> None:
    content = b"a" * 99 + b"\n" + b"b" * (MAX_BYTES - 100 - len(end)) + end
    (tools.folder / "a.txt").write_bytes(content)
    result = await tools.read("a.txt")
    assert text_of(result) == content.decode()
    assert result.details is None


async def test_i07_one_line_more_than_the_limit_is_announced(tools: Tools) -> None:
    (tools.folder / "a.txt").write_text(numbered(MAX_LINES) + "x", encoding="utf-8")
    assert text_of(await tools.read("a.txt")).endswith("[Lines 1-2000 of 2001; the next ones: offset=2001]")


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ({"offset": 3, "limit": 2}, "line 3\nline 4\n\n[Lines 3-4 of 20; the next ones: offset=5]"),
        ({"offset": 20}, "line 20\n"),
        ({"offset": 19, "limit": 2}, "line 19\nline 20\n"),
        ({"offset": 20, "limit": 5}, "line 20\n"),
        ({"limit": 1}, "line 1\n\n[Lines 1-1 of 20; the next ones: offset=2]"),
        ({"offset": 0, "limit": 1}, "line 1\n\n[Lines 1-1 of 20; the next ones: offset=2]"),
        ({"offset": 1, "limit": 20}, numbered(20)),
    ],
)
@pytest.mark.parity("tools.read-window")
async def test_offset_and_limit_choose_lines(tools: Tools, arguments: dict[str, int], shown: str) -> None:
    (tools.folder / "a.txt").write_text(numbered(20), encoding="utf-8")
    result = await tools.read("a.txt", **arguments)
    assert text_of(result) == shown
    assert result.details is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"offset": 21}, ["20 lines", "no line 21"]),
        ({"offset": 10**9}, ["20 lines"]),
        ({"offset": -1}, ["offset"]),
        ({"limit": 0}, ["limit"]),
        ({"limit": -5}, ["limit"]),
        ({"offset": "x"}, ["offset", "number"]),
    ],
)
@pytest.mark.parity("tools.read-beyond")
async def test_a_window_outside_the_file_is_an_error(
    tools: Tools, arguments: dict[str, int], words: list[str]
) -> None:
    (tools.folder / "a.txt").write_text(numbered(20), encoding="utf-8")
    failure = await tools.failure("read", path="a.txt", **arguments)
    assert all(word in failure for word in words)


@pytest.mark.parametrize("character", ["x", "é", "€", "😀"])
async def test_h03_a_line_beyond_the_limit_gives_its_beginning(tools: Tools, character: str) -> None:
    line = character * (60_000 // len(character.encode()))
    (tools.folder / "a b.txt").write_text(f"first\n{line}\nlast\n", encoding="utf-8")
    result = await tools.read("a b.txt", offset=2)
    shown, _, notice = text_of(result).rpartition("\n\n")
    assert line.startswith(shown)
    assert MAX_BYTES - 4 < len(shown.encode()) <= MAX_BYTES
    assert f"line 2, which has {len(line.encode()):,} bytes" in notice
    assert "offset=3" in notice
    command = notice[notice.index("sed ") : notice.index("; line 3")]
    following = text_of(await tools.bash(command))
    assert (line + "\n").startswith(shown + following)
    assert shown + following == line + "\n"
    assert detail(result, "truncation", "firstLineExceedsLimit") is True


async def test_h03_a_long_line_after_short_ones_comes_next(tools: Tools) -> None:
    (tools.folder / "a.txt").write_text("short\n" + "x" * 60_000 + "\n", encoding="utf-8")
    assert text_of(await tools.read("a.txt")) == (
        "short\n\n[Lines 1-1 of 2, 50.0 KB at a time; the next ones: offset=2]"
    )


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
async def test_i03_a_huge_file_is_not_loaded(tools: Tools) -> None:
    size = samples(1 << 30, 1 << 28)
    path = tools.folder / "huge.txt"
    with path.open("wb") as file:
        # A hole costs no disk.
        file.write(b"first\n" * 20_000)
        file.truncate(size)
        file.seek(size)
        file.write(b"\nlast\n")
    script = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from packages.cantle.tests.tools.harness import Tools, text_of\n"
        "result = asyncio.run(Tools(Path(sys.argv[1])).read('huge.txt', offset=20002))\n"
        "peak = next(row for row in Path('/proc/self/status').open() if row.startswith('VmHWM'))\n"
        "print(repr(text_of(result)), peak.split()[1])\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script, str(tools.folder)], capture_output=True, encoding="utf-8", check=True
    )
    text, peak = run.stdout.rsplit(maxsplit=1)
    assert text == repr("last\n")
    assert int(peak) < 100_000, "KB"


async def test_an_abort_ends_a_long_read(tools: Tools) -> None:
    path = tools.folder / "huge.txt"
    with path.open("wb") as file:
        file.write(b"a\n" * 100_000)
        file.truncate(1 << 36)
    context = FakeContext()
    asyncio.get_running_loop().call_later(0.05, context.controller.abort, "stop it")
    with pytest.raises(ToolError, match="stop it"):
        await tools.call("read", {"path": "huge.txt", "offset": 200_000}, context)


async def test_a_file_that_grows_while_it_is_read_is_no_trouble(tools: Tools) -> None:
    if not Path("/proc/self/status").exists():
        pytest.skip("needs a file whose size is not known beforehand: /proc")
    assert "VmRSS" in text_of(await tools.read("/proc/self/status"))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"abc\0def", ["binary", "7 bytes", "bash"]),
        (b"%PDF-1.7\n\0\0", ["PDF", "pdftotext"]),
        (b"PK\x03\x04\0\0", ["ZIP", "unzip"]),
        (b"\x7fELF\x02\0\0", ["program", "strings"]),
        (b"SQLite format 3\0more", ["SQLite"]),
        (b"text\n" * 50_000 + b"\0" + b"text\n", ["binary"]),
    ],
)
async def test_binary_is_refused_with_what_to_do(tools: Tools, content: bytes, words: list[str]) -> None:
    (tools.folder / "a.bin").write_bytes(content)
    failure = await tools.failure("read", path="a.bin", offset=50_001 if len(content) > 9_999 else 1)
    assert all(word in failure for word in words)


async def test_what_is_no_file_is_refused_and_never_waited_for(tools: Tools) -> None:
    (tools.folder / "folder").mkdir()
    assert "directory" in await tools.failure("read", path="folder")
    assert "directory" in await tools.failure("read", path=".")
    if sys.platform != "win32":
        os.mkfifo(tools.folder / "pipe")
        assert "named pipe" in await tools.failure("read", path="pipe")
        assert "device" in await tools.failure("read", path="/dev/zero")


@pytest.mark.skipif(not hasattr(os, "setuid"), reason="needs another user")
def test_an_unreadable_file_says_why(open_folder: Path) -> None:
    (open_folder / "secret.txt").write_text("x", encoding="utf-8")
    (open_folder / "secret.txt").chmod(0o600)
    with pytest.raises(AssertionError, match="permission denied"):
        as_nobody(lambda: read_file(open_folder, "secret.txt", 1, None, lambda: None))
