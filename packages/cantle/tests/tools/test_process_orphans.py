"""Processes that left their group, lost their parents, or both: whose they are, and that they end."""

import asyncio
import os
import shlex
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from cantle.tools import process_table
from cantle.tools.process_marks import COMMAND_ID, Mark, marks_of
from cantle.tools.process_signals import send_signal
from cantle.tools.process_table import ProcessInfo, children_of, read_process
from packages.cantle.tests.tools.harness import FakeContext, Tools, alive, detail, text_of
from packages.cantle.tests.tools.test_bash_endings import gone, number, started, within

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives us orphans")

DAEMON = """
import os, sys, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
null = os.open(os.devnull, os.O_RDWR)
for number in range(3): os.dup2(null, number)
os.chdir('/')
open(sys.argv[1], 'w').write(str(os.getpid()))
time.sleep(60)
"""
"""What a server does to become one: two forks, a session of its own, nothing of ours open."""

ORPHANS = {
    "a session of its own": "(setsid sleep 60 & echo $! > pid.new; mv pid.new pid)",
    "and nothing of ours open": "(setsid sleep 60 </dev/null >/dev/null 2>&1 & echo $! > pid.new; mv pid.new pid)",
    "and an empty environment": (
        "sleep 0.1; (setsid env -i sh -c 'echo $$ > pid.new; mv pid.new pid; exec sleep 60' </dev/null >/dev/null 2>&1 &)"
    ),
    "a daemon": f"{shlex.quote(sys.executable)} -c {shlex.quote(DAEMON)} $PWD/pid.new; until [ -s pid.new ]; do sleep 0.01; done; mv pid.new pid",
}


def children() -> list[int]:
    """All children of this program, dead ones included."""
    return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if parent(pid) == os.getpid()]


def parent(pid: int) -> int | None:
    info = read_process(pid)
    return None if info is None else info.parent


@pytest.mark.parametrize("orphan", ORPHANS)
@pytest.mark.parametrize("how", ["abort", "timeout", "close"])
@pytest.mark.fault("H-02")
async def test_h02_an_orphan_ends_with_what_started_it(tools: Tools, orphan: str, how: str) -> None:
    command = f"{ORPHANS[orphan]}; until [ -e pid ]; do sleep 0.01; done; echo ready"
    if how == "close":
        result = await tools.bash(command)
        pid = number(tools, "pid")
        assert {entry["pid"] for entry in detail(result, "stillRunning")} == {pid}  # type: ignore[union-attr, index, call-overload]
        assert alive(pid)
        await tools.environment.close()
    elif how == "abort":
        context = FakeContext()
        call = await started(tools, f"{command}; sleep 60", context)
        context.controller.abort()
        assert (await call).is_error
    else:
        assert detail(await tools.bash(f"{command}; sleep 60", timeout=2), "timedOut") is True
    assert not alive(number(tools, "pid"))
    assert number(tools, "pid") not in children()


@pytest.mark.parametrize("orphan", ORPHANS)
@pytest.mark.fault("H-08")
async def test_h08_an_orphan_ends_with_its_command_when_nothing_is_to_be_left(
    tmp_path: Path, orphan: str
) -> None:
    tools = Tools(tmp_path, shell_leftovers="kill")
    result = await tools.bash(f"{ORPHANS[orphan]}; until [ -e pid ]; do sleep 0.01; done; echo ready")
    pid = number(tools, "pid")
    assert not alive(pid)
    assert not result.is_error
    assert detail(result, "endedWithCommand")[0]["pid"] == pid  # type: ignore[index, call-overload]
    assert text_of(result).startswith(f"ready\n\n[Process {pid} (")
    assert "was ended with the command" in text_of(result)
    await tools.environment.close()


@pytest.mark.fault("H-08")
async def test_h08_nothing_is_left_also_ends_what_ignores_term(tmp_path: Path) -> None:
    tools = Tools(tmp_path, shell_leftovers="kill")
    stubborn = "(trap '' TERM; echo $BASHPID > pid; while :; do sleep 1; done) & until [ -s pid ]; do :; done"
    result = await tools.bash(f"{stubborn}; echo done")
    assert not alive(number(tools, "pid"))
    assert text_of(result).startswith("done\n")
    await tools.environment.close()


@pytest.mark.fault("H-02")
async def test_h02_an_abort_leaves_what_other_commands_started(tools: Tools) -> None:
    daemon = (
        "(setsid sleep 60 >/dev/null 2>&1 & echo $! > {0}.new; mv {0}.new {0}); until [ -e {0} ]; do :; done"
    )
    await tools.bash(daemon.format("earlier"))
    context = FakeContext()
    beside = await started(tools, f"{daemon.format('beside')}; echo ready; sleep 60", context)
    other = FakeContext()
    aborted = await started(tools, f"{daemon.format('aborted')}; echo ready; sleep 60", other)
    other.controller.abort()
    await aborted
    assert not alive(number(tools, "aborted"))
    assert alive(number(tools, "earlier"))
    assert alive(number(tools, "beside"))
    await tools.environment.close()
    await beside
    assert not alive(number(tools, "earlier"))
    assert not alive(number(tools, "beside"))


@pytest.mark.fault("H-02")
async def test_h02_commands_that_are_aborted_together_share_snapshots_of_all_processes(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cantle.tools import process_snapshots

    looks = 0
    read = process_snapshots._all._take

    def counted() -> Mapping[int, ProcessInfo] | None:
        nonlocal looks
        looks += 1
        return read()

    monkeypatch.setattr(process_snapshots._all, "_take", counted)
    many = 60
    command = "(setsid env -i sleep 60 >/dev/null 2>&1 &); echo $$ >> shells; exec sleep 60"
    context = FakeContext()
    calls = [asyncio.create_task(tools.call("bash", {"command": command}, context)) for _ in range(many)]
    shells = tools.folder / "shells"
    assert await within(20, lambda: shells.exists() and len(shells.read_bytes().split()) == many)
    assert looks == 0
    context.controller.abort()
    await asyncio.gather(*calls)
    # Each by itself takes two at least, before the signal and after it.
    assert looks < many
    assert not any(alive(int(pid)) for pid in shells.read_bytes().split())


@pytest.mark.fault("H-02")
async def test_h02_what_is_killed_starts_nothing_more(tools: Tools) -> None:
    # Its shell would go on with `touch next` if `sleep` were killed before it.
    inner = "trap '' TERM; touch armed; sleep 60; touch next; sleep 60; touch last"
    context = FakeContext()
    command = f'setsid bash -c "{inner}" & until [ -e armed ]; do sleep 0.01; done; echo ready; wait'
    call = await started(tools, command, context)
    context.controller.abort()
    await call
    assert not (tools.folder / "next").exists()
    assert not (tools.folder / "last").exists()


@pytest.mark.fault("H-08")
async def test_h08_orphans_that_end_are_waited_for(tools: Tools) -> None:
    before = children()
    for _ in range(10):
        await tools.bash(
            "sleep 0.1; (sleep 0.01 &); (setsid sleep 0.02 &); (setsid sh -c 'sleep 0.03' >/dev/null 2>&1 &)"
        )
        await tools.bash("sleep 0.1; (env -i setsid sh -c 'exit 3' &); sleep 0.05; true")
    assert await within(5, lambda: not tools.environment.processes.left_running)
    await tools.environment.close()
    assert children() == before


@pytest.mark.fault("H-01")
async def test_h01_what_ended_since_is_told_with_the_next_result(tools: Tools) -> None:
    first = await tools.bash("(until [ -e go ]; do sleep 0.01; done; exit 7) >/dev/null & echo $! > pid")
    pid = number(tools, "pid")
    processes = tools.environment.processes
    assert [(process.pid, process.name) for process in processes.left_running] == [(pid, "bash")]
    assert "endedSince" not in str(first.details)
    assert "ended" not in text_of(await tools.bash("echo meanwhile"))
    (tools.folder / "go").touch()
    assert await within(5, lambda: not processes.left_running)
    result = await tools.bash("echo next")
    assert f"[Process {pid} (bash) of an earlier command has ended with exit code 7.]" in text_of(result)
    assert detail(result, "endedSince") == [{"pid": pid, "name": "bash", "exitCode": 7}]
    assert not result.is_error
    assert "ended" not in text_of(await tools.bash("echo once"))


@pytest.mark.fault("H-01")
async def test_h01_a_signal_that_ended_it_is_told_as_well(tools: Tools) -> None:
    await tools.bash("sleep 60 >/dev/null & echo $! > pid")
    os.kill(number(tools, "pid"), signal.SIGKILL)
    assert await within(5, lambda: not tools.environment.processes.left_running)
    result = await tools.bash("true")
    assert "has ended, by signal 9 (SIGKILL).]" in text_of(result)
    assert detail(result, "endedSince")[0]["exitCode"] == 137  # type: ignore[index, call-overload]


@pytest.mark.fault("H-09")
async def test_h09_a_name_that_a_program_gave_itself_stays_in_its_line(tools: Tools) -> None:
    name = "$'a\\nb\\e[31m'"
    result = await tools.bash(
        f'cp /bin/sleep {name}; ./{name} 60 >/dev/null & until read x < /proc/$!/comm && [ "$x" = a ]; do :; done'
    )
    assert "(a?b?[31m) still runs" in text_of(result)


@pytest.mark.fault("H-01")
async def test_h01_a_child_that_prints_without_end_costs_little(tools: Tools) -> None:
    await tools.bash("yes & echo $! > pid")
    begin, used = time.monotonic(), time.process_time()
    while time.monotonic() - begin < 1:
        await asyncio.sleep(0.05)
    assert time.process_time() - used < 0.5
    assert alive(number(tools, "pid"))


EMBEDDER = """
    import asyncio, ctypes, os, subprocess, sys, time
    from pathlib import Path
    from packages.cantle.tests.tools.harness import FakeContext, Tools, alive

    def adopts():
        value = ctypes.c_int()
        assert ctypes.CDLL(None).prctl(37, ctypes.byref(value), 0, 0, 0) == 0
        return value.value

    own = [
        subprocess.Popen(["sleep", "60"]),
        subprocess.Popen(["sleep", "60"], start_new_session=True),
        subprocess.Popen(["setsid", "sh", "-c", "sleep 60 & wait"], stdout=-3, stderr=-3),
    ]
    ended = [subprocess.Popen(["sh", "-c", "exit 7"], start_new_session=new) for new in (True, False)]
    late = subprocess.Popen(["sh", "-c", "until [ -e late ]; do sleep 0.01; done; exit 8"], start_new_session=True)

    async def main():
        tools = Tools(Path.cwd())
        orphans = "(setsid sleep 60 >/dev/null 2>&1 &)"
        await tools.bash(f"{orphans}; echo x")
        assert adopts() == 1
        await tools.bash(f"{orphans}; sleep 60", timeout=0.3)
        context = FakeContext()
        call = asyncio.create_task(tools.call("bash", {"command": f"{orphans}; echo ready; sleep 60"}, context))
        await context.shows("ready")
        # One that the embedding program starts while a command runs, from another thread.
        meanwhile = await asyncio.to_thread(subprocess.Popen, ["sleep", "60"], start_new_session=True)
        Path("late").touch()
        context.controller.abort()
        await call
        await tools.environment.close()
        return meanwhile

    before = adopts()
    own.append(asyncio.run(main()))
    assert adopts() == before == int(sys.argv[1]), (adopts(), before)
    for process in own:
        assert process.poll() is None, process.args
    assert [process.wait() for process in ended] == [7, 7]
    assert late.wait() == 8
    for process in own:
        process.kill()
        assert process.wait() == -9
    print("good")
"""


@pytest.mark.parametrize("adopts_already", [False, True])
@pytest.mark.fault("H-08")
def test_h08_the_children_of_an_embedding_program_are_left_alone(
    tmp_path: Path, adopts_already: bool
) -> None:
    begin = "import ctypes; ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)\n" if adopts_already else ""
    script = begin + textwrap.dedent(EMBEDDER)
    done = subprocess.run(
        [sys.executable, "-c", script, str(int(adopts_already))],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path.cwd()), *sys.path])},
        capture_output=True,
        encoding="utf-8",
        timeout=50,
    )
    assert (done.stdout, done.returncode) == ("good\n", 0), done.stderr


def carries(pid: int, mark: Mark) -> bool:
    return not marks_of(pid).isdisjoint(mark.names)


@pytest.mark.fault("H-08")
def test_h08_what_another_thread_starts_in_the_same_moment_loses_the_mark() -> None:
    mark, other = Mark(), Mark()
    with mark.worn():
        foreign = subprocess.Popen(["sleep", "60"], start_new_session=True)
        parent = subprocess.Popen(
            ["sh", "-c", "env -i sleep 60 & echo $!; wait"], start_new_session=True, stdout=subprocess.PIPE
        )
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        own = subprocess.Popen(["sleep", "60"], start_new_session=True, env=mark.variables(os.environ))
    try:
        assert carries(foreign.pid, mark)
        assert carries(child, mark)
        mark.take_off_others()
        assert not carries(foreign.pid, mark)
        assert not carries(child, mark)
        assert carries(own.pid, mark)
        assert not carries(own.pid, other)
        assert not carries(os.getpid(), mark)
    finally:
        os.killpg(parent.pid, signal.SIGKILL)
        parent.stdout.close()
        for process in (foreign, own, parent):
            process.kill()
            process.wait()


@pytest.mark.fault("H-08")
async def test_h08_without_adoption_marks_still_find_them(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cantle.tools import process_groups

    monkeypatch.setattr(process_groups, "begin_adoption", lambda: False)
    monkeypatch.setattr(process_groups, "end_adoption", lambda: None)
    context = FakeContext()
    call = await started(
        tools,
        f"{ORPHANS['a session of its own']}; until [ -e pid ]; do :; done; echo ready; sleep 60",
        context,
    )
    context.controller.abort()
    await call
    assert await gone(number(tools, "pid"))


@pytest.mark.fault("H-08")
async def test_h08_where_only_ps_tells_the_tree_is_ended_too(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    if subprocess.run(["ps", "-A", "-o", "lstart="], capture_output=True).returncode:
        pytest.skip("needs a ps that tells when a process was started")
    monkeypatch.setattr(process_table, "_PROC", Path("/nowhere"))
    context = FakeContext()
    command = "setsid sleep 60 & echo $! > child; sleep 60 & echo $! > plain; until [ -s child ]; do :; done; echo ready; wait"
    call = await started(tools, command, context)
    context.controller.abort()
    await call
    assert await gone(number(tools, "child"))
    assert await gone(number(tools, "plain"))
    result = await tools.bash("sleep 60 >/dev/null & echo $! > left")
    assert f"Process {number(tools, 'left')} (sleep) still runs" in text_of(result)
    await tools.environment.close()
    assert await gone(number(tools, "left"))


@pytest.mark.fault("H-08")
async def test_h08_where_nothing_tells_the_group_is_ended(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = children()
    monkeypatch.setattr(process_table, "_PROC", Path("/nowhere"))
    monkeypatch.setattr(process_table, "_listed", lambda only: None)
    result = await tools.bash("sleep 60 >/dev/null & echo $! > left")
    assert "Something that the command started still runs in the background" in text_of(result)
    await tools.environment.close()
    assert await gone(number(tools, "left"))
    monkeypatch.undo()
    assert children() == before


@pytest.mark.fault("H-08")
def test_h08_a_number_that_is_in_use_again_gets_no_signal() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        info = read_process(process.pid)
        assert info is not None
        send_signal(info._replace(born="1"), signal.SIGKILL)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.2)
        send_signal(info, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        send_signal(info, signal.SIGKILL)


async def test_a_command_in_a_command_is_known_to_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(COMMAND_ID, "outer")
    tools = Tools(tmp_path)
    first = text_of(await tools.bash(f"printf %s ${COMMAND_ID}"))
    second = text_of(await tools.bash(f"printf %s ${COMMAND_ID}"))
    assert first.startswith("outer/")
    assert second.startswith("outer/")
    assert first != second


def test_children_are_found_while_threads_end() -> None:
    done = threading.Event()

    def begin_threads() -> None:
        while not done.is_set():
            thread = threading.Thread(target=lambda: None)
            thread.start()
            thread.join()

    busy = [threading.Thread(target=begin_threads) for _ in range(3)]
    child = subprocess.Popen(["sleep", "60"])
    try:
        for thread in busy:
            thread.start()
        missed = [look for look in range(300) if child.pid not in children_of(os.getpid())]
    finally:
        done.set()
        for thread in busy:
            thread.join()
        child.kill()
        child.wait()
    assert missed == []
