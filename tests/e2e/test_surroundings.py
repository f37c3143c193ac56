"""Odd surroundings: folders that may not be entered, homes that are not known, names that are no text."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from cantle_ai.testing.server.server import StrictServer
from tests.support.cli import TIMEOUT, Cli
from tests.support.privileges import bound_by_permissions

PLAY = ("--provider", "scripted", "--model", "hello.json", "-p", "go")


@pytest.fixture
def player(cli: Cli) -> Cli:
    (cli.cwd / "hello.json").write_text('{"responses": ["hello"]}')
    return cli


def spawn(words: list[str], cli: Cli, **variables: str | None) -> subprocess.CompletedProcess[str]:
    environment = {**cli.environment(), **{k: v for k, v in variables.items() if v is not None}}
    for name in (name for name, value in variables.items() if value is None):
        del environment[name]
    return subprocess.run(
        words,
        cwd=cli.cwd,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=TIMEOUT,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def assert_one_sentence(done: subprocess.CompletedProcess[str], says: str) -> None:
    assert (done.returncode, done.stdout) == (1, ""), done
    assert done.stderr.startswith("cantle: ")
    assert done.stderr.count("\n") == 1, done.stderr
    assert says in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("--session", "~nobody-here/x.jsonl"),
        ("--session-dir", "~nobody-here"),
        ("-c", "--session-dir", "~nobody-here"),
    ],
)
def test_a_home_folder_that_nobody_has(player: Cli, arguments: tuple[str, ...]) -> None:
    assert_one_sentence(player.run(*arguments, *PLAY), "~nobody-here")
    assert [path.name for path in player.cwd.iterdir()] == ["hello.json"]


def test_a_configuration_folder_in_a_home_that_nobody_has(player: Cli) -> None:
    player.variables["CANTLE_DIR"] = "~nobody-here/cantle"
    assert_one_sentence(player.run(*PLAY), "~nobody-here")
    assert_one_sentence(player.run("--list-models"), "~nobody-here")


@pytest.mark.skipif(sys.platform == "win32", reason="homes are POSIX's here")
def test_no_home_at_all(player: Cli) -> None:
    script = (
        "import os, pwd, sys; pwd.getpwuid = {}.__getitem__; from cantle.cli import main; sys.exit(main())"
    )
    done = spawn([sys.executable, "-c", script, *PLAY], player, HOME=None, CANTLE_DIR=None)
    assert_one_sentence(done, "CANTLE_DIR")


@pytest.mark.parametrize("value", ["a\0b", "\ud800", "~nobody-here/x"])
def test_a_session_folder_that_no_folder_can_be(player: Cli, value: str) -> None:
    settings = json.dumps({"sessionDir": value})
    (player.config / "settings.json").write_text(settings)
    assert_one_sentence(player.run(*PLAY), "")
    (player.config / "settings.json").unlink()
    (player.cwd / ".cantle").mkdir()
    (player.cwd / ".cantle" / "settings.json").write_text(settings)
    done = player.run(*PLAY)
    assert done.stderr.count("\n") == 1, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "text",
    [
        '{"httpIdleTimeoutMs": ' + "9" * 400 + "}",
        '{"retry": {"baseDelayMs": ' + "9" * 400 + "}}",
        "[" * 100_000,
    ],
    ids=["timeout", "delay", "nested"],
)
@pytest.mark.parametrize("name", ["settings.json", "models.json", "auth.json"])
def test_numbers_and_nesting_without_end(player: Cli, name: str, text: str) -> None:
    (player.config / name).write_text(text)
    done = player.run(*PLAY) if name == "settings.json" else player.run("--model", "gpt-5", "-p", "go")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr


def test_a_prompt_longer_than_any_file_name(player: Cli) -> None:
    text = "Be brief. " * 1000
    done = player.run("--system-prompt", text, "--append-system-prompt", text, *PLAY)
    assert (done.returncode, done.stdout, done.stderr) == (0, "hello\n", "")


@pytest.mark.parametrize("arguments", [("\n",), ("", "\n\n")])
def test_a_prompt_of_white_space_is_none(player: Cli, arguments: tuple[str, ...]) -> None:
    done = player.run(*PLAY[:-1], *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is nothing to do" in done.stderr
    done = player.run(*PLAY[:-1], "\n", "real")
    assert (done.returncode, done.stdout, done.stderr) == (0, "hello\n", "")


def closed(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0)
    return folder


@pytest.mark.skipif(sys.platform == "win32", reason="modes are POSIX's")
class TestFoldersThatMayNotBeEntered:
    def test_configuration(self, player: Cli) -> None:
        closed(player.config)
        for arguments in (PLAY, ("-c", *PLAY), ("--list-models",)):
            done = spawn(bound_by_permissions(player.words(*arguments)), player)
            assert_one_sentence(done, "permission denied")

    def test_the_project_s_own(self, player: Cli) -> None:
        closed(player.cwd / ".cantle")
        done = spawn(bound_by_permissions(player.words(*PLAY)), player)
        assert (done.returncode, done.stdout) == (0, "hello\n"), done
        done = spawn(bound_by_permissions(player.words("--approve", *PLAY)), player)
        assert_one_sentence(done, "permission denied")

    def test_the_working_directory(self, player: Cli) -> None:
        work = player.cwd / "closed"
        script = (
            "import os, sys; os.chdir(sys.argv[1]); os.chmod('.', 0); os.execv(sys.argv[2], sys.argv[2:])"
        )
        work.mkdir()
        play = player.words("--provider", "scripted", "--model", str(player.cwd / "hello.json"), "-p", "go")
        done = spawn(bound_by_permissions([sys.executable, "-c", script, str(work), *play]), player)
        assert (done.returncode, done.stdout) == (0, "hello\n"), done

    @pytest.mark.parametrize("option", ["--session", "--system-prompt", "--session-dir"])
    def test_what_an_option_names(self, player: Cli, option: str) -> None:
        inside = closed(player.cwd / "closed") / "x.jsonl"
        done = spawn(bound_by_permissions(player.words(option, str(inside), *PLAY)), player)
        assert "Traceback" not in done.stderr
        if option != "--system-prompt":
            assert_one_sentence(done, "permission denied")


def test_a_relative_configuration_folder_without_a_working_directory(player: Cli) -> None:
    script = "import os, subprocess, sys; os.mkdir('x'); os.chdir('x'); os.rmdir(os.getcwd()); sys.exit(subprocess.run(sys.argv[1:]).returncode)"
    for arguments in (("--list-models",), PLAY):
        python, *words = player.words(*arguments)
        # -P: Python 3.13 itself fails to start in such a folder when it wants to import from there.
        done = spawn([python, "-c", script, python, "-P", *words], player, CANTLE_DIR="here")
        assert_one_sentence(done, "no longer exists")


@pytest.mark.skipif(sys.platform != "linux", reason="names that are no text exist on Linux alone")
def test_names_that_are_no_text(cli: Cli) -> None:
    cli.cwd = Path(os.fsdecode(os.fsencode(cli.cwd) + b"\xff"))
    cli.cwd.mkdir()
    attached = os.fsdecode(b"notes\xfe")
    (cli.cwd / attached).write_text("a note")
    options = ("--provider", "loop", "--model", "m")
    call = {"type": "toolCall", "name": "bash", "arguments": {"command": "echo x > made; ls"}}
    with StrictServer([{"content": [call]}, "hello"]) as server:
        cli.configure(server.base_url)
        done = cli.run(
            *options,
            "--mode",
            "json",
            "--name",
            os.fsdecode(b"n\xfd"),
            "--system-prompt",
            os.fsdecode(b"s\xfc"),
            f"@{attached}",
            os.fsdecode(b"go\xfb"),
        )
        assert (done.returncode, done.stderr) == (0, ""), done
        server.assert_clean()
        for line in done.stdout.split("\n")[:-1]:
            json.loads(line)
    with StrictServer(["going on"]) as server:
        cli.configure(server.base_url)
        assert cli.run(*options, "-c", "-p", "on").stdout == "going on\n"
        server.assert_clean()
        messages = cast("list[dict[str, Any]]", server.requests[0].json["messages"])
        assert messages[-1] == {"role": "user", "content": "on"}


@pytest.mark.fault("F09")
@pytest.mark.parametrize("cwd", ["a\0b", "\ud800", "~nobody-here", "loop/x", "x" * 5000])
def test_f09_a_session_whose_folder_can_be_no_folder(player: Cli, cwd: str) -> None:
    (player.cwd / "loop").symlink_to("loop")
    header = {"type": "session", "version": 3, "id": "x", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": cwd}
    (player.cwd / "s.jsonl").write_text(json.dumps(header) + "\n")
    assert_one_sentence(player.run("--session", "s.jsonl", *PLAY), "")
