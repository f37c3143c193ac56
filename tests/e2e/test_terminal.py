"""At a terminal, and with sub-commands that other distributions bring."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from cantle_ai.testing.server.server import StrictServer
from tests.support.cli import Cli

OPTIONS = ("--provider", "loop", "--model", "m")


def at_a_terminal(cli: Cli, *arguments: str) -> tuple[int, str]:
    """Run with a pseudo-terminal as stdin, stdout and stderr. Returns the exit code and what was on the screen."""
    if sys.platform == "win32":
        pytest.skip("there is no pseudo-terminal module on Windows")
    import pty

    ours, theirs = pty.openpty()
    screen = b""
    with cli.started(*arguments, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        try:
            while block := os.read(ours, 4096):
                screen += block
        except OSError:  # Linux says so when the last writer is gone
            pass
        code = process.wait(timeout=20)
    os.close(ours)
    return code, screen.decode().replace("\r\n", "\n")


def test_without_a_prompt_it_says_how_to_use_it(cli: Cli) -> None:
    code, screen = at_a_terminal(cli)
    assert code == 2
    assert 'cantle "explain this project"' in screen
    assert screen.count("\n") == 1


def test_a_prompt_at_a_terminal_runs_and_ends(cli: Cli) -> None:
    with StrictServer(["hello there"]) as server:
        cli.configure(server.base_url)
        assert at_a_terminal(cli, *OPTIONS, "say hello") == (0, "hello there\n")


@pytest.fixture
def with_greeter(cli: Cli, tmp_path: Path) -> Cli:
    """An environment in which another distribution brings the sub-commands `greet` and `demo`."""
    site = tmp_path / "site"
    info = site / "greeter-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: greeter\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[cantle.commands]\ngreet = greeter:main\ndemo = greeter:main\n")
    (site / "greeter.py").write_text(
        "def main(arguments):\n    print('greeting', *arguments)\n    return 7\n"
    )
    cli.variables["PYTHONPATH"] = str(site)
    return cli


def test_another_distribution_s_sub_command_runs(with_greeter: Cli) -> None:
    done = with_greeter.run("greet", "--loud", "you")
    assert (done.returncode, done.stdout) == (7, "greeting --loud you\n")


def test_a_built_in_sub_command_comes_first(with_greeter: Cli) -> None:
    assert with_greeter.run("demo", "--help").stdout.startswith("usage: cantle demo")


def test_prompts_of_several_words_or_behind_dashes_are_no_sub_commands(with_greeter: Cli) -> None:
    with StrictServer(["one", "two"]) as server:
        with_greeter.configure(server.base_url)
        assert with_greeter.run(*OPTIONS, "-p", "greet").stdout == "one\n"
        assert with_greeter.run(*OPTIONS, "--", "greet").stdout == "two\n"
