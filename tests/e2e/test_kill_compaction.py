"""A compaction that is killed leaves the session as it was, or compacted; it goes on either way."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cantle_ai.testing.response import Response
from cantle_ai.testing.server.server import StrictServer
from cantle_session.session import Session
from tests.support.cli import Cli
from tests.support.samples import samples

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL on Windows")

OPTIONS = ("--provider", "loop", "--model", "m")
SUMMARY = "## Goal\nMend the parser.\n\n## Next steps\nRun the tests.\n" + "A line of the summary.\n" * 20
WORDS = "words and more " * 60
WAYS = {"asked for": ("/compact", 100_000), "before a prompt": ("Go on.", 4_000)}
"""What is said to have the history compacted, and to a model with which window."""


@pytest.mark.timeout(1200)
@pytest.mark.fault("G08")
@pytest.mark.parametrize("way", WAYS)
def test_a_killed_compaction_loses_nothing(way: str, cli: Cli) -> None:
    settings = {"compaction": {"keepRecentTokens": 200}}
    (cli.config / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    file = begun(cli)
    before = file.read_bytes()
    whole = seconds_of(cli, way)
    assert "compaction" in kinds(file)
    choose = random.Random(way)
    midway = done = 0
    rounds = samples(40, 3)
    for _ in range(rounds):
        file.write_bytes(before)
        midway += killed_after(cli, way, choose.uniform(0.2, 1.0) * whole)
        assert file.read_bytes().startswith(before)
        done += "compaction" in kinds(file)
        goes_on(cli, file)
    assert midway >= rounds // 3
    assert done < rounds


def begun(cli: Cli) -> Path:
    """A session of some turns, long enough to be compacted; gives its file."""
    for number in range(3):
        with StrictServer([Response(content=f"Answer {number}. {WORDS}")]) as server:
            cli.configure(server.base_url)
            more = ("-c",) if number else ()
            done = cli.run(*more, *OPTIONS, "-p", f"Prompt {number}. {WORDS}")
            assert done.returncode == 0, done.stderr
            server.assert_clean()
    (file,) = cli.sessions()
    return file


def summing_up() -> StrictServer:
    """Says a summary slowly enough for a kill to hit every part of it."""
    return StrictServer([Response(content=SUMMARY, repeat="forever")], rate=400, chunk=8, prefix=False)


def seconds_of(cli: Cli, way: str) -> float:
    prompt, window = WAYS[way]
    with summing_up() as server:
        cli.configure(server.base_url, contextWindow=window)
        started = time.monotonic()
        done = cli.run("-c", *OPTIONS, "-p", prompt)
        assert done.returncode == 0, done.stderr
        server.assert_clean()
        return time.monotonic() - started


def killed_after(cli: Cli, way: str, seconds: float) -> bool:
    """Kill a compaction when it is so old. Whether it was still at work."""
    prompt, window = WAYS[way]
    with summing_up() as server:
        cli.configure(server.base_url, contextWindow=window)
        with cli.started("-c", *OPTIONS, "-p", prompt) as process:
            try:
                process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                return True
        return False


def goes_on(cli: Cli, file: Path) -> None:
    """A prompt, and a compaction that is left to itself: a strict server takes both."""
    for prompt, answer in (("Where were we?", f"There. {WORDS}"), ("/compact", SUMMARY)):
        before = file.read_bytes()
        with StrictServer([Response(content=answer, repeat="forever")], prefix=False) as server:
            cli.configure(server.base_url)
            done = cli.run("-c", *OPTIONS, "-p", prompt)
            assert done.returncode == 0, done.stderr
            server.assert_clean()
        assert file.read_bytes().startswith(before)
    with Session.open(file) as session:
        assert session.context().messages[0].role == "compactionSummary"
        # A kill may tear the line that was being written. It is closed, and stays as it is.
        assert len([warning for warning in session.warnings if warning.line is not None]) <= 1


def kinds(file: Path) -> list[str]:
    with Session.open(file) as session:
        return [entry.type for entry in session.entries()]
