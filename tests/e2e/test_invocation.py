"""What the words, files and pipes of a command line come to, and how a run's end is told."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path
from typing import Any, cast

import pytest

from cantle_ai.messages import UserMessage
from cantle_ai.testing.server.received import Received
from cantle_ai.testing.server.server import StrictServer
from cantle_session.session import Session
from tests.support.cli import Cli

OPTIONS = ("--provider", "loop", "--model", "m")


def last_user_text(received: Received) -> str:
    """The text of the request's last message, which is the user's."""
    return "\n".join(block["text"] for block in last_user_blocks(received) if block["type"] == "text")


def last_user_blocks(received: Received) -> list[dict[str, Any]]:
    message = cast("list[dict[str, Any]]", received.json["messages"])[-1]
    assert message["role"] == "user"
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def asked(cli: Cli, *arguments: str, stdin: str | bytes = "") -> str:
    """What the model is asked by a run with these arguments."""
    with StrictServer(["ok"]) as server:
        cli.configure(server.base_url)
        done = cli.run(*OPTIONS, *arguments, stdin=stdin)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ok\n", "")
    server.assert_clean()
    return last_user_text(server.requests[0])


@pytest.mark.parity("cli.prompt")
def test_a_prompt(cli: Cli) -> None:
    assert asked(cli, "-p", "look around") == "look around"
    assert asked(cli, "look around") == "look around"


@pytest.mark.parity("cli.no-context-files")
def test_instructions_of_a_folder_are_not_read_where_they_are_not_wanted(cli: Cli) -> None:
    for name in ("AGENTS.md", "CLAUDE.md"):
        (cli.cwd / name).write_text(f"Words of {name}.", encoding="utf-8")
    with StrictServer(["ok", "ok", "ok"], prefix=False) as server:
        cli.configure(server.base_url)
        for option in ((), ("-nc",), ("--no-context-files",)):
            assert cli.run(*OPTIONS, *option, "-p", "Hi").returncode == 0
    told = ["Words of" in str(received.json) for received in server.requests]
    assert told == [True, False, False]


@pytest.mark.fault("K04")
@pytest.mark.parity("cli.piped-stdin")
def test_k04_piped_stdin_comes_before_the_prompt(cli: Cli) -> None:
    assert asked(cli, "-p", "review this", stdin="a diff\n") == "a diff\n\nreview this"
    assert asked(cli, "-p", stdin="only a diff") == "only a diff"


@pytest.mark.fault("K04")
@pytest.mark.parity("cli.double-dash")
def test_k04_two_dashes_end_the_options(cli: Cli) -> None:
    assert asked(cli, "-p", "--", "--help") == "--help"
    assert asked(cli, "--", "@not-a-file") == "@not-a-file"


@pytest.mark.parametrize("words", [("install", "x"), ("list",), ("mcp", "--help")])
def test_a_command_of_pi_s_is_not_taken_for_a_prompt(cli: Cli, words: tuple[str, ...]) -> None:
    refused = cli.run(*words)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == (
        f"cantle: there is no command {words[0]}. "
        f"If you mean it as a prompt, put -- before it: cantle -- {words[0]} …\n"
    )
    assert "no command" not in cli.run("--", *words).stderr


@pytest.mark.parity("cli.at-file")
def test_files_are_put_before_the_prompt(cli: Cli) -> None:
    (cli.cwd / "notes.md").write_bytes("caf\xe9".encode("latin-1"))
    assert (
        asked(cli, "-p", "@notes.md", "sum up") == f'<file name="{cli.cwd}/notes.md">\ncafé\n</file>\nsum up'
    )


def test_a_lone_at_sign_is_a_word(cli: Cli) -> None:
    assert asked(cli, "-p", "@") == "@"


def test_piped_text_may_be_of_any_encoding(cli: Cli) -> None:
    assert asked(cli, "-p", stdin="caf\xe9".encode("latin-1")) == "café"
    assert asked(cli, "-p", stdin="café".encode("utf-16")) == "café"


def test_an_image_file_is_shown_to_a_model_that_has_eyes(cli: Cli) -> None:
    (cli.cwd / "dot.png").write_bytes(png())
    with StrictServer(["a dot"]) as server:
        cli.configure(server.base_url, input=["text", "image"])
        done = cli.run(*OPTIONS, "-p", "@dot.png", "what is it?")
    assert (done.returncode, done.stdout) == (0, "a dot\n"), done.stderr
    server.assert_clean()
    kinds = [block["type"] for block in last_user_blocks(server.requests[0])]
    assert kinds == ["text", "image_url"]


def png() -> bytes:
    """One black pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(b"\0\0")) + chunk(b"IEND", b"")


@pytest.mark.parity("cli.several-prompts")
def test_several_prompts_run_one_after_another(cli: Cli) -> None:
    with StrictServer(["one", "two"]) as server:
        cli.configure(server.base_url)
        done = cli.run(*OPTIONS, "-p", "first", "second")
    assert (done.returncode, done.stdout) == (0, "two\n")
    server.assert_clean()
    assert [last_user_text(request) for request in server.requests] == ["first", "second"]


@pytest.mark.fault("K04")
def test_the_first_failure_ends_several_prompts(cli: Cli) -> None:
    with StrictServer([{"error": {"status": 400, "message": "no"}}, "unreached"]) as server:
        cli.configure(server.base_url)
        done = cli.run(*OPTIONS, "-p", "first", "second")
    assert (done.returncode, done.stdout, len(server.requests)) == (1, "", 1)


@pytest.mark.fault("K04")
@pytest.mark.parity("sessions.cut-answer")
@pytest.mark.parity("cli.failed-run")
def test_k04_an_answer_cut_at_the_limit_fails_and_is_still_printed(cli: Cli) -> None:
    with StrictServer([{"content": "half an ans", "stopReason": "length"}]) as server:
        cli.configure(server.base_url)
        done = cli.run(*OPTIONS, "-p", "go")
    assert (done.returncode, done.stdout) == (1, "half an ans\n")
    assert "output limit" in done.stderr


@pytest.mark.fault("K04")
@pytest.mark.parity("cli.failed-run")
@pytest.mark.parametrize("mode", ["text", "json"])
def test_k04_an_error_fails(cli: Cli, mode: str) -> None:
    with StrictServer([{"error": {"status": 401, "message": "Incorrect API key"}}]) as server:
        cli.configure(server.base_url)
        done = cli.run(*OPTIONS, "--mode", mode, "-p", "go")
    assert done.returncode == 1
    assert "Incorrect API key" in done.stderr
    assert "sk-loop" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        ([], 'cantle -c "go on"'),
        (["--session-dir", "my sessions"], "cantle --session-dir 'my sessions' -c \"go on\""),
        (["--session", "kept.jsonl"], 'cantle --session kept.jsonl "go on"'),
        (["--no-session"], ""),
    ],
)
@pytest.mark.parametrize("failure", [{"error": {"status": 503, "message": "busy"}}, {"stopReason": "length"}])
def test_the_advice_after_a_failure_names_the_command_that_goes_on(
    cli: Cli, failure: dict[str, Any], arguments: list[str], command: str
) -> None:
    (cli.config / "settings.json").write_text('{"retry": {"enabled": false}}')
    with Session.create(cli.cwd, cli.cwd) as session:
        session.append_message(UserMessage("Hello"))
        assert session.file is not None
        session.file.rename(cli.cwd / "kept.jsonl")
    with StrictServer([{"content": "half", **failure} if "error" not in failure else failure]) as server:
        cli.configure(server.base_url)
        done = cli.run(*OPTIONS, *arguments, "-p", "go")
    assert done.returncode == 1
    if command:
        assert f"`{command}` continues." in done.stderr
    else:
        assert "continues" not in done.stderr
        assert done.stderr.endswith(("Try again later.\n", "Ask for a shorter one.\n"))


def test_a_failure_that_may_pass_is_tried_again_and_said(cli: Cli) -> None:
    (cli.config / "settings.json").write_text('{"retry": {"baseDelayMs": 10}}')
    overloaded = {"error": {"status": 529, "message": "overloaded"}}
    with StrictServer([overloaded, overloaded, "here"]) as server:
        cli.configure(server.base_url)
        done = cli.run(*OPTIONS, "-p", "go")
    assert (done.returncode, done.stdout, len(server.requests)) == (0, "here\n", 3)
    said = done.stderr.splitlines()
    assert len(said) == 2
    assert "overloaded" in said[0] and "(1 of 3)" in said[0] and "(2 of 3)" in said[1]


@pytest.mark.parity("cli.continue")
def test_continue_goes_on_with_the_last_session_here(cli: Cli) -> None:
    with StrictServer(["hello", "again"]) as server:
        cli.configure(server.base_url)
        assert cli.run(*OPTIONS, "-p", "first").returncode == 0
        done = cli.run("-c", "-p", "second")
    assert (done.returncode, done.stdout, done.stderr) == (0, "again\n", "")
    assert len(cli.sessions()) == 1
    messages = cast("list[dict[str, Any]]", server.requests[1].json["messages"])
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user"]


def test_continue_without_an_earlier_session_starts_one_and_says_so(cli: Cli) -> None:
    with StrictServer(["hello"]) as server:
        cli.configure(server.base_url)
        done = cli.run("-c", *OPTIONS, "-p", "first")
    assert (done.returncode, done.stdout) == (0, "hello\n")
    assert "no earlier session" in done.stderr


@pytest.mark.parity("cli.session")
def test_a_session_is_continued_by_id_and_by_file_in_its_own_folder(cli: Cli, tmp_path: Path) -> None:
    other = Cli(cli.home, tmp_path / "elsewhere")
    other.cwd.mkdir()
    call = {"type": "toolCall", "name": "bash", "arguments": {"command": "pwd"}}
    with StrictServer(["hello", "by id", {"content": [call]}, "by file"]) as server:
        cli.configure(server.base_url)
        assert cli.run(*OPTIONS, "-p", "first").returncode == 0
        (file,) = cli.sessions()
        session_id = json.loads(file.read_text("utf-8").split("\n")[0])["id"]
        assert cli.run("--session", session_id[:13], "-p", "second").stdout == "by id\n"
        assert other.run("--session", str(file), "-p", "third").stdout == "by file\n"
        refused = other.run("--session", session_id, "-p", "fourth")
    assert (refused.returncode, len(server.requests)) == (1, 4)
    assert str(cli.cwd) in refused.stderr
    results = cast("list[dict[str, Any]]", server.requests[3].json["messages"])
    assert results[-1]["content"].strip() == str(cli.cwd)


def test_no_session_leaves_no_file(cli: Cli) -> None:
    with StrictServer(["hello"]) as server:
        cli.configure(server.base_url)
        assert cli.run(*OPTIONS, "--no-session", "-p", "go").returncode == 0
    assert cli.sessions() == []


@pytest.mark.parity("cli.session-dir")
def test_session_dir_holds_the_files_itself(cli: Cli) -> None:
    with StrictServer(["hello", "again"]) as server:
        cli.configure(server.base_url)
        assert cli.run(*OPTIONS, "--session-dir", "kept", "-p", "go").returncode == 0
        assert cli.run("-c", "--session-dir", "kept", "-p", "go").stdout == "again\n"
    assert len(list((cli.cwd / "kept").glob("*.jsonl"))) == 1


def test_a_name_is_kept_in_the_session(cli: Cli) -> None:
    with StrictServer(["hello"]) as server:
        cli.configure(server.base_url)
        assert cli.run(*OPTIONS, "--name", "my  work", "-p", "go").returncode == 0
    (file,) = cli.sessions()
    entries = [json.loads(line) for line in file.read_text("utf-8").split("\n")[:-1]]
    assert [entry["name"] for entry in entries if entry["type"] == "session_info"] == ["my work"]


@pytest.mark.parity("tools.selection")
def test_tools_are_chosen_by_name(cli: Cli) -> None:
    def tools(*arguments: str) -> list[str]:
        with StrictServer(["ok"]) as server:
            cli.configure(server.base_url)
            assert cli.run(*OPTIONS, *arguments, "-p", "go").returncode == 0
        listed = cast("list[dict[str, Any]]", server.requests[0].json.get("tools", []))
        return [tool["function"]["name"] for tool in listed]

    assert tools() == ["read", "bash", "edit", "write"]
    assert tools("--tools", "read,edit") == ["read", "edit"]
    assert tools("--tools", "-write") == ["read", "bash", "edit"]
    assert tools("--exclude-tools", "*e*") == ["bash"]
    assert tools("--exclude-tools", "w*") == ["read", "bash", "edit"]
    assert tools("--no-tools") == []


def test_a_system_prompt_of_one_s_own(cli: Cli) -> None:
    (cli.cwd / "extra.md").write_text("Answer in verse.")
    with StrictServer(["ok"]) as server:
        cli.configure(server.base_url)
        words = ("--system-prompt", "You are a poet.", "--append-system-prompt", "extra.md")
        assert cli.run(*OPTIONS, *words, "-p", "go").returncode == 0
    system = cast("list[dict[str, Any]]", server.requests[0].json["messages"])[0]["content"]
    assert system.startswith("You are a poet.\n\nAnswer in verse.\n\n")


def test_commands_see_the_session_s_variables(cli: Cli) -> None:
    command = 'echo "$CANTLE_PROVIDER/$CANTLE_MODEL $CANTLE_REASONING_LEVEL $CANTLE_SESSION_FILE $AI_AGENT"'
    call = {"type": "toolCall", "name": "bash", "arguments": {"command": command}}
    with StrictServer([{"content": [call]}, "ok"]) as server:
        cli.configure(server.base_url)
        assert cli.run(*OPTIONS, "-p", "go").returncode == 0
    (file,) = cli.sessions()
    result = cast("list[dict[str, Any]]", server.requests[1].json["messages"])[-1]
    assert result["content"].strip() == f"loop/m off {file} cantle"


@pytest.mark.parity("cli.list-models")
def test_list_models(cli: Cli) -> None:
    cli.configure("http://127.0.0.1:9/v1")
    done = cli.run("--list-models")
    assert done.returncode == 0
    assert done.stdout.splitlines()[1].split() == ["loop", "m", "100K", "4.1K", "no", "no"]
    assert cli.run("--list-models", "zzz").returncode == 1
    assert cli.run("--list-models", "LOOP/[a-m]").stdout.splitlines()[1].split()[:2] == ["loop", "m"]
    assert cli.run("--list-models", "loop/?x").returncode == 1


def test_help_and_version(cli: Cli) -> None:
    assert cli.run("--version").stdout == "0.1.0\n"
    assert cli.run("-v", "-p").stdout == "0.1.0\n"
    shown = cli.run("--help")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "--append-system-prompt" in shown.stdout
    assert cli.run("demo", "--help").stdout.startswith("usage: cantle demo")


def test_the_demo_in_json(cli: Cli) -> None:
    done = cli.run("demo", "--json", "--folder", "here")
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    assert list(report) == [
        "testsBefore",
        "testsAfter",
        "toolCalls",
        "turns",
        "tokens",
        "cost",
        "seconds",
        "folder",
    ]
    assert (report["testsBefore"], report["testsAfter"]) == (
        {"passed": 4, "failed": 3},
        {"passed": 7, "failed": 0},
    )
    assert (report["toolCalls"], report["turns"]) == (6, 6)
    assert report["folder"] == str(cli.cwd / "here" / "project")
