"""Signals that come twice, that a closed terminal sends, or that the caller chose to ignore."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

import pytest

from cantle_ai.testing.server.server import StrictServer
from cantle_session.session import Session
from tests.support.cli import Cli

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's here")

OPTIONS = ("--provider", "loop", "--model", "m", "-p", "go")
STUBBORN = "trap '' TERM INT HUP; echo $$ > pid; while :; do sleep 600; done"


def bash(command: str) -> dict[str, Any]:
    return {"content": [{"type": "toolCall", "name": "bash", "arguments": {"command": command}}]}


def alive(pid: int) -> bool:
    """Whether a process runs. One that nobody has reaped does not."""
    state = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, encoding="utf-8"
    ).stdout
    return state.strip()[:1] not in ("", "Z")


def until_written(cli: Cli, name: str) -> str:
    deadline = time.monotonic() + 20
    while not ((file := cli.cwd / name).exists() and file.read_text()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return (cli.cwd / name).read_text()


def signalled(cli: Cli, command: str, numbers: Sequence[signal.Signals]) -> tuple[int, str]:
    """Send signals while a command runs. Returns the exit code and stderr; the command must have ended by then."""
    with StrictServer([bash(command), "unreached"]) as server:
        cli.configure(server.base_url)
        with cli.started(*OPTIONS) as process:
            pid = int(until_written(cli, "pid"))
            for number in numbers:
                process.send_signal(number)
                time.sleep(0.2)
            _, err = process.communicate(timeout=20)
    assert not alive(pid)
    assert "Traceback" not in err.decode()
    return process.returncode, err.decode()


def test_m05_a_closed_terminal_ends_the_run_and_its_commands(cli: Cli) -> None:
    code, err = signalled(cli, "echo $$ > pid; sleep 600", [signal.SIGHUP])
    assert (code, err) == (128 + signal.SIGHUP, "cantle: stopped by SIGHUP.\n")
    (file,) = cli.sessions()
    with Session.open(file) as session:
        assert [message.role for message in session.context().messages][:3] == [
            "user",
            "assistant",
            "toolResult",
        ]


@pytest.mark.parametrize(
    "numbers",
    [
        (signal.SIGINT, signal.SIGINT),
        (signal.SIGTERM, signal.SIGTERM),
        (signal.SIGINT, signal.SIGTERM),
        (signal.SIGHUP, signal.SIGTERM),
    ],
)
@pytest.mark.fault("H-08")
def test_h08_a_second_signal_leaves_no_command_behind(cli: Cli, numbers: Sequence[signal.Signals]) -> None:
    code, _ = signalled(cli, STUBBORN, numbers)
    assert code == 128 + numbers[0]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.fault("H-08")
def test_h08_a_signal_while_the_session_closes_leaves_no_command_behind(
    cli: Cli, number: signal.Signals
) -> None:
    background = "(trap '' TERM; echo $BASHPID > pid; while :; do sleep 600; done) & sleep 0.2"
    with StrictServer([bash(background), "done"]) as server:
        cli.configure(server.base_url)
        with cli.started(*OPTIONS) as process:
            assert process.stdout is not None
            assert process.stdout.read(5) == b"done\n"
            process.send_signal(number)
            process.communicate(timeout=20)
    assert not alive(int(until_written(cli, "pid")))


@pytest.mark.fault("K02")
def test_a_second_signal_ends_a_run_whose_reader_stands_still(cli: Cli) -> None:
    with StrictServer([{"content": "word " * 60_000, "chunk": 40}]) as server:
        cli.configure(server.base_url)
        with cli.started("--mode", "json", *OPTIONS) as process:
            deadline = time.monotonic() + 20
            while not server.requests and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(1)
            process.send_signal(signal.SIGTERM)
            time.sleep(0.3)
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=20) == 128 + signal.SIGTERM
            assert process.stderr is not None
            assert b"Traceback" not in process.stderr.read()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_signal_that_the_caller_ignores_stays_ignored(cli: Cli, number: signal.Signals) -> None:
    script = 'trap "" INT HUP; exec "$@"'
    with StrictServer([bash("echo go > pid; sleep 1"), "done"]) as server:
        cli.configure(server.base_url)
        words = ["sh", "-c", script, "sh", *cli.words(*OPTIONS)]
        with subprocess.Popen(
            words, cwd=cli.cwd, env=cli.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        ) as process:
            until_written(cli, "pid")
            process.send_signal(number)
            out, _ = process.communicate(timeout=20)
    assert (process.returncode, out) == (0, b"done\n")
