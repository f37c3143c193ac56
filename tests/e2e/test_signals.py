"""Interrupts, closed pipes and slow readers: a run ends cleanly and keeps its session."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from array import array
from pathlib import Path
from typing import Any

import pytest

from cantle_ai.messages import AssistantMessage
from cantle_ai.testing.server.server import StrictServer
from cantle_session.session import Session
from tests.support.cli import Cli

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and pipes are POSIX's here")

OPTIONS = ("--provider", "loop", "--model", "m")
WORD = "word "


def stalling(text: str) -> dict[str, Any]:
    return {"content": text, "stall": True, "after": 3}


def read_deltas(process: subprocess.Popen[bytes], count: int) -> bytes:
    """What a run in JSON mode prints until so many pieces of text are out."""
    assert process.stdout is not None
    out = b""
    while count:
        line = process.stdout.readline()
        assert line, out
        out += line
        count -= is_delta(json.loads(line))
    return out


@pytest.mark.fault("K05")
@pytest.mark.parity("cli.signals")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_aborts_and_keeps_the_session(cli: Cli, number: signal.Signals, code: int) -> None:
    with StrictServer([stalling("An answer that never ends.")], chunk=4) as server:
        cli.configure(server.base_url)
        with cli.started(*OPTIONS, "--mode", "json", "go") as process:
            out = read_deltas(process, 3)
            process.send_signal(number)
            assert process.stdout is not None and process.stderr is not None
            out += process.stdout.read()
            err = process.stderr.read()
            assert process.wait(timeout=20) == code
    assert err.decode().count("\n") == 1, err
    assert "Traceback" not in err.decode()
    records = [json.loads(line) for line in out.split(b"\n")[:-1]]
    assert records[-1] == {"type": "agent_settled", "aborted": True}
    (file,) = cli.sessions()
    with Session.open(file) as session:
        last = session.context().messages[-1]
    assert isinstance(last, AssistantMessage)
    assert (last.stop_reason, last.text) == ("aborted", "An answer th")


def test_a_signal_stops_a_running_command(cli: Cli) -> None:
    marker = cli.cwd / "pid"
    call = {"type": "toolCall", "name": "bash", "arguments": {"command": f"echo $$ > {marker}; sleep 60"}}
    with StrictServer([{"content": [call]}, "unreached"]) as server:
        cli.configure(server.base_url)
        with cli.started(*OPTIONS, "-p", "go") as process:
            deadline = time.monotonic() + 20
            while not (marker.exists() and marker.read_text()) and time.monotonic() < deadline:
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=20)
            assert (process.returncode, len(server.requests)) == (130, 1), err
    with pytest.raises(ProcessLookupError):
        os.kill(int(marker.read_text()), 0)
    (file,) = cli.sessions()
    with Session.open(file) as session:
        roles = [message.role for message in session.context().messages]
    assert roles[:3] == ["user", "assistant", "toolResult"]


@pytest.mark.fault("K02")
@pytest.mark.parametrize("mode", ["text", "json"])
def test_a_closed_pipe_ends_quietly(cli: Cli, mode: str) -> None:
    with StrictServer([{"content": WORD * 40_000, "chunk": 40}]) as server:
        cli.configure(server.base_url)
        with cli.started(*OPTIONS, "-p", "--mode", mode, "go") as process:
            assert process.stdout is not None
            process.stdout.close()
            assert process.stderr is not None
            err = process.stderr.read()
            assert process.wait(timeout=30) == 141
    assert err == b""


@pytest.mark.fault("K02")
@pytest.mark.parity("events.slow-reader")
def test_k02_a_slow_reader_loses_nothing(cli: Cli) -> None:
    with StrictServer([{"content": WORD * 20_000, "chunk": 20}]) as server:
        cli.configure(server.base_url)
        with cli.started(*OPTIONS, "--mode", "json", "go") as process:
            assert process.stdout is not None
            wait_until_full(process.stdout.fileno())
            out = b""
            while block := os.read(process.stdout.fileno(), 1 << 16):
                out += block
            assert process.wait(timeout=30) == 0
    records = [json.loads(line) for line in out.split(b"\n")[:-1]]
    deltas = [r["assistantMessageEvent"]["delta"] for r in records if is_delta(r)]
    assert "".join(deltas) == WORD * 20_000
    assert records[-1]["type"] == "agent_settled"


def is_delta(record: dict[str, Any]) -> bool:
    return record["type"] == "message_update" and record["assistantMessageEvent"]["type"] == "text_delta"


def wait_until_full(pipe: int) -> None:
    """Until a pipe holds as much as it can, but for what the last write, and each page of it, did not fill."""
    import fcntl
    import termios

    deadline = time.monotonic() + 20
    waiting = array("i", [0])
    while waiting[0] < 50_000 and time.monotonic() < deadline:
        fcntl.ioctl(pipe, termios.FIONREAD, waiting)
        time.sleep(0.01)
    assert waiting[0] >= 50_000


@pytest.mark.fault("K02")
def test_an_interrupt_works_while_the_reader_stands_still(cli: Cli) -> None:
    with StrictServer([{"content": WORD * 60_000, "chunk": 40}]) as server:
        cli.configure(server.base_url)
        with cli.started(*OPTIONS, "--mode", "json", "go") as process:
            assert process.stdout is not None
            wait_until_full(process.stdout.fileno())
            process.send_signal(signal.SIGINT)
            process.stdout.close()
            assert process.wait(timeout=20) == 130


@pytest.mark.fault("K01")
def test_k01_what_tools_print_does_not_reach_stdout(cli: Cli, tmp_path: Path) -> None:
    call = {
        "type": "toolCall",
        "name": "bash",
        "arguments": {"command": "echo loud > /proc/self/fd/1; echo seen"},
    }
    with StrictServer([{"content": [call]}, "done"]) as server:
        cli.configure(server.base_url)
        done = cli.run(*OPTIONS, "-p", "go")
    assert (done.returncode, done.stdout) == (0, "done\n")


@pytest.mark.fault("K02")
def test_a_full_disk_under_stdout_is_said(cli: Cli) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    with StrictServer(["hello"]) as server, Path("/dev/full").open("wb") as full:
        cli.configure(server.base_url)
        with cli.started(*OPTIONS, "-p", "go", stdout=full) as process:
            _, err = process.communicate(timeout=20)
    assert process.returncode == 1
    assert err.decode().startswith("cantle: the output could not be written: ")
    assert err.decode().count("\n") == 1
