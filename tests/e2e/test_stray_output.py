"""What anything but the answer or the protocol prints: never on stdout, and nothing of it can stop the run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import TIMEOUT, Cli
from tests.support.samples import samples

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="descriptors and shells are POSIX's here")

LOUD = "a stray line"

WRITERS = {
    "print": "print(LOUD)",
    "print without a line end": "print(LOUD, end='')",
    "a library's own stream": "os.fdopen(os.dup(1), 'w').write(LOUD)",
    "the descriptor": "os.write(1, LOUD.encode())",
    "Python's first stdout": "sys.__stdout__.write(LOUD)",
    "C": "libc = ctypes.CDLL(None); libc.puts(LOUD.encode()); libc.fflush(None)",
    "C, written when the program ends": "ctypes.CDLL(None).printf(LOUD.encode())",
    "a child": "subprocess.run(['echo', LOUD])",
    "a child that outlives the call": "subprocess.Popen(['sh', '-c', 'sleep 0.1; echo ' + LOUD])",
    "a child's child": "os.system('sh -c \"echo ' + LOUD + '\"')",
    "a thread": "threading.Thread(target=print, args=[LOUD]).start()",
    "a thread that outlives the call": "threading.Timer(0.1, print, [LOUD]).start()",
    "at the end of the program": "atexit.register(print, LOUD)",
    "a warning": "warnings.warn(LOUD)",
    "a log": "logging.basicConfig(stream=sys.stdout); logging.error(LOUD)",
    "a task that fails": "asyncio.get_running_loop().create_task(fail())",
    "a callback that fails": "asyncio.get_running_loop().call_soon(int, LOUD)",
}

HARMS = {
    "stdout is closed": "sys.stdout.close()",
    "stdout is gone": "sys.stdout = sys.__stdout__ = None",
    "descriptor 1 is closed": "os.close(1)",
    "stderr is closed": "sys.stderr.close()",
    "stderr is gone": "sys.stderr = sys.__stderr__ = None",
    "both are closed": "sys.stdout.close(); sys.stderr.close()",
    "both descriptors are closed": "os.close(1); os.close(2)",
    "stdout leads elsewhere": "os.dup2(os.open(os.devnull, os.O_WRONLY), 1)",
    "stdin is closed": "sys.stdin.close()",
}

REMAINS = {
    "nothing": "pass",
    "a task that ignores being cancelled": "asyncio.create_task(cling()); await asyncio.sleep(0)",
    "a thread": "threading.Thread(target=threading.Event().wait).start()",
    "a thread of the pool": "asyncio.get_running_loop().run_in_executor(None, threading.Event().wait)",
    "what is done at the end": "atexit.register(threading.Event().wait); threading.Timer(9, int).start()",
}

PROGRAM = """
import asyncio, atexit, ctypes, logging, os, subprocess, sys, threading, warnings
import cantle.sdk
from cantle.cli import main
from cantle_agent.function_tool import tool

LOUD = %r
create = cantle.sdk.create_agent_session

async def cling():
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            continue

async def fail():
    raise OSError(LOUD)

@tool
async def loud() -> str:
    "Says something."
    %s
    await asyncio.sleep(0)
    return "said"

cantle.sdk.create_agent_session = lambda **options: create(**{**options, "tools": [loud]})
sys.exit(main())
"""


@pytest.fixture
def player(cli: Cli) -> Cli:
    """`cantle` with a model that calls the tool `loud` and answers."""
    call = {"type": "toolCall", "name": "loud", "arguments": {}}
    (cli.cwd / "loud.json").write_text(json.dumps({"responses": [{"content": [call]}, "the answer"]}))
    return cli


def play(player: Cli, statement: str, mode: str) -> subprocess.CompletedProcess[bytes]:
    """Run with a tool that does what `statement` says."""
    options = ["--provider", "scripted", "--model", "loud.json", "--no-session", "--mode", mode, "-p", "go"]
    return subprocess.run(
        [sys.executable, "-c", PROGRAM % (LOUD, statement), *options],
        cwd=player.cwd,
        env=player.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=TIMEOUT,
        check=False,
    )


def check(stdout: bytes, mode: str) -> None:
    """Stdout is the answer, or records of which each is one whole line, from the header to the last event."""
    if mode == "text":
        assert stdout == b"the answer\n"
        return
    records = [json.loads(line) for line in stdout.split(b"\n")[:-1]]
    assert stdout.endswith(b"}\n")
    assert records[0]["type"] == "session" and records[-1]["type"] == "agent_settled"
    assert all(isinstance(record["type"], str) for record in records)
    (result,) = [record["result"] for record in records if record["type"] == "tool_execution_end"]
    assert result["content"] == [{"type": "text", "text": "said"}]


@pytest.mark.fault("K01")
@pytest.mark.parametrize("mode", ["text", "json"])
@pytest.mark.parametrize("statement", WRITERS.values(), ids=WRITERS)
def test_what_else_is_printed_goes_to_stderr(player: Cli, statement: str, mode: str) -> None:
    done = play(player, statement, mode)
    assert done.returncode == 0, done.stderr
    check(done.stdout, mode)
    assert LOUD.encode() in done.stderr


@pytest.mark.fault("K01")
@pytest.mark.parametrize("mode", ["text", "json"])
@pytest.mark.parametrize("statement", HARMS.values(), ids=HARMS)
def test_a_tool_that_harms_the_standard_streams_harms_no_output(
    player: Cli, statement: str, mode: str
) -> None:
    done = play(player, statement, mode)
    assert done.returncode == 0, done.stderr
    check(done.stdout, mode)
    assert done.stderr == b""


@pytest.mark.fault("K01", "K04")
@pytest.mark.parametrize("statement", HARMS.values(), ids=HARMS)
@pytest.mark.parametrize(("last", "code"), [("the answer", 0), ({"error": {"status": 400}}, 1)])
def test_what_has_nowhere_to_go_is_dropped(player: Cli, statement: str, last: object, code: int) -> None:
    """That the request is tried again, and why it failed at last: the exit code says what it says otherwise."""
    (player.config / "settings.json").write_text('{"retry": {"baseDelayMs": 1}}')
    call = {"type": "toolCall", "name": "loud", "arguments": {}}
    script = {"responses": [{"content": [call]}, {"error": {"status": 503, "message": "busy"}}, last]}
    (player.cwd / "loud.json").write_text(json.dumps(script))
    done = play(player, statement, "text")
    assert (done.returncode, done.stdout) == (code, b"" if code else b"the answer\n")
    assert b"Traceback" not in done.stderr


@pytest.mark.fault("K01")
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_the_output_is_not_handed_to_children(player: Cli) -> None:
    listing = player.cwd / "descriptors"
    statement = f"subprocess.run('ls -l /proc/self/fd > {listing}', shell=True, close_fds=False)"
    done = play(player, statement, "json")
    check(done.stdout, "json")
    links = dict(line.split()[-3::2] for line in listing.read_text().splitlines() if " -> " in line)
    assert [number for number, target in links.items() if target.startswith("pipe:")] == ["2"]


@pytest.mark.fault("K03")
@pytest.mark.parametrize("name", list(REMAINS)[: samples(len(REMAINS), 3)])
def test_what_a_tool_leaves_running_does_not_hold_the_program(player: Cli, name: str) -> None:
    done = play(player, REMAINS[name], "json")
    assert done.returncode == 0, done.stderr
    check(done.stdout, "json")
    assert (b"does not end by itself" in done.stderr) == (name != "nothing")
