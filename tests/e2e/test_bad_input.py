"""Bad input: one clear sentence on stderr, a next step, a status other than 0, and no file changed."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cantle_ai.testing.server.server import StrictServer
from tests.support.cli import Cli
from tests.support.privileges import bound_by_permissions

OPTIONS = ("--provider", "loop", "--model", "m")


def snapshot(cli: Cli) -> dict[str, bytes]:
    """Every file below both folders."""
    files = [
        path for root in (cli.home, cli.cwd) if root.exists() for path in root.rglob("*") if path.is_file()
    ]
    return {str(path): path.read_bytes() for path in files}


def refused(cli: Cli, *arguments: str, says: str, code: int = 1, stdin: str = "") -> None:
    """The command fails with one line that holds `says`, and leaves every file as it is."""
    before = snapshot(cli)
    done = cli.run(*arguments, stdin=stdin)
    assert done.returncode == code, (done.stdout, done.stderr)
    assert done.stdout == ""
    assert says in done.stderr
    assert done.stderr.startswith("cantle: ")
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.rstrip().endswith((".", "`", "json")), done.stderr
    assert snapshot(cli) == before


@pytest.fixture
def configured(cli: Cli) -> Cli:
    cli.configure("http://127.0.0.1:9/v1")
    return cli


def test_unknown_provider(configured: Cli) -> None:
    refused(configured, "--provider", "nope", "--model", "m", "-p", "go", says="nope")


@pytest.mark.parity("cli.unlisted-model")
def test_unknown_model(configured: Cli) -> None:
    refused(configured, "--model", "no-such-model", "-p", "go", says="no-such-model")


def test_no_key(cli: Cli) -> None:
    refused(cli, "-p", "go", says="OPENAI_API_KEY")


def test_no_key_for_the_model_that_was_asked_for(cli: Cli) -> None:
    refused(cli, "--provider", "openai", "--model", "gpt", "-p", "go", says="OPENAI_API_KEY")


@pytest.mark.parity("config.broken-file")
@pytest.mark.parametrize("name", ["settings.json", "models.json", "auth.json", "trust.json"])
def test_bad_json_in_a_configuration_file_is_named_with_its_place(configured: Cli, name: str) -> None:
    if name == "trust.json":
        (configured.cwd / ".cantle").mkdir()
        (configured.cwd / ".cantle" / "settings.json").write_text("{}")
    (configured.config / name).write_text('{\n  "a": 1,\n  oops\n}')
    refused(configured, *OPTIONS, "-p", "go", says=name)


@pytest.mark.parity("config.broken-file")
def test_a_setting_of_the_wrong_kind_is_named(configured: Cli) -> None:
    (configured.config / "settings.json").write_text('{"retry": {"maxRetries": "many"}}')
    refused(configured, *OPTIONS, "-p", "go", says="retry.maxRetries")


@pytest.mark.parametrize("content", [b"", b"not a session\n", b'{"type":"message"}\n', b"\x00\x01\x02" * 50])
def test_a_foreign_session_file_is_never_overwritten(configured: Cli, content: bytes) -> None:
    file = configured.cwd / "notes.jsonl"
    file.write_bytes(content)
    refused(configured, *OPTIONS, "--session", str(file), "-p", "go", says="notes.jsonl")


@pytest.mark.parity("cli.session-missing-path")
def test_a_session_that_is_not_there(configured: Cli) -> None:
    refused(configured, *OPTIONS, "--session", "gone.jsonl", "-p", "go", says="gone.jsonl")
    refused(configured, *OPTIONS, "--session", "01234567", "-p", "go", says="01234567")


def test_a_folder_as_session(configured: Cli) -> None:
    refused(configured, *OPTIONS, "--session", f"{configured.cwd}/", "-p", "go", says=configured.cwd.name)


def test_the_working_directory_is_gone(configured: Cli) -> None:
    gone = configured.cwd / "gone"
    gone.mkdir()
    python, *words = configured.words(*OPTIONS, "-p", "go")
    script = (
        "import os, subprocess, sys; os.rmdir(os.getcwd()); sys.exit(subprocess.run(sys.argv[1:]).returncode)"
    )
    # -P: Python 3.13 itself fails to start in such a folder when it wants to import from there.
    done = spawn([python, "-c", script, python, "-P", *words], configured, gone)
    assert done.returncode == 1
    assert done.stderr.startswith("cantle: the current working directory no longer exists.")
    assert done.stderr.count("\n") == 1


def test_the_session_s_working_directory_is_gone(cli: Cli) -> None:
    with StrictServer(["hello"]) as server:
        cli.configure(server.base_url)
        assert cli.run(*OPTIONS, "-p", "go").returncode == 0
        (file,) = cli.sessions()
        lines = file.read_text("utf-8").split("\n")
        header = {**json.loads(lines[0]), "cwd": str(cli.cwd / "moved away")}
        copy = cli.cwd / "copy.jsonl"
        copy.write_text("\n".join([json.dumps(header), *lines[1:]]), "utf-8")
        refused(cli, *OPTIONS, "--session", str(copy), "-p", "go", says="moved away")


def test_a_session_without_the_right_to_read(configured: Cli) -> None:
    file = configured.cwd / "secret.jsonl"
    file.write_text(
        '{"type":"session","version":3,"id":"x","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}\n'
    )
    file.chmod(0o000)
    words = bound_by_permissions(configured.words(*OPTIONS, "--session", str(file), "-p", "go"))
    done = spawn(words, configured, configured.cwd)
    assert done.returncode == 1
    assert done.stderr.startswith("cantle: ")
    assert "secret.jsonl" in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr


def spawn(words: list[str], cli: Cli, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, cwd=cwd, env=cli.environment(), capture_output=True, encoding="utf-8", check=False, timeout=50
    )


ANSWERS: list[tuple[str, dict[str, Any], str]] = [
    ("garbage", {"http": {"body": "\x00\x01garbage\n\n"}}, "base URL"),
    (
        "HTML",
        {"http": {"body": "<html><title>Welcome</title></html>", "contentType": "text/html"}},
        "base URL",
    ),
    ("nothing", {"http": {"body": ""}}, "base URL"),
    (
        "half a line",
        {"http": {"body": 'data: {"choices":[{"de', "contentType": "text/event-stream"}},
        "base URL",
    ),
    ("a client error", {"error": {"status": 400, "message": "bad things"}}, "bad things"),
]


@pytest.mark.parametrize(("answer", "says"), [row[1:] for row in ANSWERS], ids=[row[0] for row in ANSWERS])
def test_a_server_that_sends_something_else(cli: Cli, answer: dict[str, Any], says: str) -> None:
    (cli.config / "settings.json").write_text('{"retry": {"enabled": false}}')
    with StrictServer([answer]) as server:
        cli.configure(server.base_url)
        done = cli.run(*OPTIONS, "-p", "go")
    assert (done.returncode, done.stdout) == (1, ""), done
    assert done.stderr.startswith("cantle: ")
    assert done.stderr.count("\n") == 1, done.stderr
    assert says in done.stderr


def test_nobody_listens(configured: Cli) -> None:
    (configured.config / "settings.json").write_text('{"retry": {"enabled": false}}')
    done = configured.run(*OPTIONS, "-p", "go")
    assert done.returncode == 1
    assert "127.0.0.1" in done.stderr
    assert done.stderr.count("\n") == 1


WRONG_CALLS: list[tuple[list[str], str]] = [
    (["--bogus"], "--bogus"),
    (["-Q"], "-Q"),
    (["--mode", "xml", "go"], "xml"),
    (["--thinking", "huge", "go"], "huge"),
    (["--model"], "--model"),
    (["--provider", "scripted", "go"], "--model"),
    (["--list-models", "--api-key", "sk-x"], "--provider"),
    (["-c", "--session", "x", "go"], "--continue"),
    (["-c", "--no-session", "go"], "--no-session"),
    (["-a", "-na", "go"], "--approve"),
    ([], "prompt"),
    (["-p"], "prompt"),
]


@pytest.mark.parity("cli.wrong-call")
@pytest.mark.parametrize(("arguments", "says"), WRONG_CALLS)
def test_a_wrong_call_says_what_is_wrong(configured: Cli, arguments: list[str], says: str) -> None:
    refused(configured, *arguments, says=says, code=2)


def test_a_command_of_another_distribution_that_does_not_load(cli: Cli) -> None:
    installed = cli.cwd / "tricks-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: tricks\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text("[cantle.commands]\njuggle = tricks:juggle\n")
    refused(cli, "juggle", says="the command juggle of tricks does not load: ModuleNotFoundError: No module")
    (cli.cwd / "tricks.py").write_text("raise ValueError('two\\nlines')")
    cli.variables["PYTHONDONTWRITEBYTECODE"] = "1"
    refused(cli, "juggle", says="the command juggle of tricks does not load: ValueError: two lines. Update")


BAD_TOOLS: list[tuple[list[str], str]] = [
    (["--tools", "read,nope"], "nope"),
    (["--tools", "read,+write"], "+write"),
]


@pytest.mark.parity("tools.unknown-name")
@pytest.mark.parametrize(("arguments", "says"), BAD_TOOLS)
def test_a_tool_selection_that_cannot_be(configured: Cli, arguments: list[str], says: str) -> None:
    refused(configured, *OPTIONS, *arguments, "-p", "go", says=says)


BAD_FILES: list[tuple[str, Callable[[Path], object]]] = [
    ("missing.txt", lambda path: None),
    ("folder", lambda path: path.mkdir()),
    ("binary", lambda path: path.write_bytes(b"\x00\x01\x02" * 100)),
]


@pytest.mark.parametrize(("name", "make"), BAD_FILES, ids=[row[0] for row in BAD_FILES])
def test_a_file_that_cannot_be_attached(configured: Cli, name: str, make: Callable[[Path], object]) -> None:
    make(configured.cwd / name)
    refused(configured, *OPTIONS, "-p", f"@{name}", "look", says=name)


def test_a_file_that_is_too_long_is_refused_with_the_limit(configured: Cli) -> None:
    (configured.cwd / "Log").write_bytes(b"word\n" * 250_000)
    refused(
        configured, *OPTIONS, "-p", "@Log", says="@Log has 1.2 MB; a prompt takes at most 1.0 MB of a file"
    )


def test_binary_data_that_is_piped_in(configured: Cli) -> None:
    refused(configured, *OPTIONS, "-p", "look", stdin="\0\1\2" * 100, says="piped in is binary data")


def test_a_line_begins_with_a_small_letter_unless_it_is_a_name(cli: Cli) -> None:
    assert cli.run("-p", "go").stderr.startswith(
        "cantle: no model can be used, because no provider has a key. Set OPENAI_API_KEY"
    )
    assert cli.run("--system-prompt", "x", "@Makefile").stderr.startswith(
        "cantle: there is no file Makefile "
    )
    (cli.config / "settings.json").write_text('{"defaultTools": ["nope"], "retry": {"enabled": false}}')
    failure = {"responses": [{"error": {"status": 401, "message": "Wrong key"}}]}
    (cli.cwd / "fails.json").write_text(json.dumps(failure))
    done = cli.run("--provider", "scripted", "--model", "fails.json", "-p", "go")
    assert [line.split()[1] for line in done.stderr.splitlines()] == ["warning:", "wrong"]


@pytest.mark.parametrize("content", [None, "{", '{"responses": [{"contents": "x"}]}'])
def test_a_script_that_cannot_be_played(configured: Cli, content: str | None) -> None:
    if content is not None:
        (configured.cwd / "script.json").write_text(content)
    refused(configured, "--provider", "scripted", "--model", "script.json", "-p", "go", says="script.json")


def test_the_demo_refuses_a_folder_with_something_in_it(configured: Cli) -> None:
    refused(configured, "demo", "--folder", str(configured.home), says="not empty")
    shutil.rmtree(configured.home)
