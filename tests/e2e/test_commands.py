"""Commands of a run: the shell of the settings, what may be left in the background, and that nothing outlives a run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cantle_ai.testing.server.server import StrictServer
from tests.e2e.test_more_signals import OPTIONS, alive, bash, until_written
from tests.support.cli import Cli

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the commands of these tests are POSIX ones")

LEFT = (
    "sleep 600 >/dev/null 2>&1 & echo $! > plain; "
    "(setsid sleep 600 </dev/null >/dev/null 2>&1 & echo $! > orphan.new; mv orphan.new orphan); "
    "(trap '' TERM HUP INT; while :; do sleep 600; done) & echo $! > stubborn; "
    "until [ -s orphan ]; do sleep 0.01; done; "
)


def left(cli: Cli) -> list[int]:
    """The processes that `LEFT` has started."""
    names = ("plain", "orphan", "stubborn") if sys.platform == "linux" else ("plain", "stubborn")
    return [int(until_written(cli, name)) for name in names]


def settings(cli: Cli, **values: Any) -> None:
    (cli.config / "settings.json").write_text(json.dumps(values), encoding="utf-8")


def results(server: StrictServer, number: int) -> list[str]:
    """What the model read of calls, in that request."""
    body: Any = server.requests[number].json
    return [message["content"] for message in body["messages"] if message["role"] == "tool"]


@pytest.mark.parity("config.shell")
def test_the_shell_and_the_prefix_of_the_settings_run_every_command(cli: Cli) -> None:
    shell = cli.home / "my shell"
    shell.write_text('#!/bin/sh\necho "in my shell"\nexec /bin/sh "$@"\n', encoding="utf-8")
    shell.chmod(0o755)
    settings(cli, shellPath="~/my shell", shellCommandPrefix="greet() { echo hello $1; } # a remark")
    with StrictServer([bash("greet you"), "done"]) as server:
        cli.configure(server.base_url)
        done = cli.run(*OPTIONS)
        assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
        assert results(server, 1)[0] == "in my shell\nhello you\n"


@pytest.mark.fault("H-07")
def test_h07_a_shell_that_is_missing_is_told_to_the_model(cli: Cli) -> None:
    settings(cli, shellPath="/no/such/shell")
    with StrictServer([bash("echo x"), "done"]) as server:
        cli.configure(server.base_url)
        assert cli.run(*OPTIONS).returncode == 0
        assert "Correct shellPath" in results(server, 1)[0]


@pytest.mark.fault("H-07")
def test_h07_a_folder_that_a_command_removes_is_told_to_the_model(cli: Cli) -> None:
    with StrictServer([bash('rmdir "$PWD"'), bash("echo x"), "done"]) as server:
        cli.configure(server.base_url)
        assert cli.run(*OPTIONS).returncode == 0
        assert "does not exist any more" in results(server, 2)[1]


@pytest.mark.fault("H-08")
@pytest.mark.parity("tools.bash-leftovers")
def test_h08_what_is_left_is_named_and_ends_with_the_run(cli: Cli) -> None:
    with StrictServer([bash(LEFT + "echo started"), "done"]) as server:
        cli.configure(server.base_url)
        done = cli.run(*OPTIONS)
        pids = left(cli)
        text = results(server, 1)[0]
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert "still run in the background" in text
    for pid in pids:
        assert f"{pid} (" in text
        assert f"{pid} (" in done.stderr
    assert done.stderr.startswith("cantle: processes ")
    assert done.stderr.endswith("left in the background by a command, end with this session.\n")
    assert not any(map(alive, pids))


@pytest.mark.parity("tools.bash-leftovers")
def test_with_shell_leftovers_kill_they_end_with_the_command(cli: Cli) -> None:
    settings(cli, shellLeftovers="kill")
    with StrictServer([bash(LEFT + "echo started"), bash("sleep 0; cat plain"), "done"]) as server:
        cli.configure(server.base_url)
        done = cli.run(*OPTIONS)
        pids = left(cli)
        assert results(server, 1)[0].startswith("started\n\n[Processes ")
        assert "were ended with the command" in results(server, 1)[0]
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
    assert not any(map(alive, pids))


def test_another_value_of_shell_leftovers_is_refused(cli: Cli) -> None:
    settings(cli, shellLeftovers="maybe")
    done = cli.run(*OPTIONS)
    assert done.returncode != 0
    assert 'shellLeftovers must be "keep" or "kill", not "maybe"' in done.stderr


def test_exit_codes_are_known_where_the_starter_ignores_its_children(cli: Cli) -> None:
    def ignore() -> None:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)

    with StrictServer([bash("exit 3"), "done"]) as server:
        cli.configure(server.base_url)
        with cli.started(*OPTIONS, preexec_fn=ignore) as process:
            assert process.communicate(timeout=20)[0] == b"done\n"
        assert results(server, 1) == ["Exit code 3."]


@pytest.mark.fault("H-08")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.parametrize("when", ["a command runs", "the model answers"])
def test_h08_nothing_survives_a_signal(cli: Cli, number: signal.Signals, when: str) -> None:
    if when == "a command runs":
        responses: list[Any] = [bash(LEFT + "echo > ready; sleep 600; touch next"), "unreached"]
    else:
        responses = [bash(LEFT + "echo > ready"), {"content": "word " * 5_000, "chunk": 5}]
    with StrictServer(responses, rate=1_000 if when == "the model answers" else None) as server:
        cli.configure(server.base_url)
        with cli.started(*OPTIONS) as process:
            until_written(cli, "ready")
            pids = left(cli)
            process.send_signal(number)
            _, err = process.communicate(timeout=20)
    assert process.returncode == 128 + number
    assert "Traceback" not in err.decode()
    assert not any(map(alive, pids))
    assert not (cli.cwd / "next").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc to find what is left")
def test_what_a_kill_leaves_can_be_found_by_its_mark(cli: Cli) -> None:
    # The guide says so, with this search.
    with StrictServer([bash("echo $$ > pid; exec sleep 600"), "unreached"]) as server:
        cli.configure(server.base_url)
        with cli.started(*OPTIONS) as process:
            pid = int(until_written(cli, "pid"))
            process.kill()
            process.communicate(timeout=20)
    assert alive(pid)
    words = ["grep", "-lsa", "CANTLE_COMMAND_ID", *map(str, Path("/proc").glob("[0-9]*/environ"))]
    found = subprocess.run(words, capture_output=True, encoding="utf-8").stdout.split()
    os.kill(pid, signal.SIGKILL)
    assert f"/proc/{pid}/environ" in found
