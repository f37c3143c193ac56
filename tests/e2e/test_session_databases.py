"""`--session-dir`, `CANTLE_SESSION_DIR` and `sessionDir` with a database, as a user sees it."""

from __future__ import annotations

import json
import re

import pytest

from cantle_session.storage.store import open_store
from tests.support.cli import Cli
from tests.support.postgres import PostgresServer, needs_postgres

SCRIPT = {"responses": [{"content": "OK.", "repeat": "forever"}]}


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=needs_postgres())])
def location(request: pytest.FixtureRequest, cli: Cli) -> str:
    """A database that holds no session."""
    (cli.cwd / "ok.json").write_text(json.dumps(SCRIPT), encoding="utf-8")
    if request.param == "sqlite":
        return f"sqlite:{cli.home / 'sessions.db'}"
    server: PostgresServer = request.getfixturevalue("postgres_server")
    return server.fresh()


def ask(cli: Cli, prompt: str, *options: str) -> None:
    done = cli.run_warm("--provider", "scripted", "--model", "ok.json", *options, "-p", prompt)
    assert (done.returncode, done.stdout, done.stderr) == (0, "OK.\n", "")


def said(cli: Cli, *words: str) -> str:
    done = cli.run_warm("sessions", *words)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def prompts(cli: Cli, session_id: str) -> list[object]:
    shown = [json.loads(line) for line in said(cli, "show", "--json", session_id).splitlines()]
    messages = [line["message"] for line in shown if line["type"] == "message"]
    return [_text(message) for message in messages if message["role"] == "user"]


def _text(message: dict[str, object]) -> object:
    content = message["content"]
    return content if isinstance(content, str) else content[0]["text"]  # type: ignore[index]


@pytest.mark.parametrize("by", ["option", "variable", "setting"])
def test_a_session_lives_in_a_database_from_beginning_to_end(cli: Cli, location: str, by: str) -> None:
    option = ["--session-dir", location] if by == "option" else []
    if by != "option":
        cli.variables["CANTLE_SESSION_DIR"] = location
    if by == "setting":
        del cli.variables["CANTLE_SESSION_DIR"]
        (cli.config / "settings.json").write_text(json.dumps({"sessionDir": location}), encoding="utf-8")
    ask(cli, "First question.", *option, "--session-id", "one", "--name", "Plums")
    ask(cli, "Second question.", *option, "--continue")
    ask(cli, "Third question.", *option, "--session", "one")
    ask(cli, "Elsewhere.", *option, "--session-id", "two")
    cli.variables["CANTLE_SESSION_DIR"] = location  # for the commands below
    assert prompts(cli, "one") == ["First question.", "Second question.", "Third question."]
    listed = json.loads(said(cli, "list", "--json"))
    assert [(info["id"], info["name"]) for info in listed] == [("two", None), ("one", "Plums")]
    found = json.loads(said(cli, "search", "--json", "third"))
    assert [hit["id"] for hit in found] == ["one"]
    said(cli, "rename", "one", "Pears")
    said(cli, "delete", "--yes", "two")
    assert re.search(r"\bone\b.*Pears", said(cli, "list"))
    store = open_store(location)
    assert [info.id for info in store.sessions()] == ["one"]
    store.close()
    assert not (cli.config / "sessions").exists()


def test_sessions_move_between_files_and_a_database(cli: Cli, location: str) -> None:
    ask(cli, "In a file.", "--session-id", "one")
    said(cli, "move", "one", "--to", location)
    assert cli.sessions() == []
    cli.variables["CANTLE_SESSION_DIR"] = location
    ask(cli, "In a database.", "--session", "one")
    assert prompts(cli, "one") == ["In a file.", "In a database."]
    said(cli, "export", "one", "out.jsonl")
    del cli.variables["CANTLE_SESSION_DIR"]
    said(cli, "import", "out.jsonl")
    assert prompts(cli, "one") == ["In a file.", "In a database."]


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("sqlite:", "give a path behind 'sqlite:'"),
        ("sqlite:notes.txt", "not a SQLite database"),
        ("postgresql://ann:s3cret@127.0.0.1:1/notes", "could not be reached"),
    ],
)
@pytest.mark.parametrize("option", ["-p", "-c", "list"])
def test_a_database_that_cannot_be_used_is_named_in_one_sentence(
    cli: Cli, place: str, words: str, option: str
) -> None:
    if place.startswith("postgresql:"):
        pytest.importorskip("psycopg")
    (cli.cwd / "ok.json").write_text(json.dumps(SCRIPT), encoding="utf-8")
    (cli.cwd / "notes.txt").write_text("No database.\n" * 100, encoding="utf-8")
    if option == "list":
        done = cli.run_warm("sessions", "list", "--session-dir", place)
    else:
        more = ["-c", "-p"] if option == "-c" else ["-p"]
        done = cli.run_warm(
            "--provider", "scripted", "--model", "ok.json", "--session-dir", place, *more, "hi"
        )
    assert done.returncode != 0
    assert words in done.stderr
    assert "Traceback" not in done.stderr and "s3cret" not in done.stderr + done.stdout
    assert len(done.stderr.strip().splitlines()) <= 3
    assert (cli.cwd / "notes.txt").read_text(encoding="utf-8") == "No database.\n" * 100


@pytest.mark.parametrize(
    ("words", "address"),
    [
        ("sessions show", "ann:s3cret@127.0.0.1:1/x"),
        ("sessions show #abc", "ann:s3c/ret@127.0.0.1:1/x"),
        ("sessions delete --yes #abc", "ann:s3cret@127.0.0.1:1/x"),
        ("sessions repair #abc", "ann:s3cret@127.0.0.1:1/x"),
        ("sessions import #abc", "ann:s3cret@127.0.0.1:1/x"),
        ("--session -p hi", "ann:s3cret@127.0.0.1:1/x"),
    ],
)
def test_no_command_says_the_password_of_an_address(cli: Cli, words: str, address: str) -> None:
    pytest.importorskip("psycopg")
    location = f"postgresql://{address}"
    given = [f"{location}{word}" if word.startswith("#") else word for word in words.split()]
    if "#" not in words:
        given.insert(2 if given[0] == "sessions" else 1, location)
    done = cli.run_warm(*given)
    assert done.returncode != 0
    assert "postgresql://" in done.stderr
    assert "Traceback" not in done.stderr and "s3c" not in done.stderr + done.stdout


def test_a_session_is_deleted_by_a_location_with_a_password(cli: Cli, location: str) -> None:
    shown = location
    location = location.replace("cantle@", "cantle:s3cret@")
    ask(cli, "hi", "--session-dir", location, "--session-id", "one")
    said_ = said(cli, "delete", "--yes", f"{location}#one")
    assert said_ == f"{shown}#one is gone for good: there is no bin here\n"


def test_a_project_cannot_send_sessions_to_a_server(cli: Cli) -> None:
    (cli.cwd / "ok.json").write_text(json.dumps(SCRIPT), encoding="utf-8")
    (cli.cwd / ".cantle").mkdir()
    settings = {"sessionDir": "postgresql://127.0.0.1:1/theirs"}
    (cli.cwd / ".cantle" / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    ask(cli, "hi", "--approve")
    assert len(cli.sessions()) == 1
    assert len(json.loads(said(cli, "list", "--json"))) == 1


def test_a_relative_database_counts_from_the_working_directory(cli: Cli) -> None:
    (cli.cwd / "ok.json").write_text(json.dumps(SCRIPT), encoding="utf-8")
    ask(cli, "hi", "--session-dir", "sqlite:kept/s.db")
    assert (cli.cwd / "kept" / "s.db").is_file()
    ask(cli, "home", "--session-dir", "sqlite:~/s.db")
    assert (cli.home / "s.db").is_file()
