"""Which sessions there are."""

import json
import os
import re
import time

import pytest

from cantle_ai.content import TextContent
from cantle_ai.messages import AssistantMessage, UserMessage
from cantle_session.errors import SessionLookupError
from cantle_session.listing import find_session, latest, list_sessions, session_info
from cantle_session.session import Session
from packages.session.tests.support import HEADER, answer, chain, encoded, file_of, said, user, write


def made(folder, text, timestamp, *, cwd="/work", name=None, session_id=None):
    with Session.create(cwd, folder, session_id=session_id) as session:
        if name is not None:
            session.append_session_info(name)
        session.append_message(UserMessage(text, timestamp))
        return session.file


@pytest.mark.fault("F11")
@pytest.mark.parity("sessions.latest-by-message")
def test_f11_the_latest_message_comes_first_whatever_the_files_times_are(tmp_path):
    old, new = made(tmp_path, "old", 1000), made(tmp_path, "new", 2000)
    os.utime(new, (1, 1))
    assert [info.first_message for info in list_sessions(tmp_path)] == ["new", "old"]
    assert latest(tmp_path) == new
    with Session.open(old) as session:
        session.append_session_info("renamed")
    assert latest(tmp_path) == new
    with Session.open(old) as session:
        session.append_message(UserMessage("more", 3000))
    assert latest(tmp_path) == old


def test_a_list_tells_what_a_person_needs(tmp_path):
    path = made(tmp_path, "first\nmessage", 5000, name="my name", session_id="abc")
    (info,) = list_sessions(tmp_path)
    assert (info.path, info.id, info.cwd, info.name) == (path, "abc", "/work", "my name")
    assert (info.first_message, info.last_message_at, info.parent_session) == ("first\nmessage", 5000, None)
    assert abs(info.created - time.time() * 1000) < 60_000


@pytest.mark.parametrize("count", [0, 3, 3000])
def test_the_latest_name_counts_also_at_the_end_of_a_long_session(tmp_path, count):
    path = made(tmp_path, "hi", 1000, name="old")
    with Session.open(path) as session:
        for number in range(count):
            session.append_message(UserMessage(f"{number} " + "x" * 100, 2000 + number))
        session.append_session_info("new")
    info = session_info(path)
    assert info is not None
    assert (info.name, info.first_message) == ("new", "hi")
    assert info.last_message_at == (1999 + count if count else 1000)


def test_a_name_that_was_taken_away_is_none(tmp_path):
    path = made(tmp_path, "hi", 1000, name="old")
    with Session.open(path) as session:
        session.append_session_info("")
    info = session_info(path)
    assert info is not None and info.name is None


def counted_reads(monkeypatch):
    """How many bytes each `os.read` gave from now on."""
    read = []
    real = os.read
    monkeypatch.setattr(os, "read", lambda fd, size: read.append(len(data := real(fd, size))) or data)
    return read


@pytest.mark.fault("F07")
def test_f07_a_list_reads_heads_and_tails_only(tmp_path, monkeypatch):
    path = made(tmp_path, "hi", 1000)
    with path.open("ab") as file:
        for entry in chain(*[said(user("x" * 10_000))] * 2000):
            file.write(encoded(entry))
    read = counted_reads(monkeypatch)
    assert list_sessions(tmp_path)[0].first_message == "hi"
    assert sum(read) < 0.002 * path.stat().st_size


def working_day(size):
    """A session of about so many bytes: prompts, calls, results, answers."""
    call = {"type": "toolCall", "id": "call_1", "name": "read", "arguments": {"path": "src/main.py"}}
    result = {"role": "toolResult", "toolCallId": "call_1", "toolName": "read", "isError": False}
    entries = [
        {"type": "model_change", "provider": "p", "modelId": "m1"},
        {"type": "thinking_level_change", "thinkingLevel": "medium"},
    ]
    length = 0
    while length < size:
        turn = [
            said(user("Why does the import fail? " * 10, 7)),
            said(answer("", content=[{"type": "thinking", "thinking": "Hm. " * 300}, call])),
            said({**result, "content": [{"type": "text", "text": "line of code\n" * 400}], "timestamp": 8}),
            said(answer("It is the path. " * 100, timestamp=1_700_000_000_000 + length)),
        ]
        entries += turn
        length += len(encoded(*turn))
    return entries


@pytest.mark.fault("F07")
def test_f07_two_thousand_sessions_are_listed_from_a_hundredth_of_their_bytes(tmp_path, monkeypatch):
    count, kinds = 2000, [60_000, 120_000, 300_000, 1_200_000]
    for number, size in enumerate(kinds):
        first = write(tmp_path / f"{number}.jsonl", HEADER, *chain(*working_day(size)))
        # One file under many names takes no room, and is read as often as it has names.
        for again in range(1, count // len(kinds)):
            os.link(first, tmp_path / f"{number}-{again}.jsonl")
    read = counted_reads(monkeypatch)
    infos = list_sessions(tmp_path)
    total = sum(info.size for info in infos)
    assert len(infos) == count
    assert {info.first_message for info in infos} == {("Why does the import fail? " * 10)[:200]}
    assert all(info.last_message_at > 1_700_000_000_000 for info in infos)
    assert sum(read) < 0.01 * total
    assert max(read) <= 4096


@pytest.mark.parametrize("size", [10, 20_000, 100_000, 400_000, 3_000_000])
@pytest.mark.parametrize("place", ["first", "last"])
def test_large_messages_at_either_end_do_no_harm(tmp_path, size, place):
    large, small = said(user("x" * size)), said(user("small", 7))
    entries = chain(large, small) if place == "first" else chain(small, large)
    info = session_info(write(tmp_path / "s.jsonl", HEADER, *entries))
    assert info is not None
    assert info.id == HEADER["id"]
    assert info.first_message == ("x" * min(size, 200) if place == "first" else "small")
    if place == "first" or size <= 400_000:
        assert info.last_message_at == (7 if place == "first" else 1)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"hello\n",
        b"\0" * 100_000,
        b"[]\n",
        b"\xff\xfe" * 50,
        b"x" * 1_000_000,
        encoded(*chain(said(user("x")))),
    ],
)
def test_foreign_files_are_passed_over(tmp_path, content):
    (tmp_path / "foreign.jsonl").write_bytes(content)
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "notes.txt").write_bytes(encoded(HEADER))
    (tmp_path / "dangling.jsonl").symlink_to(tmp_path / "nowhere")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.jsonl")
    path = made(tmp_path, "hi", 1000)
    assert [info.path for info in list_sessions(tmp_path)] == [path]


def test_a_header_alone_is_a_session_as_old_as_itself(tmp_path):
    info = session_info(write(tmp_path / "s.jsonl", HEADER))
    assert info is not None
    assert (info.first_message, info.last_message_at) == ("", info.created)
    assert info.created == 1767225600000


def test_damage_does_not_keep_a_session_from_the_list(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_bytes(
        encoded("", HEADER, "hello", *chain(said(user("hi", 7)))) + b"\0" * 1000 + b'{"type":"mess'
    )
    info = session_info(path)
    assert info is not None
    assert (info.first_message, info.last_message_at) == ("hi", 7)


def test_a_message_without_a_time_has_that_of_its_entry(tmp_path):
    message = {"role": "user", "content": "hi"}
    info = session_info(write(tmp_path / "s.jsonl", HEADER, *chain(said(message), said(message))))
    assert info is not None
    assert info.last_message_at == 1767225601000


def test_old_versions_are_listed(tmp_path):
    header = {key: value for key, value in HEADER.items() if key != "version"}
    lines = [{"type": "message", "message": user("hi", 5)}, {"type": "message", "message": answer("yo")}]
    info = session_info(write(tmp_path / "s.jsonl", header, *lines))
    assert info is not None
    assert (info.first_message, info.last_message_at) == ("hi", 2)


@pytest.mark.parametrize("size", [100, 3000])
def test_what_only_looks_like_a_message_of_the_user_is_none(tmp_path, size):
    told = {"role": "user", "content": "no " * size}
    call = {"type": "toolCall", "id": "c", "name": "write", "arguments": {"message": told, **told}}
    entries = chain(
        {"type": "custom", "customType": "c", "data": [told] * 3},
        said(answer("", content=[call])),
        said(user("yes")),
    )
    info = session_info(write(tmp_path / "s.jsonl", HEADER, *entries))
    assert info is not None and info.first_message == "yes"


@pytest.mark.parametrize(
    "text", ["日本" * 900, '\u2028\x00\n"\\' * 900, "\ud800x" * 900, "🎉" * 900, "a" * 700 + "\ud83c" * 900]
)
def test_the_beginning_of_a_long_message_is_the_same_as_that_of_the_whole(tmp_path, text):
    for padding in range(40):
        for escaped in (True, False):
            entry = chain(said(user("x" * padding + text)))[0]
            line = json.dumps(entry, separators=(",", ":"), ensure_ascii=escaped).encode("utf-8", "replace")
            info = session_info(write(tmp_path / "s.jsonl", HEADER, line))
            assert info is not None
            assert info.first_message == json.loads(line)["message"]["content"][:200]


@pytest.mark.timeout(20)
def test_a_line_that_is_full_of_roles_is_looked_at_once(tmp_path):
    told = {"type": "custom", "customType": "c", "data": [{"role": "user"}] * 10_000}
    infos = [session_info(write(tmp_path / "s.jsonl", HEADER, *chain(told, said(user("hi")))))] * 5
    assert [info and info.first_message for info in infos] == ["hi"] * 5


def test_a_list_can_be_of_one_directory(tmp_path):
    made(tmp_path, "other", 3000, cwd="/other")
    path = made(tmp_path, "mine", 1000, cwd="/work")
    assert [info.path for info in list_sessions(tmp_path, cwd="/work/")] == [path]
    assert latest(tmp_path, cwd="/work") == path
    assert latest(tmp_path, cwd="/nowhere") is None


def test_a_folder_that_is_not_there_holds_none(tmp_path):
    assert list_sessions(tmp_path / "none") == []
    assert latest(tmp_path / "none") is None


def test_a_session_is_found_by_the_beginning_of_its_id(tmp_path):
    here, there = tmp_path / "root" / "here", tmp_path / "root" / "there"
    one = made(here, "1", 1, session_id="abc1")
    two = made(here, "2", 1, session_id="abc2")
    other = made(there, "3", 1, session_id="xyz")
    assert find_session("abc1", here) == one
    assert find_session("abc2", here) == two
    with pytest.raises(SessionLookupError, match=r"2 sessions.*: abc1, abc2$"):
        find_session("abc", here)
    copy = there / "2026-01-01T00-00-00-000Z_xyz.jsonl"
    copy.write_bytes(other.read_bytes())
    with pytest.raises(
        SessionLookupError, match=re.escape(str(copy))
    ):  # only a path tells one from the other
        find_session("xyz", there)
    copy.unlink()
    with pytest.raises(SessionLookupError, match="no session"):
        find_session("xyz", here)
    assert find_session("xy", here, root=tmp_path / "root") == other
    with pytest.raises(SessionLookupError, match="no session"):
        find_session("", here, root=tmp_path / "root")


def test_a_whole_id_is_not_ambiguous(tmp_path):
    path = made(tmp_path, "1", 1, session_id="abc")
    made(tmp_path, "2", 1, session_id="abcd")
    assert find_session("abc", tmp_path) == path


def test_a_file_of_another_name_is_found_by_the_id_in_its_header(tmp_path):
    path = write(tmp_path / "renamed.jsonl", HEADER)
    assert find_session(str(HEADER["id"])[:10], tmp_path) == path


@pytest.mark.parametrize("text", ["/a/b", "a/b", "b.jsonl", "./b"])
def test_a_path_is_taken_as_one(tmp_path, text):
    assert find_session(text, tmp_path).as_posix() == text.removeprefix("./")


def test_the_answer_is_not_taken_for_the_first_message(tmp_path):
    with Session.create("/work", tmp_path) as session:
        session.append_message(AssistantMessage([TextContent('I was asked "role":"user"')], "a", "p", "m"))
        session.append_message(UserMessage("hi"))
    info = session_info(file_of(session))
    assert info is not None and info.first_message == "hi"
