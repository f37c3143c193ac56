"""How commands end: by themselves with others left, by an abort, a time-out, a cancellation or the session's end."""

import asyncio
import os
import shlex
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cantle.tools import process_command
from cantle.tools.process_command import GRACE
from cantle_agent.tool import ToolResult
from packages.cantle.tests.tools.harness import FakeContext, Tools, alive, detail, details_of, text_of

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="process groups are POSIX ones")


async def within(seconds: float, happens: Callable[[], bool]) -> bool:
    """Whether it happens in so many seconds."""
    limit = time.monotonic() + seconds
    while not happens():
        if time.monotonic() > limit:
            return False
        await asyncio.sleep(0.01)
    return True


async def gone(pid: int, seconds: float = 5) -> bool:
    return await within(seconds, lambda: not alive(pid))


def number(tools: Tools, name: str) -> int:
    return int((tools.folder / name).read_text(encoding="utf-8"))


async def started(tools: Tools, command: str, context: FakeContext) -> "asyncio.Task[ToolResult]":
    """A running call that has printed `ready`."""
    call = asyncio.create_task(tools.call("bash", {"command": command}, context))
    await context.shows("ready")
    return call


@pytest.mark.parametrize("redirect", ["", ">/dev/null 2>&1"])
@pytest.mark.fault("H-01")
async def test_h01_a_background_child_does_not_hold_the_call(tools: Tools, redirect: str) -> None:
    begin = time.monotonic()
    result = await tools.bash(f"sleep 60 {redirect} & echo $! > pid; echo started")
    assert time.monotonic() - begin < 2
    assert not result.is_error
    assert text_of(result).startswith("started\n")
    pid = number(tools, "pid")
    assert f"Process {pid} (sleep) still runs in the background" in text_of(result)
    assert detail(result, "stillRunning") == [{"pid": pid, "name": "sleep"}]
    assert alive(pid)


@pytest.mark.fault("H-01")
async def test_h01_a_child_that_keeps_printing_does_not_hold_the_call(tools: Tools) -> None:
    begin = time.monotonic()
    result = await tools.bash("while :; do echo tick; sleep 0.02; done & echo started")
    assert time.monotonic() - begin < 3
    assert "in the background" in text_of(result)


@pytest.mark.fault("H-01")
async def test_h01_output_that_is_on_its_way_is_kept(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    # On a busy machine it may be on its way for long.
    monkeypatch.setattr(process_command, "_QUIET", 20.0)
    monkeypatch.setattr(process_command, "_DRAIN", 20.0)
    result = await tools.bash("(sleep 0.03; echo late) & echo early")
    assert text_of(result) == "early\nlate\n"
    assert result.details == {"exitCode": 0}


@pytest.mark.fault("H-01")
async def test_h01_a_child_left_behind_may_go_on_printing(tools: Tools) -> None:
    # Its pipe stays open: printing must not end it.
    ticks, survived = tools.folder / "ticks", tools.folder / "survived"
    await tools.bash(
        "(while [ ! -e stop ]; do echo tick; echo >> ticks; sleep 0.01; done; echo $? > survived) & true"
    )
    told = ticks.stat().st_size
    assert await within(10, lambda: ticks.stat().st_size >= told + 20)
    (tools.folder / "stop").touch()
    assert await within(10, survived.exists)


@pytest.mark.fault("H-01")
async def test_h01_a_command_that_closes_its_output_is_waited_for(tools: Tools) -> None:
    result = await tools.bash("echo said; exec >&- 2>&-; sleep 0.2; touch done; exit 4")
    assert (tools.folder / "done").exists()
    assert detail(result, "exitCode") == 4


@pytest.mark.parity("tools.bash-abort")
@pytest.mark.fault("H-02")
async def test_h02_an_abort_ends_the_whole_tree(tools: Tools) -> None:
    context = FakeContext()
    command = "sh -c 'sleep 60 & echo $! > grandchild; wait' & echo $! > child; sleep 0.1; echo ready; wait; echo never"
    call = await started(tools, command, context)
    begin = time.monotonic()
    context.controller.abort("Operation aborted")
    result = await call
    assert time.monotonic() - begin < GRACE
    assert result.is_error
    assert text_of(result) == "ready\n\nThe command was stopped: Operation aborted."
    assert details_of(result) == {"aborted": True}
    assert not alive(number(tools, "child"))
    assert not alive(number(tools, "grandchild"))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="nothing tells who started whom")
@pytest.mark.parametrize("how", ["abort", "timeout"])
@pytest.mark.fault("H-02")
async def test_h02_children_with_sessions_of_their_own_end_too(tools: Tools, how: str) -> None:
    inner = "sleep 60 & echo $! > grandchild; echo $$ > child; touch inside; wait"
    command = f"setsid sh -c '{inner}' & while [ ! -e inside ]; do sleep 0.01; done; echo ready; wait"
    if how == "abort":
        context = FakeContext()
        call = await started(tools, command, context)
        context.controller.abort()
        result = await call
    else:
        result = await tools.bash(command, timeout=1)
    assert result.is_error
    assert text_of(result).startswith("ready\n")
    assert await gone(number(tools, "child"))
    assert await gone(number(tools, "grandchild"))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="nothing tells who started whom")
@pytest.mark.parametrize("redirect", ["", ">/dev/null 2>&1"])
@pytest.mark.fault("H-08")
async def test_h08_what_leaves_its_group_after_the_call_ends_with_the_session(
    tools: Tools, redirect: str
) -> None:
    program = (
        "import os, pathlib, time\n"
        "while not os.path.exists('go'): time.sleep(0.01)\n"
        "os.setsid()\n"
        "pathlib.Path('left').touch()\n"
        "time.sleep(60)\n"
    )
    await tools.bash(f"{shlex.quote(sys.executable)} -c {shlex.quote(program)} {redirect} & echo $! > pid")
    (tools.folder / "go").touch()
    assert await within(20, (tools.folder / "left").exists)
    assert alive(number(tools, "pid"))
    await tools.environment.close()
    assert await gone(number(tools, "pid"))


@pytest.mark.fault("H-02")
async def test_h02_an_abort_does_not_run_the_next_command(tools: Tools) -> None:
    context = FakeContext()
    call = await started(tools, "echo ready; sleep 60; touch next", context)
    context.controller.abort()
    await call
    assert not (tools.folder / "next").exists()


@pytest.mark.fault("H-02")
async def test_h02_what_ignores_term_is_killed(tools: Tools) -> None:
    context = FakeContext()
    command = "trap '' TERM; (trap '' TERM; while :; do sleep 1; done) & echo $! > child; echo ready; while :; do sleep 1; done"
    call = await started(tools, command, context)
    begin = time.monotonic()
    context.controller.abort()
    result = await call
    assert GRACE <= time.monotonic() - begin < GRACE + 3
    assert text_of(result).startswith("ready\n")
    assert not alive(number(tools, "child"))


@pytest.mark.fault("H-02")
async def test_h02_a_command_may_clean_up_on_term(tools: Tools) -> None:
    context = FakeContext()
    call = await started(tools, "trap 'echo cleaned; exit 1' TERM; echo ready; sleep 60 & wait", context)
    begin = time.monotonic()
    context.controller.abort()
    result = await call
    assert time.monotonic() - begin < GRACE
    assert text_of(result).startswith("ready\ncleaned\n")


@pytest.mark.fault("H-02")
async def test_h02_what_is_stopped_may_clean_up_too(tools: Tools) -> None:
    context = FakeContext()
    command = "trap 'touch cleaned; exit' TERM; echo ready; sleep 60 & kill -STOP $!; kill -STOP $$"
    call = await started(tools, command, context)
    begin = time.monotonic()
    context.controller.abort()
    await call
    assert time.monotonic() - begin < GRACE
    assert (tools.folder / "cleaned").exists()


@pytest.mark.fault("H-02")
async def test_h02_a_timeout_ends_the_whole_tree(tools: Tools) -> None:
    result = await tools.bash("sleep 60 & echo $! > child; wait", timeout=0.3)
    assert detail(result, "timedOut") is True
    assert not alive(number(tools, "child"))


async def test_an_abort_before_the_start_starts_nothing(tools: Tools) -> None:
    context = FakeContext()
    context.controller.abort("Operation aborted")
    with pytest.raises(Exception, match="Operation aborted"):
        await tools.call("bash", {"command": "touch started"}, context)
    assert not (tools.folder / "started").exists()


async def test_an_abort_when_the_shell_has_ended_is_no_failure(tools: Tools) -> None:
    context = FakeContext()
    result = await tools.call("bash", {"command": "echo done"}, context)
    context.controller.abort()
    assert text_of(result) == "done\n"


async def test_a_cancelled_call_ends_its_tree_before_it_lets_go(tools: Tools) -> None:
    context = FakeContext()
    call = await started(tools, "sleep 60 & echo $! > child; echo ready; wait", context)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert not alive(number(tools, "child"))


async def test_a_call_cancelled_at_once_leaves_nothing(tools: Tools) -> None:
    for _ in range(20):
        call = asyncio.create_task(tools.bash("echo $$ >> pids; sleep 60"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    pids = tools.folder / "pids"
    started = [int(line) for line in pids.read_text(encoding="utf-8").split()] if pids.exists() else []
    assert [pid for pid in started if alive(pid)] == []


@pytest.mark.fault("H-08")
async def test_h08_the_end_of_the_session_ends_what_still_runs(tools: Tools) -> None:
    context = FakeContext()
    call = await started(tools, "echo $$ > running; echo ready; sleep 60", context)
    await tools.bash("sleep 60 & echo $! > piped; sleep 60 >/dev/null 2>&1 & echo $! > redirected")
    await tools.bash(
        "(trap '' TERM; echo 1 > armed; while :; do sleep 1; done) >/dev/null 2>&1 & echo $! > stubborn; until [ -e armed ]; do :; done"
    )
    pids = [number(tools, name) for name in ("running", "piped", "redirected", "stubborn")]
    assert all(map(alive, pids))
    await tools.environment.close()
    assert [pid for pid in pids if not await gone(pid, 1)] == []
    assert (await call).is_error
    await tools.environment.close()


@pytest.mark.fault("H-08")
async def test_h08_the_end_of_the_session_needs_no_thread_of_the_loop(tools: Tools) -> None:
    await tools.bash("sleep 60 >/dev/null & echo $! > pid")
    go_on = threading.Event()
    busy = [asyncio.get_running_loop().run_in_executor(None, go_on.wait) for _ in range(100)]
    try:
        await asyncio.wait_for(tools.environment.close(), 20)
    finally:
        go_on.set()
        await asyncio.gather(*busy)
    assert not alive(number(tools, "pid"))


@pytest.mark.fault("H-08")
def test_h08_the_end_of_the_program_ends_what_still_runs(tmp_path: Path) -> None:
    script = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from packages.cantle.tests.tools.harness import Tools\n"
        "asyncio.run(Tools(Path(sys.argv[1])).bash('sleep 60 & echo $! > pid'))\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True, timeout=30)
    pid = int((tmp_path / "pid").read_text(encoding="utf-8"))
    assert asyncio.run(gone(pid))


@pytest.mark.fault("H-08")
async def test_h08_the_end_of_a_forked_copy_of_the_program_ends_nothing(tools: Tools) -> None:
    from cantle.tools import processes

    await tools.bash("sleep 60 >/dev/null & echo $! > pid")
    copy = os.fork()
    if copy == 0:
        # What its exit would do.
        processes._kill_all()
        os._exit(0)
    assert os.waitpid(copy, 0)[1] == 0
    (command,) = tools.environment.processes._commands
    assert not command.over.wait(0.2)
    assert alive(number(tools, "pid"))


IGNORING = """
    import asyncio, signal, sys
    from pathlib import Path
    from packages.cantle.tests.tools.harness import Tools, text_of

    async def main():
        tools = Tools(Path.cwd())
        result = await tools.bash("echo out; exit 3")
        left = await tools.bash("sleep 60 & echo $! > pid")
        stopped = await tools.bash("sleep 60", timeout=0.1)
        await tools.environment.close()
        assert "was stopped after" in text_of(stopped)
        assert result.is_error and "exitCode" not in result.details, result
        print(text_of(result))

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    asyncio.run(main())
"""


def test_an_exit_code_that_others_have_taken_is_no_success(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(IGNORING)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path.cwd()), *sys.path])},
        capture_output=True,
        encoding="utf-8",
        timeout=50,
    )
    assert done.stdout.startswith("out\n\nThe exit code is not known: "), done.stderr
    assert not alive(int((tmp_path / "pid").read_text(encoding="utf-8")))


ENDING_AFTER_THE_QUESTION = """
    import os, signal
    from pathlib import Path
    from cantle.tools import process_groups

    def asked(pid):
        code = wait_for(pid)
        if code is None:
            os.write(gate, b"\\n")
            while not_gone(pid):
                pass
        return code

    def not_gone(pid):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return True

    wait_for, process_groups.wait_for = process_groups.wait_for, asked
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    os.mkfifo("gate")
    group = process_groups.ProcessGroup(["sh", "-c", "read line <gate; exit 3"], Path.cwd(), dict(os.environ))
    gate = os.open("gate", os.O_RDWR)
    while not group.ended:
        pass
    print(group.exit_code)
"""


def test_a_command_that_ends_while_it_is_asked_whether_it_has_is_no_success(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(ENDING_AFTER_THE_QUESTION)],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        timeout=50,
    )
    assert done.stdout == "None\n", done.stderr
