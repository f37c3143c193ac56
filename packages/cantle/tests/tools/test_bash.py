"""`bash`: what a command sees, what a model reads of it, and how it fails."""

import asyncio
import os
import re
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from cantle.tools.bash.shell import SESSION_VARIABLES
from cantle.tools.environment import ToolEnvironment
from cantle_ai.codec import Json
from packages.cantle.tests.tools.harness import FakeContext, Tools, as_nobody, detail, text_of

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the commands of these tests are POSIX ones")


@pytest.mark.parity("tools.bash-result")
async def test_output_and_errors_come_together(tools: Tools) -> None:
    result = await tools.bash("echo out; echo err >&2; echo out")
    assert text_of(result) == "out\nerr\nout\n"
    assert result.details == {"exitCode": 0}
    assert not result.is_error


async def test_no_output_says_so(tools: Tools) -> None:
    assert text_of(await tools.bash("true")) == "(no output)"


@pytest.mark.parity("tools.bash-exit-code")
async def test_a_failing_command_is_an_error_with_its_output(tools: Tools) -> None:
    result = await tools.bash("echo before; exit 3")
    assert result.is_error
    assert text_of(result) == "before\n\nExit code 3."
    assert result.details == {"exitCode": 3}
    assert text_of(await tools.bash("exit 1")) == "Exit code 1."
    assert "127" in text_of(await tools.bash("no-such-program-anywhere"))


@pytest.mark.parity("tools.bash-signal")
async def test_a_command_ended_by_a_signal_names_it(tools: Tools) -> None:
    result = await tools.bash("echo before; kill -SEGV $$")
    assert result.is_error
    assert text_of(result) == "before\n\nThe command was ended by signal 11 (SIGSEGV)."
    assert result.details == {"exitCode": 139, "signal": "SIGSEGV"}
    assert text_of(await tools.bash("sh -c 'kill -9 $$' 2>/dev/null; exit $?")).endswith(
        "Exit code 137 (SIGKILL)."
    )


async def test_a_command_runs_in_the_folder_with_nothing_to_read(tools: Tools) -> None:
    result = await tools.bash(
        "pwd; cat; [ -t 0 ] || echo no terminal; ls -l /proc/self/fd/0 2>/dev/null | grep -c /dev/null"
    )
    assert text_of(result).split("\n")[:2] == [os.path.realpath(tools.folder), "no terminal"]


async def test_it_is_bash(tools: Tools) -> None:
    assert text_of(await tools.bash("[[ abc == a* ]] && x=(1 2) && echo ${#x[@]} <(true) | cut -c1")) == "2\n"


async def test_a_command_has_a_session_of_its_own(tools: Tools) -> None:
    result = await tools.bash("echo $$ $(ps -o pgid= -o sid= -p $$)")
    pid, group, session = text_of(result).split()
    assert pid == group == session


@pytest.mark.parity("tools.bash-variables")
async def test_variables_are_those_of_the_moment_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in SESSION_VARIABLES:
        monkeypatch.setenv(name, "of another session")
    monkeypatch.setenv("CANTLE_DIR", "/kept")
    given = {"CANTLE_MODEL": "one", "EXTRA": "a b\n'c'"}
    tools = Tools(tmp_path, variables=lambda: given)
    show = 'printf \'%s|\' "$CANTLE_SESSION_FILE" "$CANTLE_MODEL" "$EXTRA" "$CANTLE_DIR"'
    assert text_of(await tools.bash(show)) == "|one|a b\n'c'|/kept|"
    given["CANTLE_MODEL"] = "two"
    given["CANTLE_SESSION_FILE"] = "/s.jsonl"
    assert text_of(await tools.bash(show)).startswith("/s.jsonl|two|")
    names = text_of(await tools.bash("env | grep ^CANTLE_ | cut -d= -f1 | sort")).split()
    assert names == ["CANTLE_COMMAND_ID", "CANTLE_DIR", "CANTLE_MODEL", "CANTLE_SESSION_FILE"]


@pytest.mark.parity("tools.bash-shell")
async def test_the_shell_and_a_prefix_come_from_the_settings(tmp_path: Path) -> None:
    shell = tmp_path / "my shell"
    shell.write_text('#!/bin/sh\necho "mine: $2"\n', encoding="utf-8")
    shell.chmod(0o755)
    assert text_of(await Tools(tmp_path, shell_path=str(shell)).bash("echo x")) == "mine: echo x\n"
    prefixed = Tools(tmp_path, command_prefix="greet() { echo hello $1; } # said")
    assert text_of(await prefixed.bash("greet you")) == "hello you\n"


async def test_bash_is_looked_for_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cantle.tools.bash import shell

    monkeypatch.setattr(shell, "_places", lambda: iter([None, str(tmp_path / "gone"), "/bin/sh"]))
    assert shell.find_shell(None) == "/bin/sh"
    monkeypatch.setattr(shell, "_places", lambda: iter([None]))
    assert "There is no shell" in await Tools(tmp_path).failure("bash", command="true")


@pytest.mark.parametrize("path", ["/no/such/shell", "/", "~/no-shell", "~no such user/sh", "x" * 5_000])
@pytest.mark.fault("H-07")
async def test_h07_a_missing_shell_is_an_error_that_names_the_setting(tmp_path: Path, path: str) -> None:
    failure = await Tools(tmp_path, shell_path=path).failure("bash", command="true")
    assert "shellPath" in failure


@pytest.mark.fault("H-07")
async def test_h07_a_shell_that_is_no_program_is_an_error(tmp_path: Path) -> None:
    shell = tmp_path / "shell"
    shell.write_bytes(b"\x7fELF nonsense")
    shell.chmod(0o755)
    failure = await Tools(tmp_path, shell_path=str(shell)).failure("bash", command="true")
    assert "could not be started" in failure


@pytest.mark.parity("tools.bash-cwd")
@pytest.mark.fault("H-07")
async def test_h07_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    failure = await Tools(folder).failure("bash", command="true")
    assert str(folder) in failure
    assert "does not exist" in failure


@pytest.mark.fault("H-07")
def test_h07_a_folder_that_may_not_be_entered_is_an_error(open_folder: Path) -> None:
    inner = open_folder / "closed" / "inner"
    inner.mkdir(parents=True)
    inner.parent.chmod(0o700)

    def fails() -> None:
        failure = asyncio.run(Tools(inner).failure("bash", command="true"))
        assert "may not be entered" in failure

    as_nobody(fails)


@pytest.mark.fault("H-07")
async def test_h07_a_command_that_is_too_long_for_the_system_is_an_error(tools: Tools) -> None:
    failure = await tools.failure("bash", command="echo " + "x" * 3_000_000)
    assert "could not be started" in failure
    assert "too long" in failure


@pytest.mark.parametrize(
    "timeout", [0, -1, -0.5, float("nan"), float("inf"), 1e12, 2_147_484, "soon", True, []]
)
@pytest.mark.parity("tools.bash-timeout")
@pytest.mark.fault("H-06")
async def test_h06_a_timeout_that_means_nothing_is_refused(tools: Tools, timeout: Json) -> None:
    failure = await tools.failure("bash", command="touch started", timeout=timeout)
    assert "timeout must be a number of seconds" in failure
    assert not (tools.folder / "started").exists()


@pytest.mark.parametrize(("timeout", "said"), [(0.2, "0.2 seconds"), (1, "1 second")])
async def test_a_timeout_stops_the_command_and_keeps_its_output(
    tools: Tools, timeout: float, said: str
) -> None:
    begin = time.monotonic()
    result = await tools.bash("echo before; sleep 60; echo after", timeout=timeout)
    assert time.monotonic() - begin < timeout + 1.5
    assert result.is_error
    assert text_of(result) == f"before\n\nThe command was stopped after {said}, its time-out."
    assert result.details == {"timedOut": True}


async def test_a_command_within_its_timeout_is_not_touched(tools: Tools) -> None:
    assert text_of(await tools.bash("echo done", timeout=2_147_483)) == "done\n"


async def test_progress_shows_the_output_so_far(tools: Tools) -> None:
    (tools.folder / "go").unlink(missing_ok=True)
    context = FakeContext()
    call = asyncio.create_task(
        tools.call("bash", {"command": "echo one; until [ -e go ]; do sleep 0.01; done; echo two"}, context)
    )
    await context.shows("one\n")
    assert not call.done()
    (tools.folder / "go").touch()
    assert text_of(await call) == "one\ntwo\n"


async def test_progress_is_throttled(tools: Tools) -> None:
    context = FakeContext()
    begin = time.monotonic()
    command = "for i in $(seq 300); do echo $i; sleep 0.002; done"
    await tools.call("bash", {"command": command}, context)
    taken = time.monotonic() - begin
    assert 1 <= len(context.shown) <= taken * 10 + 2


async def test_progress_is_bounded_and_names_the_file(tools: Tools) -> None:
    context = FakeContext()
    call = asyncio.create_task(
        tools.call(
            "bash", {"command": "seq 100000; echo ready; until [ -e go ]; do sleep 0.01; done"}, context
        )
    )
    await context.shows("ready\n")
    (tools.folder / "go").touch()
    await call
    last = context.shown[-1]
    assert len(text_of(last).encode()) <= 51_200
    assert Path(str(detail(last, "fullOutputPath"))).exists()
    assert detail(last, "truncation", "truncated") is True


async def test_commands_run_side_by_side(tools: Tools) -> None:
    count = 20
    commands = [
        tools.bash(
            f"touch at-{number}; until [ $(ls | grep -c at-) = {count} ]; do sleep 0.02; done; echo {number}"
        )
        for number in range(count)
    ]
    results = await asyncio.wait_for(asyncio.gather(*commands), 40)
    assert [text_of(result) for result in results] == [f"{number}\n" for number in range(count)]


@pytest.mark.fault("H-05")
async def test_h05_nothing_is_left_of_a_command(tools: Tools) -> None:
    await tools.bash("echo warm")
    before, before_children = descriptors(), children()
    for _ in range(20):
        await tools.bash("echo x; seq 3000")
        await tools.bash("sleep 60", timeout=0.05)
        await tools.failure("bash", command="echo \0")
    await tools.environment.close()
    assert descriptors() == before
    assert [thread for thread in threading.enumerate() if thread.name == "cantle-command"] == []
    assert children() == before_children


def children() -> list[str]:
    """What the system tells of this program's children, dead ones included, where it has `/proc`."""
    lines = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            line = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        if int(line.rpartition(")")[2].split()[1]) == os.getpid():
            lines.append(" ".join(line.split()[:6]))
    return lines


def descriptors() -> set[str]:
    return set(os.listdir("/dev/fd")) if Path("/dev/fd").exists() else set()


def test_any_event_loop_will_do(tmp_path: Path) -> None:
    environment = ToolEnvironment(tmp_path)
    tools = Tools(tmp_path)
    texts: list[str] = []

    def run() -> None:
        loop = asyncio.SelectorEventLoop()
        texts.append(text_of(loop.run_until_complete(tools.bash("echo from a thread"))))
        loop.run_until_complete(tools.environment.close())
        loop.run_until_complete(environment.close())
        loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(20)
    texts.append(text_of(asyncio.run(tools.bash("echo again"))))
    assert texts == ["from a thread\n", "again\n"]


async def test_a_turn_costs_little_beyond_the_command(tools: Tools) -> None:
    import subprocess

    async def best(work: object, count: int = 15) -> float:
        assert callable(work)
        times = []
        for _ in range(count):
            begin = time.perf_counter()
            if (waiting := work()) is not None:
                await waiting
            times.append(time.perf_counter() - begin)
        return min(times)

    def plain() -> None:
        subprocess.run(
            ["/bin/bash", "-c", "echo hi"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True
        )

    await tools.bash("true")
    bare = await best(plain)
    assert await best(lambda: tools.bash("echo hi")) - bare < 0.008


async def test_signals_ignored_by_us_are_not_ignored_by_commands(tools: Tools) -> None:
    # Python ignores SIGPIPE; a command that inherits that complains instead of ending.
    assert signal.getsignal(signal.SIGPIPE) == signal.SIG_IGN
    assert re.search("[Bb]roken", text_of(await tools.bash("yes | head -n 1"))) is None


@pytest.mark.parametrize(("command", "says"), [("echo a\0b", "NUL character"), ("echo \ud800", "surrogate")])
@pytest.mark.fault("H-07")
async def test_h07_a_command_that_no_shell_can_get_is_refused_in_words(
    tools: Tools, command: str, says: str
) -> None:
    text = await tools.failure("bash", command=command)
    assert says in text
    assert "codec" not in text


async def test_a_locale_without_the_character_is_named(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsencode", lambda text: text.encode("ascii", "surrogateescape"))
    assert "LC_ALL=C.UTF-8" in await tools.failure("bash", command="echo ä")
    assert "LC_ALL=C.UTF-8" in await tools.failure("read", path="ä.txt")
