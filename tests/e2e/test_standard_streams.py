"""Standard streams that are closed, full, or of another encoding."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import TIMEOUT, Cli

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")

PLAY = ("--provider", "scripted", "--model", "hello.json", "--no-session", "-p", "go")
RESULTS = {
    "version": ("--version",),
    "help": ("--help",),
    "models": ("--list-models",),
    "demo": ("demo", "--folder", "here"),
    "demo in JSON": ("demo", "--folder", "here", "--json"),
    "answer": PLAY,
    "events": ("--mode", "json", *PLAY),
}


@pytest.fixture
def player(cli: Cli) -> Cli:
    cli.configure("http://127.0.0.1:9/v1")
    (cli.cwd / "hello.json").write_text('{"responses": ["hello"]}')
    return cli


def redirected(cli: Cli, redirection: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run under a shell that has redirected the standard streams. What is buffered counts, as it does for a user."""
    return subprocess.run(
        ["sh", "-c", f'"$@" {redirection}', "sh", *cli.words(*arguments)],
        cwd=cli.cwd,
        env=cli.environment(),
        capture_output=True,
        encoding="utf-8",
        timeout=TIMEOUT,
        check=False,
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.fault("K02")
@pytest.mark.parametrize("arguments", RESULTS.values(), ids=RESULTS)
@pytest.mark.parametrize("redirection", [">/dev/full", ">&-"])
def test_a_result_that_cannot_be_written_is_an_error(
    player: Cli, redirection: str, arguments: tuple[str, ...]
) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    done = redirected(player, redirection, *arguments)
    assert done.returncode == 1, done
    assert done.stderr.startswith("cantle: the output could not be written: "), done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.fault("K02")
@pytest.mark.parametrize("arguments", RESULTS.values(), ids=RESULTS)
def test_nobody_reads_the_result(player: Cli, arguments: tuple[str, ...]) -> None:
    with player.started(*arguments, stdin=subprocess.DEVNULL) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=TIMEOUT) == 141


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full", "<&- 2>&-", "<&-"])
def test_a_warning_that_cannot_be_written_costs_nothing(player: Cli, redirection: str) -> None:
    (player.config / "settings.json").write_text('{"defaultTools": ["nope"]}')
    done = redirected(player, redirection, *PLAY)
    assert (done.returncode, done.stdout) == (0, "hello\n")


@pytest.mark.fault("K04")
@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full"])
@pytest.mark.parametrize(
    ("arguments", "code"), [(("--bogus",), 2), ((), 2), (("--model", "x", "-p", "go"), 1)]
)
def test_an_error_that_cannot_be_written_is_in_the_exit_code(
    player: Cli, redirection: str, arguments: tuple[str, ...], code: int
) -> None:
    done = redirected(player, redirection, *arguments)
    assert (done.returncode, done.stdout) == (code, "")


@pytest.mark.fault("K01")
def test_k01_a_tool_s_output_stays_out_of_stdout_without_a_stderr(player: Cli) -> None:
    call = {"type": "toolCall", "name": "bash", "arguments": {"command": "echo loud > /proc/self/fd/2"}}
    (player.cwd / "hello.json").write_text(json.dumps({"responses": [{"content": [call]}, "hello"]}))
    assert redirected(player, "2>&-", *PLAY).stdout == "hello\n"


def test_a_stdout_that_knows_ascii_only(player: Cli) -> None:
    player.configure("http://127.0.0.1:9/v1", id="naïve")
    player.variables["PYTHONIOENCODING"] = "ascii"
    done = player.run("--list-models")
    assert (done.returncode, done.stderr) == (0, "")
    assert "na\\xefve" in done.stdout


def test_m08_a_server_s_words_do_not_reach_the_terminal_as_commands(player: Cli) -> None:
    failure = {"error": {"status": 400, "message": "bad\x1b]0;title\x07 \x9b2Jnews"}}
    (player.cwd / "hello.json").write_text(json.dumps({"responses": [failure]}))
    done = player.run(*PLAY)
    assert done.returncode == 1
    assert "bad\\x1b]0;title\\x07 \\x9b2Jnews" in done.stderr
