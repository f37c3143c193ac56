"""`cantle sessions`: what it lists, finds, shows, copies and changes, as a user sees it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from cantle_ai.content import TextContent
from cantle_ai.messages import AssistantMessage, ToolResultMessage, UserMessage
from cantle_ai.usage import Usage
from cantle_session.folders import session_folder
from cantle_session.messages import BashExecutionMessage
from cantle_session.session import Session
from cantle_session.stamps import milliseconds
from tests.support.cli import TIMEOUT, Cli

SCRIPT = {"responses": [{"content": "OK.", "repeat": "forever"}]}


@pytest.fixture
def cli(cli: Cli) -> Cli:
    """A command line on a terminal that is wide enough for a table."""
    cli.variables.update(COLUMNS="120", TZ="UTC")
    return cli


_clock = count(1_790_000_000_000, 1000)
"""Times of messages: one after the other, however quick the tests are."""


def ask(cli: Cli, *prompts: str, name: str | None = None) -> str:
    """A session of this folder in which these prompts were answered; its id."""
    folder = session_folder(cli.cwd, cli.config / "sessions")
    with Session.create(cli.cwd, folder) as session:
        if name is not None:
            session.append_session_info(name)
        session.append_model_change("scripted", "ok.json")
        session.append_thinking_level_change("medium")
        for prompt in prompts:
            session.append_message(UserMessage(prompt, next(_clock)))
            session.append_message(_answer(next(_clock)))
        return session.id


def _answer(timestamp: int) -> AssistantMessage:
    return AssistantMessage(
        [TextContent("OK.")],
        api="scripted",
        provider="scripted",
        model="ok.json",
        usage=Usage(input=700, output=1, total_tokens=701),
        timestamp=timestamp,
    )


def go_on(cli: Cli, prompt: str) -> None:
    """Another process asks this in the last session."""
    (cli.cwd / "ok.json").write_text(json.dumps(SCRIPT), encoding="utf-8")
    done = cli.run_warm("--provider", "scripted", "--model", "ok.json", "-c", "-p", prompt)
    assert (done.returncode, done.stdout, done.stderr) == (0, "OK.\n", "")


def said(cli: Cli, *arguments: str, code: int = 0) -> str:
    """What `cantle sessions …` prints, where it has nothing to complain about."""
    done = cli.run_warm("sessions", *arguments)
    assert (done.returncode, done.stderr) == (code, ""), done.stderr
    return done.stdout


def refused(cli: Cli, *arguments: str, says: str, code: int = 1) -> None:
    """It fails with one line that says so, and changes nothing."""
    before = {path: path.read_bytes() for path in cli.sessions()}
    done = cli.run_warm("sessions", *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith("cantle: ") and done.stderr.count("\n") == 1, done.stderr
    assert says in done.stderr
    assert {path: path.read_bytes() for path in cli.sessions()} == before


def listed(cli: Cli, *arguments: str) -> list[dict[str, Any]]:
    """The sessions of `list --json`, the latest first."""
    found = json.loads(said(cli, "list", "--json", *arguments))
    assert isinstance(found, list)
    return found


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.split("\n")[:-1]]


# --- list


def test_a_list_has_the_sessions_of_this_folder_the_latest_first(cli: Cli, tmp_path: Path) -> None:
    ask(cli, "Begin.", name="First steps")
    ask(cli, "Another one.")
    other = Cli(cli.home, tmp_path / "other", cli.variables)
    other.cwd.mkdir()
    ask(other, "Elsewhere.")
    head, *rows = said(cli, "list").split("\n")
    assert head.split() == ["id", "last", "message", "size", "name,", "or", "first", "message"]
    assert [row.split("B  ")[1] for row in rows[:-1]] == ["Another one.", "First steps"]
    everywhere = said(cli, "list", "--all")
    assert [row.split()[-1] for row in everywhere.split("\n")[1:-1]] == ["Elsewhere.", "one.", "steps"]
    assert str(other.cwd) in everywhere
    assert len(said(cli, "list", "--all", "--limit", "1").split("\n")) == 3


def test_a_listed_id_is_enough_to_name_its_session(cli: Cli) -> None:
    for text in ("One.", "Two.", "Three."):
        ask(cli, text)
    rows = [row.split() for row in said(cli, "list").split("\n")[1:-1]]
    for row in rows:
        assert row[-1] in said(cli, "show", row[0])


def test_an_id_that_is_shown_fits_no_session_that_is_not(cli: Cli) -> None:
    folder = session_folder(cli.cwd, cli.config / "sessions")
    for session_id in ("same-beginning-1", "same-beginning-2"):
        with Session.create(cli.cwd, folder, session_id=session_id) as session:
            session.append_message(UserMessage(f"I am {session_id}.", next(_clock)))
    for command in (["list", "--limit", "1"], ["search", "--limit", "1", "am"]):
        shown = said(cli, *command).split("\n")[1].split()[0]
        assert said(cli, "show", shown).startswith("session      same-beginning-2\n")


def test_a_list_for_programs_says_where_each_session_is(cli: Cli) -> None:
    ask(cli, "Begin.", name="First steps")
    (file,) = cli.sessions()
    (session,) = listed(cli)
    assert session["id"] == file.stem.partition("_")[2]
    assert (session["name"], session["firstMessage"], session["cwd"]) == (
        "First steps",
        "Begin.",
        str(cli.cwd),
    )
    assert (session["location"], session["size"]) == (str(file), file.stat().st_size)
    *_, last = lines(file.read_text("utf-8"))
    assert milliseconds(session["lastMessageAt"]) == last["message"]["timestamp"]
    assert session["created"] == lines(file.read_text("utf-8"))[0]["timestamp"]


def test_no_session_is_no_failure_of_a_list(cli: Cli) -> None:
    done = cli.run_warm("sessions", "list")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == f"cantle: there is no session of {cli.cwd}; --all lists those of all folders.\n"
    assert listed(cli) == []
    assert cli.run_warm("sessions", "list", "--all").stderr == "cantle: there is no session yet.\n"


def test_what_a_session_holds_cannot_command_a_terminal(cli: Cli) -> None:
    ask(cli, "\x1b[2J gone\x07 \u202eback\nline 2")
    for command in (["list"], ["show"], ["show", "--tree"], ["show", "--context"], ["search", "gone"]):
        text = said(cli, *command)
        assert "gone" in text
        assert not set(text) & {"\x1b", "\x07", "\u202e"}


# --- search


def test_a_search_finds_what_was_said_and_who_said_it(cli: Cli) -> None:
    ask(cli, "Where is the blue kettle?")
    ask(cli, "Where is the spoon?")
    text = said(cli, "search", "kettle", "blue")
    assert "user" in text and "blue kettle" in text and "spoon" not in text
    (hit,) = json.loads(said(cli, "search", "--json", "kettle"))
    (entry,) = [
        line for line in lines(said(cli, "show", "--json", hit["id"])) if line["id"] == hit["entryId"]
    ]
    assert entry["message"]["content"] == "Where is the blue kettle?"
    assert hit["location"] in map(str, cli.sessions())


def test_a_search_that_finds_nothing_says_so(cli: Cli) -> None:
    ask(cli, "Begin.")
    refused(cli, "search", "kettle", says="no session says that; --all looks in those of all folders.")
    assert said(cli, "search", "--json", "kettle", code=1) == "[]\n"


# --- show


def branched(cli: Cli) -> tuple[Session, list[str]]:
    """A session with two branches, standing on the second; the ids of its three questions."""
    ask(cli, "Begin.", "Left.")
    (file,) = cli.sessions()
    session = Session.open(file)
    questions = [
        entry["id"] for entry in lines(said(cli, "show", "--json"))[1:] if "user" in json.dumps(entry)
    ]
    parent = session.parent(questions[1])
    assert parent is not None
    session.branch(parent)
    right = session.append_message(UserMessage("Right."))
    session.append_label(right.id, "the better one")
    return session, [*questions, right.id]


def test_a_session_is_shown_entry_by_entry(cli: Cli) -> None:
    session, (begin, left, right) = branched(cli)
    session.close()
    shown = said(cli, "show", session.id)
    head, _, rows = shown.partition("\n\n")
    assert f"session      {session.id}\nfolder       {cli.cwd}\n" in head
    assert f"{begin}  user            Begin.\n" in rows
    assert f"{right}  user            [the better one] Right.\n" in rows
    assert left not in rows
    assert rows.endswith("\n\n2 entries more are on other branches: --tree shows them.\n")


def test_a_tree_shows_every_branch_and_where_the_session_stands(cli: Cli) -> None:
    session, (begin, left, right) = branched(cli)
    session.close()
    rows = said(cli, "show", "--tree").partition("\n\n")[2]
    assert f"\n{begin}  user" in rows
    assert f"\n  {left}  user            Left.\n" in rows
    assert f"\n  {right}  user            [the better one] Right.\n" in rows
    assert [row for row in rows.split("\n") if " * " in row] == [rows.split("\n")[-2]]


def test_for_programs_a_session_is_its_lines(cli: Cli) -> None:
    session, (_, left, right) = branched(cli)
    session.close()
    (file,) = cli.sessions()
    stored = lines(file.read_text("utf-8"))
    assert lines(said(cli, "show", "--tree", "--json")) == stored
    assert lines(said(cli, "show", "--json")) == [
        line for line in stored if line["id"] not in {left, stored[-3]["id"]}
    ]
    assert right in said(cli, "show", "--json")


def test_a_context_says_what_becomes_of_each_entry_and_what_it_takes(cli: Cli) -> None:
    ask(cli, "Begin.", "Left.")
    (file,) = cli.sessions()
    with Session.open(file) as session:
        first = next(entry for entry in session.entries() if entry.type == "message")
        session.append_context_edit(first.id, None)
    text = said(cli, "show", "--context")
    (row,) = [row for row in text.split("\n") if row.startswith(first.id)]
    assert row.split()[:4] == [first.id, "user", "edited", "out"] and row.endswith("Begin.")
    fates = lines(said(cli, "show", "--context", "--json"))
    sent = [fate for fate in fates if fate["fate"] == "sent"]
    assert len(sent) == 3 and {fate["type"] for fate in sent} == {"message"}
    tokens = sum(fate["tokens"] for fate in sent)
    assert text.endswith(f"\n3 entries of {len(fates)} sent, about {tokens} tokens\n")


def test_a_context_tells_every_fate_apart(cli: Cli) -> None:
    ask(cli, "Old.", "New.")
    (file,) = cli.sessions()
    with Session.open(file) as session:
        ids = [entry.id for entry in session.path() if entry.type == "message"]
        session.append_message(
            BashExecutionMessage(command="ls", output="", exclude_from_context=True, timestamp=next(_clock))
        )
        session.append_context_edit(ids[2], {"content": "Newer."})
        session.append_compaction("It was old.", ids[2], 1000)
        kinds = [entry.type for entry in session.path()]
    fates = {record["id"]: record for record in lines(said(cli, "show", "--context", "--json"))}
    told = [(record["type"], record["fate"], record["tokens"] > 0) for record in fates.values()]
    assert [kind for kind, _, _ in told] == kinds
    assert told == [
        ("model_change", "not sent", False),
        ("thinking_level_change", "not sent", False),
        ("message", "summed up", True),
        ("message", "summed up", True),
        ("message", "replaced", True),
        ("message", "sent", True),
        ("message", "excluded", True),
        ("context_edit", "not sent", False),
        ("compaction", "sent", True),
    ]


def test_following_shows_what_another_process_adds(cli: Cli) -> None:
    ask(cli, "Begin.")
    with cli.started("sessions", "show", "--follow", "--json") as process:
        assert process.stdout is not None and process.stderr is not None
        there = [json.loads(process.stdout.readline()) for _ in range(5)]
        go_on(cli, "And then?")
        come = [json.loads(process.stdout.readline()) for _ in range(2)]
        assert [line["message"]["role"] for line in come] == ["user", "assistant"]
        assert come[0]["parentId"] == there[-1]["id"]
        if sys.platform != "win32":
            process.send_signal(signal.SIGINT)
            assert process.wait(TIMEOUT) == 130
            assert process.stderr.read() == b""


def test_following_ends_when_nobody_reads_any_more(cli: Cli) -> None:
    ask(cli, "Begin.")
    with cli.started("sessions", "show", "--follow") as process:
        assert process.stdout is not None
        while process.stdout.readline().strip():  # the head
            pass
        process.stdout.close()
        go_on(cli, "And then?")
        assert process.wait(TIMEOUT) == 141


def test_showing_a_session_does_not_change_it(cli: Cli) -> None:
    ask(cli, "Begin.")
    (file,) = cli.sessions()
    with file.open("ab") as end:
        end.write(b'{"type":"message","id":"torn')
    before = file.read_bytes()
    shown = cli.run_warm("sessions", "show")
    assert shown.returncode == 0 and "Begin." in shown.stdout
    warning, advice = shown.stderr.splitlines()
    assert warning.startswith("cantle: warning: line 6: ") and "`cantle sessions repair " in advice
    for command in ("stats", "list"):
        cli.run_warm("sessions", command)
    assert file.read_bytes() == before


# --- stats


def test_stats_count_one_session_or_those_of_a_folder(cli: Cli) -> None:
    ask(cli, "Begin.", "Go on.")
    ask(cli, "Another one.")
    latest, first = listed(cli)
    counted = json.loads(said(cli, "stats", "--json", first["id"]))
    assert (counted["sessions"], counted["messages"]) == (1, {"user": 2, "assistant": 2})
    every = json.loads(said(cli, "stats", "--json"))
    assert (every["sessions"], every["messages"]) == (2, {"user": 3, "assistant": 3})
    assert every["usage"]["totalTokens"] > counted["usage"]["totalTokens"] > 0
    assert every["models"]["scripted/ok.json"]["answers"] == 3
    text = said(cli, "stats")
    assert "sessions     2\n" in text and "messages     6 (assistant 3, user 3)\n" in text
    assert f"tokens       {every['usage']['totalTokens']:,} (" in text
    assert latest["id"] != first["id"]


def test_rows_of_stats_add_up(cli: Cli) -> None:
    ask(cli, "Begin.")
    (file,) = cli.sessions()
    with Session.open(file) as session:
        leaf = session.leaf_id
        session.append_compaction("s", None, 9, usage=Usage(input=500, total_tokens=500))
        session.append_branch_summary(leaf, "s", usage=Usage(input=70, total_tokens=70))
        session.append_usage("cache_warm", "p", "m", Usage(input=3, total_tokens=3))
        session.append_message(ToolResultMessage("c", "agent", (), usage=Usage(input=20, total_tokens=20)))
        total = session.usage().total_tokens
    counted = json.loads(said(cli, "stats", "--json"))
    others = {name: usage["totalTokens"] for name, usage in counted["others"].items()}
    assert others == {"summaries": 570, "tools": 20}
    assert counted["models"]["p/m"]["usage"]["totalTokens"] == 3
    shares = sum(share["usage"]["totalTokens"] for share in counted["models"].values())
    assert shares + sum(others.values()) == counted["usage"]["totalTokens"] == total
    _, _, rows = said(cli, "stats").partition("\n\n")
    _, *shown = [line.split() for line in rows.splitlines()]
    figures = {row[0]: int(row[-2].replace(",", "")) for row in shown}
    assert (figures["summaries"], figures["tools"], figures["p/m"]) == (570, 20, 3)
    assert sum(figures.values()) == total


# --- export


def test_an_export_is_never_written_over_something(cli: Cli) -> None:
    ask(cli, "Begin.")
    (cli.cwd / "page.html").write_text("mine", encoding="utf-8")
    refused(cli, "export", listed(cli)[0]["id"], "page.html", says="page.html is there already")
    refused(cli, "export", listed(cli)[0]["id"], "-", says="not to stdout")
    assert not (cli.cwd / "-").exists()
    assert (cli.cwd / "page.html").read_text("utf-8") == "mine"


@pytest.mark.parametrize(("file", "begins"), [("a.jsonl", "{"), ("a.md", "#"), ("a.html", "<!")])
def test_the_ending_of_a_file_says_what_it_is_to_be(cli: Cli, file: str, begins: str) -> None:
    ask(cli, "Begin.")
    session_id = listed(cli)[0]["id"]
    assert said(cli, "export", session_id, file) == f"{file}\n"
    text = (cli.cwd / file).read_text("utf-8")
    assert text.lower().startswith(begins) and "Begin." in text


@pytest.mark.parity("cli.export")
def test_without_a_file_a_page_is_named_after_its_session(cli: Cli) -> None:
    ask(cli, "Begin.")
    session_id = listed(cli)[0]["id"]
    assert said(cli, "export") == f"session-{session_id}.html\n"
    done = cli.run_warm("--export", session_id, "page.html")
    assert (done.returncode, done.stdout, done.stderr) == (0, "page.html\n", "")
    pages = [(cli.cwd / name).read_text("utf-8") for name in ("page.html", f"session-{session_id}.html")]
    assert pages[0] == pages[1]
    assert cli.run_warm("--export", session_id, "one.html", "two.html").returncode == 1


def test_an_ending_that_says_nothing_is_asked_about(cli: Cli) -> None:
    session_id = ask(cli, "Begin.")
    refused(cli, "export", session_id, "page.pdf", says="the ending of page.pdf does not say what to write")
    assert said(cli, "export", session_id, "page.pdf", "--format", "markdown") == "page.pdf\n"
    assert said(cli, "export", session_id, "page") == "page\n"
    assert (cli.cwd / "page").read_text("utf-8").lower().startswith("<!doctype html>")


def test_one_branch_is_exported_as_a_session_that_opens(cli: Cli) -> None:
    session, (_, left, right) = branched(cli)
    session.close()
    said(cli, "export", session.id, "left.jsonl", "--leaf", left)
    with Session.open(cli.cwd / "left.jsonl") as one:
        assert one.leaf_id == left and right not in [entry.id for entry in one.entries()]
    refused(cli, "export", session.id, "x.jsonl", "--leaf", "nothing", says='has no entry "nothing"')


# --- copies


@pytest.mark.parity("sessions.fork")
def test_a_fork_stops_before_a_message_and_gives_its_text(cli: Cli) -> None:
    session, (_, left, _) = branched(cli)
    session.close()
    made = json.loads(said(cli, "fork", session.id, "--before", left, "--session-id", "my-fork", "--json"))
    assert (made["id"], made["text"]) == ("my-fork", "Left.")
    with Session.open(made["location"]) as fork:
        assert fork.leaf_id == session.parent(left)
        assert fork.header.parent_session == session.location
    shown = said(cli, "fork", session.id, "--before", left)
    assert shown.endswith("\n\nLeft.\n")
    assert len(cli.sessions()) == 3


def test_a_fork_of_everything_has_all_branches(cli: Cli) -> None:
    session, ids = branched(cli)
    session.close()
    made = json.loads(said(cli, "fork", "--json"))
    with Session.open(made["location"]) as fork:
        assert [entry.id for entry in fork.entries()] == [entry.id for entry in session_entries(session)]
        assert fork.leaf_id == session.leaf_id and made["text"] is None
    assert set(ids) <= set(map(str, [entry.id for entry in session_entries(session)]))


def session_entries(session: Session) -> list[Any]:
    with Session.open(session.location) as again:
        return again.entries()


def test_a_fork_that_cannot_be_leaves_nothing(cli: Cli) -> None:
    session, (begin, _, _) = branched(cli)
    first = session.entries()[0].id
    session.close()
    refused(cli, "fork", session.id, "--before", "nothing", says='has no entry "nothing"')
    refused(cli, "fork", session.id, "--before", first, says="no message of the user")
    refused(cli, "fork", session.id, "--session-id", "no!", says="cannot be a session id")
    refused(cli, "fork", session.id, "--session-id", session.id, says=session.id)
    assert begin


@pytest.mark.fault("F03")
def test_f03_an_import_never_takes_the_place_of_a_session(cli: Cli, tmp_path: Path) -> None:
    ask(cli, "Begin.")
    (file,) = cli.sessions()
    copy = tmp_path / "sent by mail.jsonl"
    copy.write_bytes(file.read_bytes())
    session_id = listed(cli)[0]["id"]
    refused(cli, "import", str(copy), says=session_id)
    refused(cli, "import", str(copy), says="--new-id keeps the copy beside it.")
    other = Cli(tmp_path / "home 2", cli.cwd, cli.variables)
    other.home.mkdir()
    assert said(other, "import", str(copy)) == f"{session_id}\n"
    (taken,) = other.sessions()
    assert taken.read_bytes() == file.read_bytes() and taken.parent.name == file.parent.name
    new_id = said(cli, "import", "--new-id", str(copy)).strip()
    assert {session["id"] for session in listed(cli)} == {session_id, new_id}


def test_what_is_no_session_is_not_imported(cli: Cli) -> None:
    (cli.cwd / "notes.jsonl").write_text('{"a": 1}\n', encoding="utf-8")
    refused(cli, "import", "notes.jsonl", says="notes.jsonl")
    refused(cli, "import", "gone.jsonl", says="gone.jsonl")
    assert cli.sessions() == []


def test_an_import_can_belong_to_this_folder(cli: Cli, tmp_path: Path) -> None:
    ask(cli, "Begin.")
    (file,) = cli.sessions()
    other = Cli(cli.home, tmp_path / "other", cli.variables)
    other.cwd.mkdir()
    new_id = said(other, "import", "--here", "--new-id", str(file)).strip()
    (taken,) = listed(other)
    assert (taken["id"], taken["cwd"]) == (new_id, str(other.cwd))


def test_a_repair_writes_a_sound_copy_and_leaves_the_original(cli: Cli) -> None:
    ask(cli, "Begin.")
    (file,) = cli.sessions()
    assert said(cli, "repair", str(file)) == f"{file} is sound.\n"
    damaged = file.read_bytes().replace(b"\n", b"\nnonsense\n", 2)
    file.write_bytes(damaged)
    *problems, last = said(cli, "repair", str(file)).split("\n")[:-1]
    assert len(problems) == 2 and problems[0].startswith("line 2: ")
    copy, _, rest = last.partition(": ")
    assert rest == "a sound copy with 4 entries"
    assert file.read_bytes() == damaged
    with Session.open(copy) as session:
        assert session.warnings == [] and len(session.entries()) == 4


# --- changes


def test_a_session_moves_with_its_project(cli: Cli, tmp_path: Path) -> None:
    ask(cli, "Begin.")
    (file,) = cli.sessions()
    session_id = listed(cli)[0]["id"]
    refused(cli, "move", session_id, str(tmp_path / "nowhere"), says="nowhere")
    refused(cli, "move", session_id, says="name a folder, or a place with --to")
    other = Cli(cli.home, tmp_path / "other", cli.variables)
    other.cwd.mkdir()
    moved = Path(said(cli, "move", session_id, str(other.cwd)).rstrip("\n"))
    assert not file.exists() and listed(cli) == []
    (session,) = listed(other)
    assert (session["id"], session["cwd"], session["location"]) == (session_id, str(other.cwd), str(moved))


def test_a_session_moves_into_a_database_and_out_again(cli: Cli) -> None:
    ask(cli, "Begin.")
    (file,) = cli.sessions()
    content = file.read_bytes()
    session_id = listed(cli)[0]["id"]
    place = f"sqlite:{cli.cwd / 'sessions.db'}"
    assert said(cli, "move", session_id, "--to", place) == f"{place}#{session_id}\n"
    assert listed(cli) == [] and not file.exists()
    (session,) = listed(cli, "--session-dir", place)
    assert (session["id"], session["location"]) == (session_id, f"{place}#{session_id}")
    assert "Begin." in said(cli, "show", "--session-dir", place)
    assert "Begin." in said(cli, "show", f"{place}#{session_id}")
    back = Path(said(cli, "move", f"{place}#{session_id}", "--to", str(cli.cwd / "kept")).strip())
    assert back.read_bytes() == content
    assert listed(cli, "--session-dir", place) == []


def test_a_name_is_given_and_taken_away(cli: Cli) -> None:
    ask(cli, "Begin.")
    session_id = listed(cli)[0]["id"]
    assert said(cli, "rename", session_id, "Two\nwords") == ""
    assert listed(cli)[0]["name"] == "Two words"
    said(cli, "rename", session_id, "")
    assert listed(cli)[0]["name"] is None


def test_a_session_is_deleted_when_it_is_meant(cli: Cli) -> None:
    ask(cli, "Begin.")
    ask(cli, "Another one.")
    one, other = (session["id"] for session in listed(cli))
    refused(cli, "delete", one, says="Add --yes.")
    refused(cli, "delete", "--yes", one, "no-such-session", says="no-such-session")
    done = said(cli, "delete", "--yes", one)
    assert "is in the bin" in done or "is gone for good" in done
    assert [session["id"] for session in listed(cli)] == [other]


def test_a_session_that_somebody_has_open_is_not_deleted(cli: Cli) -> None:
    session_id = ask(cli, "Hello")
    (file,) = cli.sessions()
    with Session.open(file) as session:
        refused(
            cli,
            "delete",
            "--yes",
            session_id,
            says="is open, here or in another process, so nothing was deleted",
        )
        session.append_message(UserMessage("I am still here."))
    said(cli, "delete", "--yes", session_id)
    assert cli.sessions() == []


@pytest.mark.parametrize(
    "content", [b"", b"root:x:0:0:root:/root:/bin/sh\n", b'{"type":"message"}\n', b"\0\1"]
)
def test_only_sessions_are_deleted_or_moved(cli: Cli, content: bytes) -> None:
    """Also where the file lies in the folder of the sessions, and where others that are named are sessions."""
    session_id = ask(cli, "Begin.")
    (kept,) = cli.sessions()
    for file in (cli.cwd / "precious", kept.parent / "precious.jsonl"):
        file.write_bytes(content)
        refused(cli, "delete", "--yes", session_id, f"{file.parent}{os.sep}{file.name}", says=file.name)
        refused(cli, "move", f"{file.parent}{os.sep}{file.name}", "--to", "elsewhere", says=file.name)
        assert file.read_bytes() == content
    assert kept.exists()


def test_a_folder_is_never_deleted(cli: Cli) -> None:
    (cli.cwd / "sub").mkdir()
    refused(cli, "delete", "--yes", f"{cli.cwd}{os.sep}sub", says="sub")
    assert (cli.cwd / "sub").is_dir()


# --- what cannot be meant


WRONG: list[tuple[list[str], str]] = [
    ([], "command"),
    (["undo"], "undo"),
    (["list", "--limit", "0"], "whole number"),
    (["show", "--tree", "--context"], "--context"),
    (["search"], "word"),
    (["export", "--format", "pdf"], "pdf"),
]


@pytest.mark.parametrize(("arguments", "says"), WRONG)
def test_a_wrong_call_says_what_is_wrong(cli: Cli, arguments: list[str], says: str) -> None:
    refused(cli, *arguments, says=says, code=2)


@pytest.mark.parametrize("command", ["show", "stats", "export", "fork", "repair", "move", "rename", "delete"])
def test_a_session_that_is_not_there(cli: Cli, command: str) -> None:
    rest = {"move": ["."], "rename": ["Name"], "delete": ["--yes"]}.get(command, [])
    refused(cli, command, "no-such-session", *rest, says="'no-such-session'")
    refused(cli, command, "gone.jsonl", *rest, says="there is no session file gone.jsonl")


PLACES = [
    ("sqlite:", "cantle: sqlite:: it names no file; give a path behind 'sqlite:'.\n"),
    ("sqlite:notes.txt", "it is not a SQLite database"),
    ("", "--session-dir needs a name"),
]


@pytest.mark.parametrize(("place", "says"), PLACES)
def test_a_place_that_is_none(cli: Cli, place: str, says: str) -> None:
    (cli.cwd / "notes.txt").write_text("notes\n" * 1000, encoding="utf-8")
    for command in (["list"], ["search", "x"], ["stats"], ["show", "x"]):
        refused(cli, *command, "--session-dir", place, says=says)


def test_a_session_of_a_database_that_is_not_there(cli: Cli) -> None:
    refused(cli, "show", "sqlite:none.db", says="sqlite:none.db names a place and no session in it")
    refused(cli, "show", "sqlite:none.db#task", says="there is no such session")
    assert listed(cli, "--session-dir", "sqlite:none.db") == []
    assert os.listdir(cli.cwd) == []


def test_nothing_to_look_for(cli: Cli) -> None:
    refused(cli, "search", " ", says="nothing was given to look for")


@pytest.mark.parametrize("command", ["show", "export", "fork"])
def test_a_folder_without_a_session(cli: Cli, command: str) -> None:
    refused(cli, command, says=f"there is no session of {cli.cwd}")


@pytest.mark.parametrize("content", [b"", b"\0" * 100, b"not a session\n", b'{"type":"message"}\n'])
def test_a_file_that_is_no_session(cli: Cli, content: bytes) -> None:
    file = cli.cwd / "foreign.jsonl"
    file.write_bytes(content)
    for command in ("show", "stats", "export", "fork", "repair", "import"):
        refused(cli, command, str(file), says="foreign.jsonl")
    assert file.read_bytes() == content
    assert os.listdir(cli.cwd) == ["foreign.jsonl"]


def test_help_is_a_result(cli: Cli) -> None:
    done = cli.run_warm("sessions", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "usage: cantle sessions" in done.stdout


def test_the_reader_may_leave(cli: Cli) -> None:
    ask(cli, "Begin.")
    words = Cli.words("sessions", "show")
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        words,
        cwd=cli.cwd,
        env=cli.environment(),
        stdout=write,
        stderr=subprocess.PIPE,
        check=False,
        timeout=TIMEOUT,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")
