"""The output of `bash`: its end for the model, all of it in a file, whatever it is made of."""

import os
import stat
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cantle.tools.bash.output import CommandOutput, plain_text
from cantle.tools.truncation import MAX_BYTES, MAX_LINES
from packages.cantle.tests.tools.harness import Tools, detail, details_of, text_of
from tests.support.samples import samples

posix = pytest.mark.skipif(sys.platform == "win32", reason="the commands of these tests are POSIX ones")


def numbered(first: int, last: int) -> str:
    return "".join(f"{number}\n" for number in range(first, last + 1))


@posix
@pytest.mark.parity("tools.bash-truncation")
async def test_h05_the_last_lines_are_shown_and_all_are_in_the_file(tools: Tools) -> None:
    result = await tools.bash("seq 5000")
    path = Path(str(detail(result, "fullOutputPath")))
    assert path.read_text(encoding="utf-8") == numbered(1, 5_000)
    assert path.parent == tools.environment.temp_dir
    if sys.platform != "win32":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert (
        text_of(result)
        == numbered(3_001, 5_000) + f"\n[Lines 3001-5000 of 5000, 23.3 KB in all. All of it: {path}]"
    )
    assert detail(result, "truncation") == {
        "truncated": True,
        "truncatedBy": "lines",
        "totalLines": 5_000,
        "totalBytes": 23_893,
        "outputLines": MAX_LINES,
        "outputBytes": 10_000,
        "lastLinePartial": False,
        "firstLineExceedsLimit": False,
        "maxLines": MAX_LINES,
        "maxBytes": MAX_BYTES,
    }


@posix
async def test_the_byte_limit_leaves_whole_lines(tools: Tools) -> None:
    result = await tools.bash("for i in $(seq 1000); do printf '%0100d\\n' $i; done")
    shown, _, notice = text_of(result).rpartition("\n\n")
    assert shown.split("\n") == [f"{number:0100d}" for number in range(495, 1_001)]
    assert notice.startswith("[Lines 495-1000 of 1000")
    assert detail(result, "truncation", "truncatedBy") == "bytes"


@posix
@pytest.mark.parametrize("lines", [MAX_LINES, MAX_LINES - 1])
async def test_i07_output_of_exactly_the_limit_is_whole(tools: Tools, lines: int) -> None:
    result = await tools.bash(f"seq {lines}")
    assert text_of(result) == numbered(1, lines)
    assert "truncation" not in details_of(result)
    assert not any((tools.environment.temp_dir or Path()).glob("*"))


@posix
async def test_i07_one_line_more_is_announced(tools: Tools) -> None:
    assert "[Lines 2-2001 of 2001" in text_of(await tools.bash(f"seq {MAX_LINES}; printf x"))


@posix
async def test_h03_the_end_of_a_line_beyond_the_limit_is_shown(tools: Tools) -> None:
    result = await tools.bash("echo first; head -c 70000 /dev/zero | tr '\\0' a; printf end; exit 3")
    shown, _, rest = text_of(result).partition("\n\n")
    assert shown == "a" * (MAX_BYTES - 3) + "end"
    assert rest.startswith("[The last 50.0 KB of line 2.")
    assert rest.endswith("Exit code 3.")
    assert detail(result, "truncation", "lastLinePartial") is True


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7])
def test_h04_a_character_cut_by_a_chunk_stays_whole(size: int) -> None:
    text = "aé€😀\n" * 50
    output = CommandOutput(None)
    data = text.encode()
    for start in range(0, len(data), size):
        output.feed(data[start : start + size])
    assert output.finish().text == text


@posix
async def test_h04_a_character_cut_by_time_stays_whole(tools: Tools) -> None:
    assert text_of(await tools.bash("printf '\\xe2\\x82'; sleep 0.15; printf '\\xac'")) == "€"


@posix
async def test_h09_binary_output_is_text_with_replacements(tools: Tools) -> None:
    result = await tools.bash("printf 'a\\xff\\xfe\\0\\1b\\x1b[31mred\\x1b[0m\\b\\a\\tc'")
    assert text_of(result) == "a\ufffd\ufffdbred\tc"
    assert not (await tools.bash("head -c 300000 /dev/urandom")).is_error
    assert text_of(await tools.bash("head -c 2048 /dev/zero")) == "[2.0 KB of output, none of it text.]"
    assert "without text" in text_of(await tools.bash("head -c 500000 /dev/zero"))


@pytest.mark.parametrize(
    ("raw", "plain"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b[38;5;208mx\x1b[m", "x"),
        ("\x1b[?25l\x1b[2K\x1b[1Gline\x1b[K", "line"),
        ("\x1b[<35;59;1M\x1b[<35;60;1m", ""),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPq#0~~\x1b\\after", "after"),
        ("\x1b_Gi=1;AAAA\x1b\\after", "after"),
        ("\x1b(Bplain\x1b=\x1b>", "plain"),
        ("\x9b31mred", "red"),
        ("cut \x1b[38;5", "cut "),
        ("cut \x1b", "cut "),
        ("cut \x1b[38;5\nnext", "cut \nnext"),
        ("\x1b]0;never closed\nnext line", "\nnext line"),
        ("tab\tcr\rlf\n", "tab\tcr\rlf\n"),
        ("10%\x0820%\x07", "10%20%"),
        ("no escape: [31m 35;59;1M", "no escape: [31m 35;59;1M"),
    ],
)
def test_h09_terminal_sequences_leave_no_fragments(raw: str, plain: str) -> None:
    assert plain_text(raw) == plain


@posix
@pytest.mark.timeout(300)
async def test_h05_gigabytes_cost_no_memory(tools: Tools) -> None:
    size = samples(1 << 30, 1 << 27)
    result = await tools.bash(f"yes 'some words of output' | head -c {size}; echo; echo end")
    assert "\nend\n" in text_of(result)
    assert Path(str(detail(result, "fullOutputPath"))).stat().st_size == size + 5
    assert detail(result, "truncation", "totalBytes") == size + 5
    output = CommandOutput(tools.environment.temp_dir)
    for _ in range(1_000):
        output.feed(b"x" * 65_536)
    assert len(output._kept) < 10 * MAX_BYTES
    output.close()


@posix
async def test_a_file_that_can_not_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    tools = Tools(tmp_path, temp_dir=tmp_path / "file" / "no folder")
    result = await tools.bash("seq 5000")
    assert "could not be kept whole" in text_of(result)
    assert text_of(result).startswith("3001\n")
    assert "fullOutputPath" not in details_of(result)


@posix
async def test_a_full_disk_is_said(tmp_path: Path) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    output = CommandOutput(tmp_path)
    output.feed(b"x\n" * 40_000)
    assert output._descriptor is not None
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, output._descriptor)
    os.close(full)
    output.feed(b"y\n" * 10)
    assert output.failure is not None
    assert "no space left" in output.failure
    assert output.finish().text.endswith("y\n")


async def test_output_that_grows_as_text_is_in_the_file_as_well(tmp_path: Path) -> None:
    data = b"\xff" * 30_000
    output = CommandOutput(tmp_path)
    output.feed(data)
    tail = output.finish()
    assert tail.truncation is not None
    assert output.path is not None
    assert output.path.read_bytes() == data


def test_output_that_shrinks_as_text_needs_no_file(tmp_path: Path) -> None:
    output = CommandOutput(tmp_path)
    output.feed(b"\x1b[31mx\x1b[0m\n" * 1_000 + b"\x1b[0m" * 20_000)
    assert output.finish().text == "x\n" * 1_000
    assert list(tmp_path.iterdir()) == []


@settings(max_examples=samples(3_000, 150), deadline=None)
@given(
    lines=st.lists(
        st.tuples(st.sampled_from(["", "ab", "é", "x" * 700, "y" * 60_000]), st.integers(1, 900)), max_size=5
    ),
    end=st.sampled_from(["", "\n", "rest"]),
    size=st.integers(1_000, 200_000),
)
@pytest.mark.timeout(300)
def test_the_tail_is_the_longest_end_within_the_limits(
    tmp_path_factory: pytest.TempPathFactory, lines: list[tuple[str, int]], end: str, size: int
) -> None:
    text = (
        "".join((line + "\n") * (count if len(line) < 1_000 else 1 + count % 3) for line, count in lines)
        + end
    )
    data = text.encode()
    output = CommandOutput(tmp_path_factory.getbasetemp())
    for start in range(0, len(data), size):
        output.feed(data[start : start + size])
    tail = output.finish()
    if output.path is not None:
        assert output.path.read_bytes() == data
        output.path.unlink()
    assert text.endswith(tail.text)
    pieces = text.split("\n")
    total = len(pieces) - (pieces[-1] == "")
    if len(data) <= MAX_BYTES and total <= MAX_LINES:
        assert tail.text == text
        assert tail.truncation is None
        return
    assert tail.truncation is not None
    assert tail.truncation.total_lines == total
    shown = tail.text.encode()
    assert len(shown) <= MAX_BYTES
    assert tail.truncation.output_lines <= MAX_LINES
    if not tail.truncation.last_line_partial:
        before = text[: len(text) - len(tail.text)]
        assert before.endswith("\n")
        longer = before[:-1].rpartition("\n")[2] + "\n" + tail.text
        count = len(longer.split("\n")) - longer.endswith("\n")
        assert len(longer.encode()) > MAX_BYTES or count > MAX_LINES
