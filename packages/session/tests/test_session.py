"""One session: what is written when, and what it comes to."""

import json
import os
import pickle
import re
import stat
import subprocess
import sys
import tracemalloc
import uuid

import pytest

from cantle_ai.content import TextContent
from cantle_ai.messages import AssistantMessage, Message, ToolResultMessage, UserMessage, encode_message
from cantle_session.entries import ModelChangeEntry
from cantle_session.errors import SessionError, SessionFileError, UnknownEntryError
from cantle_session.fates import fates
from cantle_session.folders import session_folder
from cantle_session.session import Session
from cantle_session.stats import session_stats
from packages.session.tests.support import conversation, entries_on_disk, file_of, texts


def make(tmp_path, **options):
    return Session.create("/work", tmp_path / "sessions", **options)


@pytest.mark.parity("sessions.unused-leaves-no-file")
def test_a_session_that_is_not_used_leaves_nothing(tmp_path):
    with make(tmp_path) as session:
        session.append_model_change("p", "m")
        session.append_thinking_level_change("high")
        session.append_session_info("name")
        session.append_custom("c", {"x": 1})
        session.append_message(AssistantMessage([TextContent("hello")], "a", "p", "m"))
        assert not session.saved
        assert (session.name, len(session.entries()), session.context().model) == ("name", 5, ("p", "m"))
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_message_is_refused(tmp_path):
    session = make(tmp_path)
    with pytest.raises(TypeError, match=r"Give a message, such as UserMessage\(\.\.\.\), not str"):
        session.append_message("hi")
    assert session.entries() == []


def test_it_says_what_it_is(tmp_path):
    session = make(tmp_path, session_id="one")
    session.append_message(UserMessage("hi"))
    assert repr(session) == f"<Session one, 1 entry, {session.file}>"
    assert repr(Session.in_memory("/work", session_id="two")) == "<Session two, 0 entries, in memory>"


@pytest.mark.parity("sessions.saved-from-first-user-message")
def test_the_first_user_message_brings_what_came_before_it_in_one_write(tmp_path, monkeypatch):
    writes = []
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: writes.append(bytes(data)) or real(fd, data))
    session = make(tmp_path)
    before = [session.append_model_change("p", "m"), session.append_session_info("n")]
    message = session.append_message(UserMessage("hi"))
    assert session.saved
    assert len(writes) == 1
    assert writes[0] == session.file.read_bytes()
    header, *entries = [json.loads(line) for line in writes[0].splitlines()]
    assert header == session.header.to_json()
    assert entries == [entry.to_json() for entry in (*before, message)]


def test_each_entry_is_one_write_of_one_line(tmp_path, monkeypatch):
    session = make(tmp_path)
    session.append_message(UserMessage("hi"))
    writes = []
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: writes.append(bytes(data)) or real(fd, data))
    session.append_message(UserMessage("a\nb\u2028c\u2029d\x85e\r\n"))
    session.append_custom("c", {"text": "x\ny"})
    assert [data.count(b"\n") for data in writes] == [1, 1]
    assert all(data.endswith(b"\n") for data in writes)


@pytest.mark.parity("sessions.line-shape")
def test_a_file_has_the_shape_of_version_3(tmp_path):
    session = make(tmp_path, parent="/old/session.jsonl")
    session.append_model_change("p", "m")
    session.append_message(UserMessage("hi", 7))
    lines = session.file.read_bytes().decode().split("\n")
    stamp = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
    assert re.fullmatch(
        rf'\{{"type":"session","version":3,"id":"{session.id}","timestamp":"{stamp}","cwd":"/work",'
        r'"parentSession":"/old/session\.jsonl"\}',
        lines[0],
    )
    assert re.fullmatch(
        rf'\{{"type":"model_change","id":"[0-9a-f]{{8}}","parentId":null,"timestamp":"{stamp}",'
        r'"provider":"p","modelId":"m"\}',
        lines[1],
    )
    first = json.loads(lines[1])["id"]
    assert re.fullmatch(
        rf'\{{"type":"message","id":"[0-9a-f]{{8}}","parentId":"{first}","timestamp":"{stamp}",'
        r'"message":\{"role":"user","content":"hi","timestamp":7\}\}',
        lines[2],
    )
    assert lines[3:] == [""]
    stamped = session.header.timestamp.replace(":", "-").replace(".", "-")
    assert session.file.name == f"{stamped}_{session.id}.jsonl"
    assert uuid.UUID(session.id).version == 7


@pytest.mark.skipif(os.name == "nt", reason="permission bits of POSIX systems")
def test_sessions_are_for_the_eyes_of_their_owner(tmp_path):
    old = os.umask(0)
    try:
        session = Session.create("/work", tmp_path / "root" / "folder")
        session.append_message(UserMessage("hi"))
    finally:
        os.umask(old)
    modes = [
        stat.S_IMODE(path.stat().st_mode)
        for path in (tmp_path / "root", file_of(session).parent, file_of(session))
    ]
    assert modes == [0o700, 0o700, 0o600]


def test_it_goes_on_where_it_stood(tmp_path):
    first = make(tmp_path)
    first.append_model_change("p", "m")
    for message in conversation(10):
        first.append_message(message)
    first.close()
    again = Session.open(first.file)
    assert again.header == first.header
    assert again.leaf_id == first.leaf_id
    assert again.context().model == ("p", "m")
    again.append_message(UserMessage("more"))
    third = Session.open(first.file)
    assert texts(third) == [*texts(again)[:-1], "more"]
    assert len(third.path()) == 12


def test_every_message_comes_back_as_it_was_sent(tmp_path):
    session = make(tmp_path)
    messages: list[Message] = [
        UserMessage("lone \ud800 surrogate, \u2028, \0, \x1f, 日本"),
        AssistantMessage([TextContent("x" * 100_000)], "a", "p", "m", extra={"fromTheFuture": 1}),
        ToolResultMessage("c", "read", [TextContent("")], details={"big": 10**30, "nested": [[{}]]}),
    ]
    for message in messages:
        session.append_message(message)
    loaded = Session.open(session.file).context().messages
    assert [json.loads(encode_message(m)) for m in loaded] == [
        json.loads(encode_message(m)) for m in messages
    ]


@pytest.mark.fault("E05")
def test_e05_entries_stand_in_the_order_in_which_they_were_added(tmp_path):
    session = make(tmp_path)
    added = [session.append_message(message) for message in conversation(30)]
    added.append(session.append_custom("c"))
    assert [raw["id"] for raw in entries_on_disk(session.file)] == [entry.id for entry in added]
    parents = [raw["parentId"] for raw in entries_on_disk(session.file)]
    assert parents == [None, *(entry.id for entry in added[:-1])]


def test_ids_are_unique_and_an_entry_is_found_by_its_id(tmp_path):
    session = make(tmp_path)
    added = [session.append_message(message) for message in conversation(200)]
    assert len({entry.id for entry in added}) == 200
    assert session.entry(added[17].id).to_json() == added[17].to_json()
    with pytest.raises(KeyError):
        session.entry("nowhere")


def test_an_id_that_is_no_entrys_is_named_in_a_sentence(tmp_path):
    session = make(tmp_path)
    session.append_message(UserMessage("hi"))
    for ask in (
        session.entry, session.branch, session.parent, session.children, session.path, session.append_context_edit,
        lambda each: session.append_label(each, "x"), lambda each: session.append_compaction("s", each, 1),
        lambda each: session.common_ancestor(each, session.leaf_id),
    ):  # fmt: skip
        with pytest.raises(KeyError) as caught:
            ask("zz")
        assert isinstance(caught.value, UnknownEntryError) and isinstance(caught.value, SessionError)
        assert str(caught.value) == "there is no entry 'zz' in this session"
        assert pickle.loads(pickle.dumps(caught.value)).entry_id == "zz"
    assert len(session.entries()) == 1


def test_entries_are_gone_through_one_by_one(tmp_path):
    with Session.create(tmp_path, tmp_path) as session:
        for number in range(400):
            session.append_message(UserMessage(f"{number} " + "x" * 50_000))
        session.append_label(session.entries()[0].id, "first")
        session.append_compaction("Numbers.", None, 1)
        tracemalloc.start()
        try:
            walked, hidden = sum(1 for _ in session.walk()), sum(1 for _ in fates(session))
            branches = session_stats(session).branches
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert (walked, hidden, branches) == (402, 402, 1)
        assert peak < 8_000_000  # of the 20 that it holds
        assert list(session.walk()) == session.path()
        assert [entry.type for entry in session.walk(kind="label")] == ["label"]
        with pytest.raises(KeyError):
            session.walk("none")


@pytest.mark.parity("sessions.name")
def test_the_latest_name_counts_and_an_empty_one_takes_it_away(tmp_path):
    session = make(tmp_path)
    assert session.name is None
    session.append_message(UserMessage("hi"))
    session.append_session_info("  first\nname ")
    assert session.name == "first name"
    assert Session.open(session.file).name == "first name"
    session.append_session_info("")
    assert session.name is None


def test_what_a_model_sees_of_an_entry_can_be_changed(tmp_path):
    session = make(tmp_path)
    first = session.append_message(UserMessage("first"))
    second = session.append_message(UserMessage("second"))
    session.append_context_edit(first.id)
    session.append_context_edit(second.id, {"content": "changed"})
    for each in (session, Session.open(session.file)):
        assert texts(each) == ["changed"]
        assert [entry.to_json() for entry in each.entries()[:2]] == [first.to_json(), second.to_json()]
    with pytest.raises(KeyError):
        session.append_context_edit("nowhere")


@pytest.mark.parametrize("append", ["message", "custom"])
def test_what_json_has_no_form_for_is_refused_and_changes_nothing(tmp_path, append):
    session = make(tmp_path)
    session.append_message(UserMessage("hi"))
    before, leaf = session.file.read_bytes(), session.leaf_id
    with pytest.raises(TypeError):
        if append == "custom":
            session.append_custom("c", object())
        else:
            session.append_message(ToolResultMessage("c", "t", [], details=object()))  # type: ignore[arg-type]
    assert (session.file.read_bytes(), session.leaf_id, len(session.entries())) == (before, leaf, 1)
    session.append_message(UserMessage("still works"))


def test_a_session_in_memory_does_all_but_write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Session.in_memory(tmp_path) as session:
        session.append_model_change("p", "m")
        for message in conversation(5):
            session.append_message(message)
        assert (session.file, session.saved) == (None, False)
        assert len(session.path()) == 6
        assert len(texts(session)) == 5
        assert session.header.cwd == str(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_id_of_ones_own_stands_in_header_and_name(tmp_path):
    session = make(tmp_path, session_id="my-id")
    session.append_message(UserMessage("hi"))
    assert session.file.name.endswith("_my-id.jsonl")
    assert Session.open(session.file).id == "my-id"
    with pytest.raises(ValueError, match="session id"):
        make(tmp_path, session_id="../x")


def test_a_file_that_is_there_already_is_left_alone(tmp_path):
    session = make(tmp_path)
    session.file.parent.mkdir()
    session.file.write_bytes(b"mine")
    with pytest.raises(SessionFileError, match="already"):
        session.append_message(UserMessage("hi"))
    assert session.file.read_bytes() == b"mine"
    assert session.entries() == []


def test_a_folder_that_cannot_be_made_is_named_and_nothing_is_added(tmp_path):
    (tmp_path / "sessions").write_text("a file", encoding="utf-8")
    session = make(tmp_path)
    session.append_model_change("p", "m")
    with pytest.raises(SessionFileError, match=r"could not be made"):
        session.append_message(UserMessage("hi"))
    (tmp_path / "sessions").unlink()
    session.append_message(UserMessage("again"))
    assert [raw["type"] for raw in entries_on_disk(session.file)] == ["model_change", "message"]


def test_a_closed_session_says_so(tmp_path):
    session, unused = make(tmp_path), make(tmp_path)
    session.append_message(UserMessage("hi"))
    for closed in (session, unused):
        closed.close()
        closed.close()
        with pytest.raises(SessionFileError, match="closed"):
            closed.append_message(UserMessage("more"))
    with pytest.raises(SessionFileError, match="closed"):
        session.entries()
    assert len(entries_on_disk(session.file)) == 1


def test_a_session_that_is_forgotten_lets_go_of_its_file(tmp_path):
    session = make(tmp_path)
    session.append_message(UserMessage("hi"))
    path = session.file
    del session
    assert Session.open(path).warnings == []


def test_the_session_of_a_deleted_directory_opens_and_names_it(tmp_path):
    gone = tmp_path / "gone"
    session = Session.create(gone, session_folder(gone, tmp_path))
    session.append_message(UserMessage("hi"))
    assert Session.open(file_of(session)).header.cwd == str(gone)


@pytest.mark.skipif(os.name == "nt", reason="names that are not text are found on POSIX systems")
def test_a_directory_whose_name_is_not_text_comes_back(tmp_path):
    cwd = os.fsdecode(b"/tmp/\xff\xfe")
    session = Session.create(cwd, tmp_path)
    session.append_message(UserMessage("hi"))
    assert Session.open(file_of(session)).header.cwd == cwd


def test_an_entry_is_returned_with_its_fields(tmp_path):
    entry = make(tmp_path).append_model_change("p", "m")
    assert isinstance(entry, ModelChangeEntry)
    assert (entry.provider, entry.model_id, entry.parent_id) == ("p", "m", None)


def test_importing_one_module_does_not_load_all():
    code = (
        "import sys, cantle_session, cantle_session.errors\n"
        "assert 'cantle_session.session' not in sys.modules\n"
        "cantle_session.Session\n"
        "late = {'asyncio', 'subprocess', 'tempfile', 'hashlib', 'jiter', 'fcntl'}\n"
        "assert not late & set(sys.modules), late & set(sys.modules)\n"
        "assert not [n for n in cantle_session.__all__ if not hasattr(cantle_session, n)]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
