"""The output of `bash`: both its ends for the model, all of it in a file, whatever it is made of."""

import os
import random
import stat
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cantle.tools.bash.output import HEAD_BYTES, HEAD_LINES, CommandOutput, plain_text
from cantle.tools.truncation import MAX_BYTES, MAX_LINES
from packages.cantle.tests.tools.harness import Tools, detail, details_of, text_of
from tests.support.samples import samples

posix = pytest.mark.skipif(sys.platform == "win32", reason="the commands of these tests are POSIX ones")


def numbered(first: int, last: int) -> str:
    return "".join(f"{number}\n" for number in range(first, last + 1))


@posix
@pytest.mark.parity("tools.bash-truncation")
@pytest.mark.fault("H-05")
async def test_h05_both_ends_are_shown_and_all_lines_are_in_the_file(tools: Tools) -> None:
    result = await tools.bash("seq 5000")
    path = Path(str(detail(result, "fullOutputPath")))
    assert path.read_text(encoding="utf-8") == numbered(1, 5_000)
    assert path.parent == tools.environment.temp_dir
    if sys.platform != "win32":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert (
        text_of(result)
        == numbered(1, 200)
        + "[… 3000 lines left out …]\n"
        + numbered(3_201, 5_000)
        + f"\n[Shown: lines 1-200 and lines 3201-5000, of 5000 lines and 23.3 KB in all. All of it: {path}]"
    )
    assert detail(result, "truncation") == {
        "truncated": True,
        "truncatedBy": "lines",
        "totalLines": 5_000,
        "totalBytes": 23_893,
        "outputLines": MAX_LINES,
        "outputBytes": 692 + 9_000,
        "headLines": 200,
        "lastLinePartial": False,
        "firstLineExceedsLimit": False,
        "maxLines": MAX_LINES,
        "maxBytes": MAX_BYTES,
    }


@posix
async def test_the_byte_limit_leaves_whole_lines(tools: Tools) -> None:
    result = await tools.bash("for i in $(seq 1000); do printf '%0100d\\n' $i; done")
    shown, _, notice = text_of(result).rpartition("\n\n")
    first, last = shown.split("\n[… 494 lines left out …]\n")
    assert first.split("\n") == [f"{number:0100d}" for number in range(1, 102)]
    assert last.split("\n") == [f"{number:0100d}" for number in range(596, 1_001)]
    assert notice.startswith("[Shown: lines 1-101 and lines 596-1000, of 1000 lines and 98.6 KB in all.")
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
    text = text_of(await tools.bash(f"seq {MAX_LINES}; printf x"))
    assert "200\n[… 1 line left out …]\n202\n" in text
    assert "[Shown: lines 1-200 and lines 202-2001, of 2001 lines and" in text


@posix
@pytest.mark.fault("H-03")
async def test_h03_the_end_of_a_line_beyond_the_limit_is_shown(tools: Tools) -> None:
    result = await tools.bash("echo first; head -c 70000 /dev/zero | tr '\\0' a; printf end; exit 3")
    shown, _, rest = text_of(result).partition("\n\n")
    assert shown == "first\n[… the rest of it left out …]\n" + "a" * (MAX_BYTES - 6 - 3) + "end"
    assert rest.startswith("[Shown: line 1 and the last 50.0 KB of line 2, of 2 lines and 68.4 KB in all.")
    assert rest.endswith("Exit code 3.")
    assert detail(result, "truncation", "lastLinePartial") is True


@posix
@pytest.mark.fault("H-03")
@pytest.mark.parametrize("size", [60_000, 3_000_000])
async def test_h03_of_a_single_long_line_both_ends_are_shown(tools: Tools, size: int) -> None:
    result = await tools.bash(f"printf begin; head -c {size} /dev/zero | tr '\\0' a; printf end")
    shown, _, rest = text_of(result).rpartition("\n\n")
    first, last = shown.split("\n[… the rest of it left out …]\n")
    assert (len(first), len(last)) == (HEAD_BYTES, MAX_BYTES - HEAD_BYTES)
    assert first.startswith("begina")
    assert last.endswith("aend")
    assert rest.startswith(
        "[Shown: the first 10.0 KB of line 1 and the last 40.0 KB of line 1, of 1 line and"
    )
    assert " 0 bytes" not in text_of(result)


@posix
async def test_of_gigabytes_the_first_lines_are_shown_as_well(tools: Tools) -> None:
    text = text_of(await tools.bash("echo the beginning; seq 1000000; echo the end"))
    assert text.startswith("the beginning\n1\n2\n")
    assert "\n1000000\nthe end\n\n[Shown: lines 1-200 and lines " in text
    assert ", of 1000002 lines and 6.6 MB in all." in text


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7])
@pytest.mark.fault("H-04")
def test_h04_a_character_cut_by_a_chunk_stays_whole(size: int) -> None:
    text = "aé€😀\n" * 50
    output = CommandOutput(None)
    data = text.encode()
    for start in range(0, len(data), size):
        output.feed(data[start : start + size])
    assert output.finish().text() == text


@posix
@pytest.mark.fault("H-04")
async def test_h04_a_character_cut_by_time_stays_whole(tools: Tools) -> None:
    assert text_of(await tools.bash("printf '\\xe2\\x82'; sleep 0.15; printf '\\xac'")) == "€"


@posix
@pytest.mark.fault("H-09")
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
@pytest.mark.fault("H-09")
def test_h09_terminal_sequences_leave_no_fragments(raw: str, plain: str) -> None:
    assert plain_text(raw) == plain


@posix
@pytest.mark.timeout(300)
@pytest.mark.fault("H-05")
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
    assert text_of(result).startswith("1\n2\n")
    assert "fullOutputPath" not in details_of(result)


@posix
async def test_no_folder_for_temporary_files_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: [str(tmp_path / "nowhere")])
    result = await Tools(tmp_path).bash("seq 5000")
    assert text_of(result).startswith("1\n2\n")
    assert "could not be kept whole: there is no folder for temporary files" in text_of(result)
    assert "fullOutputPath" not in details_of(result)
    assert not result.is_error


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
    assert output.finish().text().endswith("y\n")


async def test_output_that_grows_as_text_is_in_the_file_as_well(tmp_path: Path) -> None:
    data = b"\xff" * 30_000
    output = CommandOutput(tmp_path)
    output.feed(data)
    assert output.finish().truncation is not None
    assert output.path is not None
    assert output.path.read_bytes() == data


def test_output_that_shrinks_as_text_needs_no_file(tmp_path: Path) -> None:
    output = CommandOutput(tmp_path)
    output.feed(b"\x1b[31mx\x1b[0m\n" * 1_000 + b"\x1b[0m" * 20_000)
    assert output.finish().text() == "x\n" * 1_000
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
def test_head_and_tail_are_the_longest_within_the_limits(
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
    excerpt = output.finish()
    if output.path is not None:
        assert output.path.read_bytes() == data
        output.path.unlink()
    cut = excerpt.truncation
    pieces = text.split("\n")
    total = len(pieces) - (pieces[-1] == "")
    if len(data) <= MAX_BYTES and total <= MAX_LINES:
        assert (excerpt.text(), cut) == (text, None)
        return
    assert cut is not None
    assert (cut.total_lines, cut.total_bytes) == (total, len(data))
    head, tail = excerpt.head, excerpt.tail
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + len(tail) < len(text)
    assert cut.output_bytes == len(head.encode()) + len(tail.encode()) <= MAX_BYTES
    assert cut.output_lines <= MAX_LINES
    assert 0 < cut.head_lines <= HEAD_LINES
    assert len(head.encode()) <= HEAD_BYTES
    if head.endswith("\n"):
        longer = text[: text.find("\n", len(head)) + 1 or None]
        assert len(longer.encode()) > HEAD_BYTES or longer.count("\n") > HEAD_LINES
    if tail and not cut.last_line_partial:
        before = text[: len(text) - len(tail)]
        assert before.endswith("\n")
        longer = before[:-1].rpartition("\n")[2] + "\n" + tail
        count = len(longer.split("\n")) - longer.endswith("\n") + cut.head_lines
        assert len((head + longer).encode()) > MAX_BYTES or count > MAX_LINES


@settings(max_examples=samples(5_000, 200), deadline=None)
@given(
    parts=st.lists(
        st.one_of(
            st.text(max_size=40).map(lambda text: text.encode("utf-8", "surrogatepass")),
            st.binary(max_size=40),
            st.sampled_from(
                [b"\x1b[31m", b"\x1b]0;title\x07", b"\xf0\x9f\x98", b"\x80", b"\r\n", b"x" * 9_000]
            ),
        ),
        max_size=30,
    ),
    times=st.integers(1, 12),
    choose=st.randoms(use_true_random=False),
)
@pytest.mark.timeout(300)
@pytest.mark.fault("H-04", "H-09")
def test_h04_output_in_pieces_of_any_size_reads_as_if_it_came_whole(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes], times: int, choose: random.Random
) -> None:
    data = b"".join(parts) * times
    pieces = CommandOutput(tmp_path_factory.getbasetemp())
    position = 0
    while position < len(data):
        size = choose.choice([1, 2, 3, 5, 100, 4_096, 70_000])
        pieces.feed(data[position : position + size])
        position += size
    whole = CommandOutput(tmp_path_factory.getbasetemp())
    whole.feed(data)
    assert pieces.tail() == whole.tail()
    excerpt = pieces.finish()
    assert excerpt == whole.finish()
    if excerpt.truncation is None:
        assert excerpt.text() == plain_text(data.decode("utf-8", "replace"))
    for output in (pieces, whole):
        if output.path is not None:
            assert output.path.read_bytes() == data
            output.path.unlink()
