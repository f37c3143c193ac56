"""A run that is killed leaves a session that opens, continues and is accepted by a strict server."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from cantle.demo.script import PROMPT, responses
from cantle_ai.testing.response import Response
from cantle_ai.testing.server.server import StrictServer
from cantle_session.session import Session
from tests.e2e.conftest import SOURCE
from tests.support.cli import TIMEOUT, Cli
from tests.support.samples import samples

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL on Windows")

OPTIONS = ("--provider", "loop", "--model", "m")


@pytest.mark.timeout(1200)
@pytest.mark.parity("sessions.survive-a-kill")
def test_a_killed_run_can_be_continued(tmp_path: Path) -> None:
    choose = random.Random(20)
    whole = time_of_a_whole_run(fresh(tmp_path / "measured"))
    killed_midway = 0
    for number in range(samples(100, 12)):
        cli = fresh(tmp_path / f"run{number}")
        killed_midway += kill_after(cli, choose.uniform(0.1, 1.0) * whole)
        continue_and_check(cli)
        shutil.rmtree(tmp_path / f"run{number}")
    assert killed_midway >= samples(100, 12) // 3


@pytest.mark.parity("sessions.survive-a-kill")
def test_a_line_that_a_kill_tore_is_closed_and_left(tmp_path: Path) -> None:
    choose = random.Random(21)
    cli = fresh(tmp_path)
    time_of_a_whole_run(cli)
    (file,) = cli.sessions()
    lines = file.read_bytes().splitlines(keepends=True)
    for number in range(1, len(lines)):
        torn = lines[number][: choose.randrange(1, len(lines[number]) - 1)]
        file.write_bytes(b"".join(lines[:number]) + torn)
        continue_and_check(cli)


def test_the_next_change_in_a_folder_clears_up_after_a_killed_one(cli: Cli) -> None:
    big = cli.cwd / "big.txt"
    data = b"a line\n" * 600_000
    big.write_bytes(data + b"the last line\n")
    edit = {"path": "big.txt", "edits": [{"oldText": "the last line", "newText": "changed"}]}
    left: list[Path] = []
    while not left:
        with playing(cli, "edit", edit) as process:
            while process.poll() is None and not left:
                left = list(cli.cwd.glob(".cantle-*.tmp"))
            process.kill()
            process.wait()
        left = [path for path in left if path.exists()]
        big.write_bytes(data + b"the last line\n")
    with playing(cli, "write", {"path": "small.txt", "content": "text"}) as process:
        assert process.wait(timeout=TIMEOUT) == 0
    assert sorted(path.name for path in cli.cwd.iterdir()) == ["big.txt", "play.json", "small.txt"]
    assert big.read_bytes().endswith(b"the last line\n")


def playing(
    cli: Cli, tool: str, arguments: dict[str, Any]
) -> AbstractContextManager[subprocess.Popen[bytes]]:
    """A run whose model calls one tool and is content."""
    call = {"type": "toolCall", "name": tool, "arguments": arguments}
    (cli.cwd / "play.json").write_text(json.dumps({"responses": [{"content": [call]}, "done"]}))
    return cli.started("--provider", "scripted", "--model", "play.json", "--no-session", "-p", "go")


def fresh(folder: Path) -> Cli:
    cli = Cli(folder / "home", folder / "work")
    cli.home.mkdir(parents=True)
    shutil.copytree(SOURCE, cli.cwd, ignore=shutil.ignore_patterns("__pycache__"))
    return cli


def slow_server() -> StrictServer:
    """Slow enough for a kill to hit every part of a run."""
    return StrictServer(responses(), rate=400, chunk=8)


def time_of_a_whole_run(cli: Cli) -> float:
    with slow_server() as server:
        cli.configure(server.base_url)
        started = time.monotonic()
        assert cli.run(*OPTIONS, "-p", PROMPT).returncode == 0
        return time.monotonic() - started


def kill_after(cli: Cli, seconds: float) -> bool:
    """Kill a run when it is so old. Whether it was still at work."""
    with slow_server() as server:
        cli.configure(server.base_url)
        with cli.started(*OPTIONS, "-p", PROMPT) as process:
            try:
                process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                return True
        return False


def continue_and_check(cli: Cli) -> None:
    """What the killed run wrote stays, byte for byte; a new prompt goes on from there, and the server finds nothing
    wrong with the request.
    """
    kept = [file.read_bytes() for file in cli.sessions()]
    with StrictServer([Response(content="Going on.")]) as server:
        cli.configure(server.base_url)
        done = cli.run("-c", *OPTIONS, "-p", "Where were we?")
    assert (done.returncode, done.stdout) == (0, "Going on.\n"), done.stderr
    server.assert_clean()
    (file,) = cli.sessions()
    before, after = b"".join(kept), file.read_bytes()
    assert after.startswith(before)
    # A kill may tear the line that was being written. It is closed, and stays as it is.
    whole_lines = before[: before.rfind(b"\n") + 1].splitlines()
    new_lines = after[len(before) :].splitlines()
    if not before.endswith(b"\n"):
        new_lines = new_lines[1:]
    assert all(json.loads(line) for line in [*whole_lines, *new_lines])
    assert new_lines
    with Session.open(file) as session:
        assert session.context().messages[-1].role == "assistant"
