"""Sessions that a person at a terminal chooses, or is asked about."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import pytest

from cantle_ai.messages import UserMessage
from cantle_session.forks import fork_points
from cantle_session.session import Session
from tests.e2e.test_sessions_command import SCRIPT, ask, listed
from tests.support.cli import TIMEOUT, Cli

if sys.platform == "win32":
    pytest.skip("there is no pseudo-terminal module on Windows", allow_module_level=True)

from tests.e2e.test_auth_terminal import at_a_terminal

SCRIPTED = ("--provider", "scripted", "--model", "ok.json")


def folder(cli: Cli, path: Path) -> Cli:
    """Another folder of the same user, with a model in it."""
    path.mkdir(exist_ok=True)
    (path / "ok.json").write_text(json.dumps(SCRIPT), encoding="utf-8")
    return Cli(cli.home, path, {"COLUMNS": "100"})


@pytest.fixture
def cli(cli: Cli) -> Cli:
    """A folder with a session about bees, and a later one about ants."""
    cli = folder(cli, cli.cwd)
    for text in ("About bees.", "About ants."):
        ask(cli, text)
    return cli


def questions(file: str) -> list[str]:
    """What the user said in a session."""
    with Session.open(file) as session:
        return [message.text for message in session.context().messages if isinstance(message, UserMessage)]


def location(cli: Cli, text: str) -> str:
    (found,) = [session for session in listed(cli, "--all") if session["firstMessage"] == text]
    return str(found["location"])


@pytest.mark.parity("cli.resume")
def test_a_session_is_chosen_by_its_number(cli: Cli) -> None:
    with at_a_terminal(cli, *SCRIPTED, "--resume", "Go on.") as screen:
        screen.until(r"1 .*About ants\.\n *2 .*About bees\.\n")
        screen.until("Number of the session, or words to look for, a for those of all folders: ")
        screen.type("2")
        assert screen.end() == 0 and screen.text.endswith("OK.\n")
    assert questions(location(cli, "About bees.")) == ["About bees.", "Go on."]
    assert questions(location(cli, "About ants.")) == ["About ants."]


def test_a_chosen_session_goes_on_from_an_earlier_entry(cli: Cli) -> None:
    with Session.open(location(cli, "About bees."), reading=True) as session:
        (said,) = [entry.id for entry in session.path() if "About bees." in str(entry.to_json())]
    with at_a_terminal(cli, *SCRIPTED, "--resume", "--at", said, "About wasps.") as screen:
        screen.until("folders: ")
        screen.type("2")
        assert screen.end() == 0 and screen.text.endswith("OK.\n")
    assert questions(location(cli, "About bees.")) == ["About wasps."]


def test_words_narrow_the_list(cli: Cli) -> None:
    with at_a_terminal(cli, *SCRIPTED, "-r", "Go on.") as screen:
        screen.until("folders: ")
        screen.type("wasps")
        screen.until(r'No session fits "wasps"\.(.|\n)*folders: ')
        screen.text = ""
        screen.type("about BEES")
        screen.until("folders: ")
        assert "bees." in screen.text and "ants." not in screen.text
        screen.type("1")
        assert screen.end() == 0
    assert questions(location(cli, "About bees.")) == ["About bees.", "Go on."]


@pytest.mark.parametrize("start", ["a folder with sessions", "a folder without"])
def test_a_session_of_another_folder_goes_on_there(cli: Cli, tmp_path: Path, start: str) -> None:
    other = folder(cli, tmp_path / "other")
    if start == "a folder with sessions":
        ask(other, "About wasps.")
    with at_a_terminal(other, *SCRIPTED, "-r", "Go on.") as screen:
        screen.until("words to look for.*: ")
        if start == "a folder with sessions":
            screen.text = ""
            screen.type("a")
        screen.until(r"[0-9] .* \S*/work +About bees(.|\n)*words to look for: ")
        screen.text = ""
        screen.type("bees")
        screen.until("words to look for: ")
        screen.type("1")
        assert screen.end() == 0
    assert questions(location(cli, "About bees.")) == ["About bees.", "Go on."]


def test_nothing_is_chosen(cli: Cli) -> None:
    with at_a_terminal(cli, *SCRIPTED, "-r", "Go on.") as screen:
        screen.until("folders: ")
        screen.type("")
        assert screen.end() == 1 and screen.text.endswith("cantle: no session was chosen.\n")
    with at_a_terminal(cli, *SCRIPTED, "-r", "Go on.") as screen:
        screen.until("folders: ")
        screen.type("\x04")
        assert screen.end() == 1


def test_ctrl_c_leaves_the_list(cli: Cli) -> None:
    with at_a_terminal(cli, *SCRIPTED, "-r", "Go on.") as screen:
        screen.until("folders: ")
        assert screen.process.poll() is None
        screen.process.send_signal(signal.SIGINT)
        assert screen.process.wait(TIMEOUT) in (130, -signal.SIGINT)


def test_there_is_nothing_to_choose_from(cli: Cli, tmp_path: Path) -> None:
    home = tmp_path / "new home"
    home.mkdir()
    with at_a_terminal(Cli(home, cli.cwd), *SCRIPTED, "-r", "Go on.") as screen:
        assert screen.end() == 1
        assert screen.text == "cantle: there is no session to resume. Start one with a prompt.\n"


@pytest.mark.parity("cli.resume")
def test_without_a_terminal_there_is_nobody_to_ask(cli: Cli) -> None:
    done = cli.run_warm(*SCRIPTED, "--resume", "Go on.")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "cantle: --resume needs a terminal to choose on. Name a session instead: "
        'cantle --session ID "go on"; `cantle sessions list` lists them.\n'
    )


@pytest.mark.parametrize(("answer", "left"), [("y", 1), ("yes", 1), ("n", 2), ("", 2)])
def test_deleting_asks_first(cli: Cli, answer: str, left: int) -> None:
    bees = next(session["id"] for session in listed(cli) if session["firstMessage"] == "About bees.")
    with at_a_terminal(cli, "sessions", "delete", bees) as screen:
        screen.until(r"About bees\.\nDelete this session\? \[y/N\] ")
        screen.type(answer)
        assert screen.end() == (0 if left == 1 else 1)
    assert len(listed(cli)) == left


def test_what_a_session_holds_does_not_command_the_terminal(cli: Cli) -> None:
    text = "Again:\x1b[2J\x1b]0;title\x07\n\tnow\u202e"
    session_id = ask(cli, "Hello", text)
    (session,) = [session for session in listed(cli) if session["id"] == session_id]
    with Session.open(session["location"]) as opened:
        entry_id = fork_points(opened)[-1].entry_id
    with at_a_terminal(cli, "sessions", "fork", session_id, "--before", entry_id) as screen:
        assert screen.end() == 0
    assert screen.text.endswith("\n\nAgain:\\x1b[2J\\x1b]0;title\\x07\n\tnow\\u202e\n")
    assert cli.run_warm("sessions", "fork", session_id, "--before", entry_id).stdout.endswith(f"\n\n{text}\n")
