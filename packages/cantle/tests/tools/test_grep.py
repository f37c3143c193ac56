"""`grep` as a model uses it, with ripgrep and without."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cantle.tools.grep.search import MAX_LINE
from cantle.tools.search.lines import KEPT
from cantle.tools.truncation import MAX_BYTES
from packages.cantle.tests.tools.harness import Tools, as_nobody, detail, text_of
from packages.cantle.tests.tools.searching import both, grep, grep_text, refusal, write_files


@pytest.mark.parity("tools.grep-lines")
@both
def test_matches_are_shown_with_path_and_line(tmp_path: Path, program: str | None) -> None:
    write_files(
        tmp_path, {"b/c.txt": "hit\n", "a.txt": "one\ntwo hit\n\nfive hit\n", "z": "no\n", ".env": "hit"}
    )
    result = grep(tmp_path, "hit", program)
    assert text_of(result) == ".env:1: hit\na.txt:2: two hit\na.txt:4: five hit\nb/c.txt:1: hit"
    assert result.details is None
    assert grep_text(tmp_path, "hit", program, "b") == "c.txt:1: hit"


@pytest.mark.parity("tools.grep-context")
@both
def test_lines_around_a_match_are_told_from_it_and_shown_once(tmp_path: Path, program: str | None) -> None:
    write_files(
        tmp_path, {"f": "\n".join(["l1", "hit", "l3", "l4", "l5", "l6", "hit", "l8", "hit", "l10", "l11"])}
    )
    assert grep_text(tmp_path, "hit", program, context=1).split("\n") == [
        "f-1- l1", "f:2: hit", "f-3- l3", "f-6- l6", "f:7: hit", "f-8- l8", "f:9: hit", "f-10- l10"
    ]  # fmt: skip
    whole = grep_text(tmp_path, "hit", program, context=3).split("\n")
    assert len(whole) == 11
    assert grep_text(tmp_path, "hit", program, context=100_000).split("\n") == whole


@pytest.mark.parity("tools.grep-file")
@both
def test_a_file_may_be_searched_whatever_rules_or_globs_say(tmp_path: Path, program: str | None) -> None:
    write_files(tmp_path, {".gitignore": "*.log\n", "in/a.log": "x\nhit\n"})
    assert grep_text(tmp_path, "hit", program, "in/a.log", glob="*.py") == "a.log:2: hit"
    assert grep_text(tmp_path, "hit", program) == "No line matches, in 1 file."
    (tmp_path / "link").symlink_to("in/a.log")
    assert grep_text(tmp_path, "hit", program, "link") == "link:2: hit"
    assert grep_text(tmp_path, "no", program, "in/a.log") == "No line matches."


@both
def test_a_link_to_a_folder_is_searched_when_it_is_asked_for(tmp_path: Path, program: str | None) -> None:
    write_files(tmp_path, {"real/a": "hit\n"})
    (tmp_path / "way").symlink_to("real")
    assert grep_text(tmp_path, "hit", program) == "real/a:1: hit"
    assert grep_text(tmp_path, "hit", program, "way") == "a:1: hit"


@pytest.mark.fault("I06")
@pytest.mark.parity("tools.grep-glob")
@both
def test_i06_a_glob_counts_from_the_searched_folder(tmp_path: Path, program: str | None) -> None:
    write_files(tmp_path, {"a/x.py": "hit\n", "a/b/y.py": "hit\n", "a/b/z.txt": "hit\n", "x.py": "hit\n"})

    def files(path: str, glob: str) -> list[str]:
        return [
            line.partition(":")[0]
            for line in grep_text(tmp_path, "hit", program, path, glob=glob).split("\n")
        ]

    assert files(".", "*.py") == ["a/b/y.py", "a/x.py", "x.py"]
    assert files("a", "*.py") == ["b/y.py", "x.py"]
    assert files("a", "b/*") == ["b/y.py", "b/z.txt"]
    assert files("a", "./b/*") == ["b/y.py", "b/z.txt"]
    assert files("a", "b/") == ["b/y.py", "b/z.txt"]
    assert files("a", "!*.py") == ["b/z.txt"]
    assert files(".", "a/**/*.{py,txt}") == ["a/b/y.py", "a/b/z.txt", "a/x.py"]
    assert files("a", f"{tmp_path.resolve()}/a/b/*.py") == ["b/y.py"]
    assert files("a", f"!{tmp_path.resolve()}/a/b/*") == ["x.py"]
    assert files("a", "a/*") == ["No line matches"]
    text = grep_text(tmp_path, "hit", program, "a", glob="a/*")
    assert text == "No line matches: there is no file that the glob takes."


@pytest.mark.fault("I05")
@both
@pytest.mark.parametrize("pattern", ["-x", "--files", "-e", "--", "-"])
def test_i05_a_pattern_that_begins_with_a_hyphen_is_a_pattern(
    tmp_path: Path, program: str | None, pattern: str
) -> None:
    write_files(tmp_path, {"-f": f"a {pattern} b\n", "-": f"{pattern}\n", "--help": f"{pattern}\n"})
    assert (
        grep_text(tmp_path, pattern, program) == f"-:1: {pattern}\n--help:1: {pattern}\n-f:1: a {pattern} b"
    )
    assert grep_text(tmp_path, pattern, program, "-") == f"-:1: {pattern}"


@pytest.mark.fault("I05")
@both
def test_i05_no_configuration_of_ripgrep_is_obeyed(
    tmp_path: Path, program: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(tmp_path, {"config": "--invert-match\n--glob=!a\n--max-count=1\n", "in/a": "hit\nhit\nno\n"})
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(tmp_path / "config"))
    assert grep_text(tmp_path, "hit", program, "in") == "a:1: hit\na:2: hit"


@pytest.mark.fault("I07")
@pytest.mark.parity("tools.grep-limit")
@both
@pytest.mark.parametrize("context", [0, 2])
def test_i07_the_limit_is_announced_where_there_is_more(
    tmp_path: Path, program: str | None, context: int
) -> None:
    write_files(tmp_path, {f"{number:03}": "hit\n" for number in range(100)})
    result = grep(tmp_path, "hit", program, context=context)
    assert text_of(result).count("\n") == 99
    assert result.details is None
    write_files(tmp_path, {"zz": "no\nhit\nno\n"})
    result = grep(tmp_path, "hit", program, context=context)
    shown, _, notice = text_of(result).partition("\n\n")
    assert shown.count("\n") == 99
    assert notice == "[The first 100; there are more matches. Narrow the search, or raise limit.]"
    assert result.details == {"matchLimitReached": 100}
    assert grep(tmp_path, "hit", program, context=context, limit=101).details is None


@pytest.mark.fault("I07")
@both
def test_i07_the_limit_may_fall_between_lines_that_belong_together(
    tmp_path: Path, program: str | None
) -> None:
    write_files(tmp_path, {"f": "hit 1\nb\nhit 2\nhit 3\nc\nd\nhit 4\n"})
    assert grep_text(tmp_path, "hit", program, limit=1, context=2).split("\n") == [
        "f:1: hit 1", "f-2- b", "f-3- hit 2", "", "[The first 1; there are more matches. Narrow the search, or raise limit.]"
    ]  # fmt: skip
    shown = grep_text(tmp_path, "hit", program, limit=2, context=1).partition("\n\n")[0]
    assert shown.split("\n") == ["f:1: hit 1", "f-2- b", "f:3: hit 2", "f-4- hit 3"]
    assert grep(tmp_path, "hit", program, limit=4, context=1).details is None


@pytest.mark.fault("I07")
@pytest.mark.parity("tools.grep-long-lines")
@both
def test_i07_a_long_line_is_cut_between_characters(tmp_path: Path, program: str | None) -> None:
    write_files(tmp_path, {"a": "é" * (MAX_LINE - 1) + "😀hit\n", "b": "x" * (MAX_LINE - 3) + "hit\n"})
    result = grep(tmp_path, "hit", program)
    shown, _, notice = text_of(result).partition("\n\n")
    assert shown.split("\n") == [
        "a:1: " + "é" * (MAX_LINE - 1) + "😀…",
        "b:1: " + "x" * (MAX_LINE - 3) + "hit",
    ]
    assert notice == "[Lines are cut at 500 characters; read shows them whole.]"
    assert result.details == {"linesTruncated": True}


@both
@pytest.mark.parametrize("character", ["a", "é", "日", "😀", "\u0301"])
def test_a_line_is_cut_between_characters_wherever_it_is_held_up_to(
    tmp_path: Path, program: str | None, character: str
) -> None:
    for shift in range(4):
        write_files(tmp_path, {"f": "x" * shift + character * KEPT + "hit\n"})
        text = grep_text(tmp_path, "hit", program, "f")
        assert text.startswith("f:1: " + "x" * shift + character * (MAX_LINE - shift) + "…")


@pytest.mark.parity("tools.grep-bytes")
@both
def test_a_result_has_at_most_50_kb_in_whole_lines(tmp_path: Path, program: str | None) -> None:
    write_files(tmp_path, {"f": ("hit " + "w" * 490 + "\n") * 150})
    result = grep(tmp_path, "hit", program, limit=200)
    shown, _, notice = text_of(result).partition("\n\n")
    assert MAX_BYTES - 510 < len(shown) <= MAX_BYTES
    assert all(line.endswith(" " + "w" * 490) for line in shown.split("\n"))
    assert notice == "[The first 50.0 KB; there are more matches. Narrow the search.]"
    assert detail(result, "truncation", "truncatedBy") == "bytes"


@pytest.mark.fault("I03")
@both
def test_i03_a_line_longer_than_memory_should_be_is_not_held(tmp_path: Path, program: str | None) -> None:
    with (tmp_path / "f").open("wb") as file:
        file.write(b"before\n")
        for _ in range(24):
            file.write(b"x" * (1 << 18))
        file.write("é hit\nafter hit\n".encode())
    text = grep_text(tmp_path, "é hit|before|after", program)
    assert text.split("\n")[:3] == ["f:1: before", "f:2: " + "x" * 500 + "…", "f:3: after hit"]
    assert grep_text(tmp_path, "nothing", program) == "No line matches, in 1 file."


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of memory in /proc")
@pytest.mark.fault("I03")
def test_i03_a_huge_file_is_read_in_pieces(tmp_path: Path) -> None:
    with (tmp_path / "f").open("wb") as file:
        for _ in range(60):
            file.write(b"some line of text\n" * 58_000)
        file.write(b"x" * (24 << 20) + b"hit\n")
    script = (
        "from pathlib import Path\n"
        "from packages.cantle.tests.tools.searching import grep_text\n"
        "grep_text(Path('.'), 'nothing', None)\n"
        # Not getrusage: on Linux its figure begins with the memory of the program that started this one.
        "def peak():\n"
        "    with open('/proc/self/status') as lines:\n"
        "        return next(int(line.split()[1]) for line in lines if line.startswith('VmHWM'))\n"
        "before = peak()\n"
        f"text = grep_text(Path({str(tmp_path)!r}), 'hit', None)\n"
        "assert text.startswith('f:3480001: xxx'), text[:99]\n"
        "print(peak() - before)\n"
    )
    root = Path(__file__).parents[4]
    empty = tmp_path / "empty"
    empty.mkdir()
    run = subprocess.run(
        [sys.executable, "-c", script],
        cwd=empty,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=55,
    )
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) < 24_000


@pytest.mark.parity("tools.grep-binary")
@both
def test_encodings(tmp_path: Path, program: str | None) -> None:
    write_files(
        tmp_path,
        {
            "bom8": b"\xef\xbb\xbfhit first\n", "bom16le": "\ufeffa\r\nhit é\r\n".encode("utf-16-le"),
            "bom16be": "\ufeffhit 日".encode("utf-16-be"), "latin": "café hit\n".encode("iso-8859-1"),
            "mixed": "é hit \n".encode() + b"\xff hit\n", "crlf": b"a\r\nhit\r\n", "nul": b"hit\0hit\n",
            "utf32": "\ufeffhit\n".encode("utf-32-le"), "bare16": "hit\n".encode("utf-16-le"), "empty": b"", "end": b"a\nhit",
        },
    )  # fmt: skip
    assert grep_text(tmp_path, "hit", program).split("\n") == [
        "bom16be:1: hit 日", "bom16le:2: hit é", "bom8:1: hit first", "crlf:2: hit", "end:2: hit", "latin:1: café hit",
        "mixed:1: é hit ", "mixed:2: ÿ hit",
    ]  # fmt: skip
    assert grep_text(tmp_path, "^hit", program, "bom8") == "bom8:1: hit first"
    assert grep_text(tmp_path, "^hit$", program, "crlf") == "crlf:2: hit"
    assert grep_text(tmp_path, "hit", program, "nul") == "No line matches: nul is not text."


@pytest.mark.parity("tools.grep-crlf")
@both
def test_a_line_ends_before_cr_and_lf(tmp_path: Path, program: str | None) -> None:
    write_files(tmp_path, {"f": "hit\r\n\r\nhit.\r\n"})
    assert grep_text(tmp_path, "hit$", program) == "f:1: hit"
    assert grep_text(tmp_path, "^$", program) == "f:2: "
    assert grep_text(tmp_path, "hit.$", program) == "f:3: hit."


@both
def test_case_and_plain_text(tmp_path: Path, program: str | None) -> None:
    write_files(tmp_path, {"f": "Straße (x)\nSTRASSE\nK\u212a\n"})
    assert grep_text(tmp_path, "STRAßE (X)", program, ignore_case=True, literal=True) == "f:1: Straße (x)"
    assert grep_text(tmp_path, "(x)", program, literal=True) == "f:1: Straße (x)"
    assert grep_text(tmp_path, "kk", program, ignore_case=True) == "f:3: K\u212a"


@both
def test_odd_names_are_told_apart_and_can_be_written_in_bash(tmp_path: Path, program: str | None) -> None:
    write_files(
        tmp_path, {"new\nline": "hit\n", " a b ": "hit\n", "it's": "hit\n", "\x1b[31m": "hit\n", "é": "hit\n"}
    )
    (tmp_path / os.fsdecode(b"caf\xe9'")).write_bytes(b"hit\n")
    names = [line.removesuffix(":1: hit") for line in grep_text(tmp_path, "hit", program).split("\n")]
    assert names == ["$'\\e[31m'", " a b ", "$'caf\\xe9\\''", "it's", "$'new\\nline'", "é"]
    for name in names[0], names[2], names[4]:
        subprocess.run(["bash", "-c", f"test -f {name}"], cwd=tmp_path, check=True, timeout=20)


@pytest.mark.parity("tools.grep-missing")
@both
def test_what_can_not_be_searched_is_said(tmp_path: Path, program: str | None) -> None:
    write_files(tmp_path, {"report.txt": "x\n"})
    assert "There is no file reprt.txt" in refusal(lambda: grep(tmp_path, "x", program, "reprt.txt"))
    assert "report.txt" in refusal(lambda: grep(tmp_path, "x", program, "reprt.txt"))
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        assert (
            refusal(lambda: grep(tmp_path, "x", program, "pipe"))
            == "pipe is a named pipe, neither a file nor a folder."
        )
    assert refusal(lambda: grep(tmp_path, "(", program)).startswith("The pattern can't be searched for: ")
    assert refusal(lambda: grep(tmp_path, "x", program, glob="[")).startswith("The glob [ can't be used: ")
    (tmp_path / "empty").mkdir()
    text = grep_text(tmp_path, "x", program, "empty")
    assert text == "No line matches: there is no file that is not ignored."


@pytest.mark.root
@both
def test_what_may_not_be_read_is_named_and_the_rest_searched(open_folder: Path, program: str | None) -> None:
    write_files(open_folder, {"a": "hit\n", "b": "hit\n", "shut/c": "hit\n", "z": "hit\n"})
    (open_folder / "b").chmod(0)
    (open_folder / "shut").chmod(0)

    def work() -> None:
        text = grep_text(open_folder, "hit", program)
        assert text.startswith("a:1: hit\nz:1: hit\n\n[Could not be read: "), text
        assert "b (permission denied)" in text, text
        assert "shut (permission denied)" in text, text
        assert (
            refusal(lambda: grep(open_folder, "hit", program, "b")) == "b can't be read: permission denied."
        )

    as_nobody(work)


@pytest.mark.parity("tools.search-limit-zero")
async def test_arguments_that_mean_nothing_are_refused(tools: Tools) -> None:
    assert (
        await tools.failure("grep", pattern="x", limit=0) == "limit must be at least 1; leave it out for 100."
    )
    assert (
        await tools.failure("grep", pattern="x", context=-1)
        == "context must be a number of lines, 0 or more."
    )
    assert await tools.failure("grep", pattern="x", literal="yes") == "literal must be true or false."
    assert await tools.failure("grep", path=".") == "pattern must be given, as text."


async def test_the_tool_searches_its_own_folder(tools: Tools) -> None:
    write_files(tools.folder, {"a.txt": "Hit\n", "b.py": "hit\n"})
    assert (
        text_of(await tools.call("grep", {"pattern": "hit", "ignoreCase": True}))
        == "a.txt:1: Hit\nb.py:1: hit"
    )
    assert text_of(await tools.call("grep", {"pattern": "hit", "path": "", "glob": ""})) == "b.py:1: hit"
    assert text_of(await tools.call("grep", {"pattern": "hit", "file_path": "b.py"})) == "b.py:1: hit"
