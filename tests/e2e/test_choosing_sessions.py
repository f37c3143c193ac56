"""`--fork`, `--session-id` and `--session`: which session a run goes on with, and what a wrong choice says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cantle_ai.messages import UserMessage
from cantle_session.entries import MessageEntry
from cantle_session.session import Session
from tests.e2e.test_sessions_command import SCRIPT
from tests.support.cli import Cli
from tests.support.samples import samples

SCRIPTED = ("--provider", "scripted", "--model", "ok.json")


@pytest.fixture
def cli(cli: Cli) -> Cli:
    return folder(cli, cli.cwd)


def folder(cli: Cli, path: Path) -> Cli:
    """Another folder of the same user, with a model in it."""
    path.mkdir(exist_ok=True)
    (path / "ok.json").write_text(json.dumps(SCRIPT), encoding="utf-8")
    return Cli(cli.home, path)


def ask(cli: Cli, *arguments: str) -> None:
    done = cli.run_warm(*SCRIPTED, *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (0, "OK.\n", "")


def refused(cli: Cli, *arguments: str, says: str, code: int = 1) -> None:
    before = {path: path.read_bytes() for path in cli.sessions()}
    done = cli.run_warm(*SCRIPTED, *arguments, "-p", "Go on.")
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.count("\n") == 1 and says in done.stderr, done.stderr
    assert {path: path.read_bytes() for path in cli.sessions()} == before


def asked(path: Path) -> list[str]:
    """The user's messages in the order of the file."""
    with Session.open(path, reading=True) as session:
        messages = [entry.message for entry in session.entries() if isinstance(entry, MessageEntry)]
    return [message.text for message in messages if isinstance(message, UserMessage)]


@pytest.mark.parity("cli.session-id", "sessions.fork")
def test_a_fork_goes_on_in_a_new_session_of_this_folder(cli: Cli, tmp_path: Path) -> None:
    ask(cli, "-p", "Begin.")
    (original,) = cli.sessions()
    content = original.read_bytes()
    other = folder(cli, tmp_path / "other")
    ask(other, "--fork", original.stem.partition("_")[2][:13], "--session-id", "my-fork", "-p", "Go on.")
    (fork,) = set(cli.sessions()) - {original}
    assert original.read_bytes() == content
    assert asked(fork) == ["Begin.", "Go on."]
    with Session.open(fork, reading=True) as session:
        assert (session.id, session.header.cwd) == ("my-fork", str(other.cwd))
        assert session.header.parent_session == str(original)
    ask(other, "-c", "-p", "And on.")
    assert asked(fork) == ["Begin.", "Go on.", "And on."]


def test_a_fork_has_an_id_of_its_own_and_keeps_all_branches(cli: Cli) -> None:
    ask(cli, "-p", "Begin.", "Left.")
    (original,) = cli.sessions()
    with Session.open(original) as session:
        session.branch(session.entries()[2].id)
        session.append_message(UserMessage("Right."))
    ask(cli, "--fork", str(original), "-p", "Go on.")
    (fork,) = set(cli.sessions()) - {original}
    assert asked(fork) == ["Begin.", "Left.", "Right.", "Go on."]


@pytest.mark.parity("cli.session-id")
def test_a_session_with_a_chosen_id_is_begun_and_then_gone_on_with(cli: Cli) -> None:
    ask(cli, "--session-id", "task-1", "-p", "Begin.")
    ask(cli, "--session-id", "task-1", "-p", "Go on.")
    ask(cli, "--session-id", "task", "-p", "Another one.")
    first, second = cli.sessions()
    assert first.stem.endswith("_task-1") and asked(first) == ["Begin.", "Go on."]
    assert second.stem.endswith("_task") and asked(second) == ["Another one."]


def test_the_same_id_in_another_folder_is_another_session(cli: Cli, tmp_path: Path) -> None:
    ask(cli, "--session-id", "task", "-p", "Begin.")
    ask(folder(cli, tmp_path / "other"), "--session-id", "task", "-p", "Elsewhere.")
    assert sorted(asked(path) for path in cli.sessions()) == [["Begin."], ["Elsewhere."]]


def test_an_id_of_a_session_that_is_not_kept(cli: Cli) -> None:
    ask(cli, "--session-id", "task", "--no-session", "-p", "Begin.")
    assert cli.sessions() == []


@pytest.mark.parity("cli.session-elsewhere")
def test_the_id_of_another_folders_session_says_how_to_go_on(cli: Cli, tmp_path: Path) -> None:
    ask(cli, "--session-id", "task", "-p", "Begin.")
    (file,) = cli.sessions()
    other = folder(cli, tmp_path / "other")
    refused(
        other,
        "--session",
        "task",
        says=f"the session task belongs to {cli.cwd}. Go on with it there, give its file",
    )
    refused(other, "--session", "task", says=f"--fork: {file}")
    ask(other, "--fork", "task", "-p", "Go on.")
    assert asked(file) == ["Begin."]


def test_what_cannot_be_forked(cli: Cli) -> None:
    ask(cli, "--session-id", "task", "-p", "Begin.")
    (cli.cwd / "notes.jsonl").write_text("notes\n", encoding="utf-8")
    refused(cli, "--fork", "nothing", says="no session whose id begins with 'nothing'")
    refused(cli, "--fork", "gone.jsonl", says="there is no session file gone.jsonl")
    refused(cli, "--fork", "notes.jsonl", says="notes.jsonl")
    refused(cli, "--fork", "task", "--session-id", "task", says="the session task is there already")
    refused(cli, "--fork", "task", "--session-id", "no/slash", says="cannot be a session id")
    refused(cli, "--session-id", ".hidden", says="cannot be a session id")
    refused(cli, "--session-id", "", says="--session-id needs a name")


EXCLUDING = [
    (one, other)
    for group in (
        (["-c"], ["-r"], ["--session", "x"], ["--fork", "x"], ["--no-session"]),
        (["-c"], ["-r"], ["--session", "x"], ["--session-id", "x"]),
    )
    for place, one in enumerate(group)
    for other in group[place + 1 :]
]


@pytest.mark.parity("cli.one-session")
@pytest.mark.parametrize(
    ("one", "other"), EXCLUDING[: samples(len(EXCLUDING), 4)], ids=lambda words: words[0]
)
def test_options_that_exclude_each_other(cli: Cli, one: list[str], other: list[str]) -> None:
    refused(cli, *one, *other, says="exclude each other", code=2)


def test_a_session_in_a_database_goes_on(cli: Cli) -> None:
    place = ("--session-dir", f"sqlite:{cli.cwd / 'sessions.db'}")
    ask(cli, *place, "--session-id", "task", "-p", "Begin.")
    ask(cli, *place, "-c", "-p", "Go on.")
    ask(cli, *place, "--session", "tas", "-p", "And on.")
    ask(cli, *place, "--fork", "task", "--session-id", "copy", "-p", "Otherwise.")
    listed = json.loads(cli.run_warm("sessions", "list", "--json", *place).stdout)
    assert [session["id"] for session in listed] == ["copy", "task"]
    assert listed[1]["location"] == f"{place[1]}#task"
    with Session.open(listed[1]["location"]) as session:
        messages = session.context().messages
        asked_there = [message.text for message in messages if isinstance(message, UserMessage)]
        assert asked_there == ["Begin.", "Go on.", "And on."]
    assert cli.sessions() == []


def test_a_failure_says_how_to_go_on_with_the_session(cli: Cli) -> None:
    failing = {"responses": [{"stopReason": "length", "content": "Cut", "repeat": "forever"}]}
    (cli.cwd / "ok.json").write_text(json.dumps(failing), encoding="utf-8")
    done = cli.run_warm(*SCRIPTED, "--session-id", "task", "-p", "Begin.")
    assert done.returncode == 1
    assert done.stderr.endswith('. `cantle --session-id task "go on"` continues.\n')


# --- from an earlier entry


def branched(cli: Cli) -> tuple[Path, list[MessageEntry]]:
    """A session of two questions and their answers."""
    ask(cli, "--session-id", "task", "-p", "Begin.", "Go on.")
    (file,) = cli.sessions()
    with Session.open(file, reading=True) as session:
        return file, [entry for entry in session.entries() if isinstance(entry, MessageEntry)]


def path_of(file: Path) -> list[str]:
    """What was said on the branch where the session stands."""
    with Session.open(file, reading=True) as session:
        return [message.text for message in session.context().messages]


@pytest.mark.parametrize("way", [["-c"], ["--session", "task"]])
def test_a_run_goes_on_from_an_earlier_entry(cli: Cli, way: list[str]) -> None:
    file, (_, answer, _, _) = branched(cli)
    content = file.read_bytes()
    ask(cli, *way, "--at", answer.id, "-p", "Another way.")
    assert file.read_bytes().startswith(content)
    assert path_of(file) == ["Begin.", "OK.", "Another way.", "OK."]
    ask(cli, "-c", "-p", "And on.")
    assert path_of(file)[2:] == ["Another way.", "OK.", "And on.", "OK."]
    assert asked(file) == ["Begin.", "Go on.", "Another way.", "And on."]


def test_from_what_the_user_said_it_goes_on_before_it(cli: Cli) -> None:
    file, (first, _, second, _) = branched(cli)
    ask(cli, "-c", "--at", second.id[:7], "-p", "Another way.")
    assert path_of(file) == ["Begin.", "OK.", "Another way.", "OK."]
    ask(cli, "-c", "--at", first.id, "-p", "From the start.")
    assert path_of(file) == ["From the start.", "OK."]


def test_an_entry_that_is_none_or_several_is_named(cli: Cli) -> None:
    file, (*_, last) = branched(cli)
    more = [{"type": "custom", "id": f"zz{n}", "parentId": last.id, "customType": "x"} for n in range(6)]
    with file.open("a", encoding="utf-8") as end:
        end.writelines(json.dumps(line) + "\n" for line in more)
    refused(
        cli, "-c", "--at", "yy", says='the session task has no entry "yy". `cantle sessions show --tree task`'
    )
    refused(cli, "-c", "--at", "", says="--at needs the id of an entry")
    says = '"zz" fits 6 entries of the session task: zz0, zz1, zz2, zz3, zz4, …. Give more of the id.'
    refused(cli, "--session", "task", "--at", "zz", says=says)


def test_an_entry_needs_the_session_that_it_is_in(cli: Cli) -> None:
    for way in ([], ["--session-id", "task"], ["--fork", "task"], ["--no-session"]):
        refused(cli, *way, "--at", "abc", says="add --continue, --resume or --session", code=2)
    refused(cli, "-c", "--at", "abc", says="there is no earlier session in ")
    assert cli.sessions() == []
