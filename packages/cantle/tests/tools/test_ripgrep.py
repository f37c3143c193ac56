"""ripgrep as a program of its own: missing, of another kind, slow, broken; and an abort while it runs."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cantle.tools.blocking import run_blocking
from cantle.tools.grep.search import search as search_text
from cantle.tools.search import content
from cantle.tools.search.ripgrep import Halt, find_ripgrep
from cantle_agent.tool import ToolError
from cantle_ai.abort import AbortController
from packages.cantle.tests.tools.harness import FakeContext, Tools, alive, text_of
from packages.cantle.tests.tools.searching import found_in, grep_text, program_that, until, write_files
from tests.support.extras import needs

posix = pytest.mark.skipif(sys.platform == "win32", reason="stands in for ripgrep with a shell script")

FILES: dict[str, str | bytes] = {"a": "hit\nno\n", "b": "no\n", "c": "hit 1\nhit 2\n", "d": "hit"}
FOUND = "a:1: hit\nc:1: hit 1\nc:2: hit 2\nd:1: hit"


@posix
@pytest.mark.parametrize(
    "script",
    [
        "exit 2",
        "exit 0",
        "echo rubbish; exit 0",
        "echo '{\"type\": 5}'",
        "kill -9 $$",
        'echo \'{"type":"begin","data":{"path":{"text":"./a"}}}\'; kill -9 $$',
        'echo \'{"type":"begin","data":{"path":{"text":"./unheard-of"}}}\'; echo \'{"type":"end"}\'; cat',
        "exec 1>&-; exit 0",
    ],
)
def test_whatever_goes_wrong_with_it_the_answer_is_the_same(tmp_path: Path, script: str) -> None:
    write_files(tmp_path, {f"in/{name}": content for name, content in FILES.items()})
    assert grep_text(tmp_path, "hit", program_that(tmp_path, script), "in") == FOUND


@posix
@needs("search")
@pytest.mark.parametrize("messages", [1, 2, 3, 4, 5, 6, 7, 8, 9])
def test_wherever_it_ends_nothing_is_missed_or_told_twice(tmp_path: Path, messages: int) -> None:
    write_files(tmp_path, {f"in/{name}": content for name, content in FILES.items()})
    program = program_that(tmp_path, f'"{find_ripgrep()}" "$@" | head -{messages}')
    assert grep_text(tmp_path, "hit", program, "in") == FOUND


@posix
def test_a_program_that_is_none_is_done_without(tmp_path: Path) -> None:
    write_files(tmp_path, {f"in/{name}": content for name, content in FILES.items()})
    assert grep_text(tmp_path, "hit", str(tmp_path / "missing"), "in") == FOUND
    (tmp_path / "text").write_text("no program", "utf-8")
    (tmp_path / "text").chmod(0o755)
    assert grep_text(tmp_path, "hit", str(tmp_path / "text"), "in") == FOUND


@posix
@needs("search")
def test_one_that_does_not_know_a_word_of_ours_is_done_without(tmp_path: Path) -> None:
    write_files(tmp_path, {f"in/{name}": content for name, content in FILES.items()})
    program = program_that(tmp_path, f'exec "{find_ripgrep()}" --of-some-other-version "$@"')
    assert grep_text(tmp_path, "hit", program, "in") == FOUND


@needs("search")
def test_many_files_are_given_to_it_in_batches(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    asked.mkdir()
    write_files(tmp_path / "in", {f"{'d' * 150}/{'f' * 150}{number:04}": "hit\n" for number in range(900)})
    program = program_that(asked, f'echo $# >> {asked}/calls; exec "{find_ripgrep()}" "$@"')
    assert len(found_in(tmp_path / "in", "hit", program)) == 900
    # 200 files at first, then as many as 100 KB of names are: 300 bytes each.
    assert len((asked / "calls").read_text("ascii").split()) == 4


@needs("search")
def test_a_message_too_long_to_be_held_is_replaced_by_our_own_reading(tmp_path: Path) -> None:
    write_files(tmp_path, {"a": "hit\n", "b": b"x" * (3 << 20) + b" hit\nhit\n", "c": "hit\n"})
    found = found_in(tmp_path, "hit", find_ripgrep())
    assert found == found_in(tmp_path, "hit", None)
    assert [path for path, _ in found] == [b"a", b"b", b"c"]


@posix
def test_it_is_found_beside_the_interpreter_and_on_the_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "beside").mkdir()
    (tmp_path / "path").mkdir()
    monkeypatch.setattr(sys, "executable", str(tmp_path / "beside" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    assert find_ripgrep() is None
    on_the_path = program_that(tmp_path / "path", "")
    assert find_ripgrep() == on_the_path
    beside = program_that(tmp_path / "beside", "")
    assert find_ripgrep() == beside
    monkeypatch.setattr(sys, "executable", "")
    assert find_ripgrep() == on_the_path


@posix
@pytest.mark.parametrize("path", ["", ".", f"{os.pathsep}/nowhere"])
def test_one_in_the_folder_that_is_worked_in_is_not_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, path: str
) -> None:
    program_that(tmp_path, "")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "executable", "")
    monkeypatch.setenv("PATH", path)
    assert find_ripgrep() is None


def test_nothing_is_missed_where_it_is_not_installed(tmp_path: Path) -> None:
    write_files(tmp_path, FILES)
    script = (
        "import asyncio, os, sys; from pathlib import Path\n"
        "from packages.cantle.tests.tools.harness import Tools, text_of\n"
        "from cantle.tools.search.ripgrep import find_ripgrep\n"
        "os.environ['PATH'] = sys.executable = ''\n"
        "assert find_ripgrep() is None\n"
        f"tools = Tools(Path({str(tmp_path)!r}))\n"
        "print(text_of(asyncio.run(tools.call('grep', {'pattern': 'hit'}))))\n"
    )
    root = Path(__file__).parents[4]
    run = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(root)},
        cwd=root,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=50,
    )
    assert (run.returncode, run.stdout) == (0, FOUND + "\n"), run.stderr


@needs("search")
def test_it_never_holds_a_line_of_gigabytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that may have such a line is read by ourselves, in its turn."""
    monkeypatch.setattr(content, "_LARGE", 10_000)
    write_files(
        tmp_path, {"a": "hit\n", "b": "x" * 20_000 + "\nhit\n", "c": "x" * 20_000 + "\nhit\n", "d": "hit\n"}
    )
    asked = tmp_path.parent / f"{tmp_path.name}-asked"
    asked.mkdir()
    program = program_that(asked, f'printf "%s\\n" "$@" >> {asked}/words; exec "{find_ripgrep()}" "$@"')
    found = found_in(tmp_path, "hit", program)
    assert [path for path, _ in found] == [b"a", b"b", b"c", b"d"]
    words = (asked / "words").read_text("utf-8").split("\n")
    assert [word for word in words if word.startswith("./")] == ["./a", "./d"]


@posix
@pytest.mark.parametrize("sleep", ["exec sleep 1000", "sleep 1000; true"], ids=["itself", "its child"])
@pytest.mark.parametrize("cancelled", [False, True], ids=["aborted", "cancelled"])
async def test_an_abort_ends_it_at_once(
    tools: Tools, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cancelled: bool, sleep: str
) -> None:
    write_files(tools.folder, FILES)
    program = program_that(tmp_path, f"trap '' TERM; echo $$ > {tmp_path}/pid; {sleep}")
    monkeypatch.setenv("PATH", f"{Path(program).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    context = FakeContext()
    call = asyncio.ensure_future(tools.call("grep", {"pattern": "hit"}, context))
    await until(lambda: (tmp_path / "pid").exists() and bool((tmp_path / "pid").read_text("ascii").strip()))
    pid = int((tmp_path / "pid").read_text("ascii"))
    if cancelled:
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(call, 20)
    else:
        context.controller.abort("enough")
        with pytest.raises(ToolError, match="enough: nothing was done"):
            await asyncio.wait_for(call, 20)
    assert not alive(pid)


@pytest.mark.parametrize("name", ["grep", "find", "ls"])
async def test_a_call_that_is_no_longer_wanted_does_nothing(tools: Tools, name: str) -> None:
    write_files(tools.folder, FILES)
    context = FakeContext()
    context.controller.abort()
    with pytest.raises(ToolError, match="nothing was done"):
        await tools.call(name, {"pattern": "x"} if name != "ls" else {}, context)


async def test_our_own_reading_is_given_up_between_pieces(tmp_path: Path) -> None:
    with (tmp_path / "f").open("wb") as file:
        for _ in range(64):
            file.write(b"some line\n" * 50_000)
    controller, looks = AbortController(), 0

    def work(check: object) -> object:
        def counted() -> None:
            nonlocal looks
            looks += 1
            if looks == 5:
                controller.abort("enough")
            check()  # type: ignore[operator]

        from cantle.tools.grep.search import Request

        request = Request(
            pattern="(a|b)+c", path=".", glob=None, ignore_case=False, literal=False, context=0, limit=100
        )
        return search_text(tmp_path, request, None, Halt(), counted)

    with pytest.raises(ToolError, match="enough"):
        await run_blocking(work, controller.signal)
    assert looks == 5


@needs("search")
async def test_searches_at_the_same_time_do_not_mix(tools: Tools) -> None:
    write_files(tools.folder, {f"d{number}/f": f"hit {number}\n" * 5 for number in range(8)})
    calls = [tools.call("grep", {"pattern": "hit", "path": f"d{number}"}) for number in range(8)]
    for number, result in enumerate(await asyncio.gather(*calls)):
        assert text_of(result) == "\n".join(f"f:{line}: hit {number}" for line in range(1, 6))


@needs("search")
def test_a_search_that_has_enough_leaves_no_process(tmp_path: Path) -> None:
    write_files(tmp_path, {f"{number:04}": "hit\n" * 50 for number in range(1_000)})
    before = set(children())
    for _ in range(20):
        assert grep_text(tmp_path, "hit", find_ripgrep(), limit=3).startswith("0000:1: hit\n")
    assert set(children()) <= before


def children() -> list[int]:
    """The numbers of our child processes, where the system tells."""
    place = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    return [int(pid) for pid in place.read_text("ascii").split()] if place.exists() else []
