"""What every store of sessions promises: one table, run by each of them."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cantle_ai.content import TextContent
from cantle_ai.messages import AssistantMessage, UserMessage
from cantle_session.errors import SessionFileError, SessionLookupError
from cantle_session.session import Session
from cantle_session.storage.bin import delete_file
from cantle_session.storage.database_store import DatabaseStore
from cantle_session.storage.folder_store import FolderStore
from cantle_session.storage.store import open_store
from packages.session.tests.storage.backends import Place, child, in_databases, told
from packages.session.tests.support import texts


def made(
    place: Place, text: str, timestamp: int, *, cwd: str = "/work", session_id: str | None = None
) -> str:
    """The location of a session in which a user said `text`."""
    with Session.create(cwd, place.store, session_id=session_id) as session:
        session.append_message(UserMessage(text, timestamp))
        return session.location


def _counted(real: Callable[..., Any], read: list[int]) -> Callable[..., Any]:
    """`real`, which reads from a file or a database, with its bytes noted in `read`."""

    def reading(*words: Any) -> Any:
        result = real(*words)
        read.append(len(result) if isinstance(result, bytes) else len(repr(result)))
        return result

    return reading


def firsts(place: Place, cwd: str | None = None) -> list[str]:
    return [info.first_message for info in place.store.sessions(cwd=cwd)]


def test_an_empty_store_has_nothing_and_is_not_made_by_looking(place: Place, tmp_path: Path) -> None:
    store = place.store
    assert (store.sessions(), store.search("anything")) == ([], [])
    with pytest.raises(SessionLookupError, match="no session"):
        store.find("a")
    assert list(tmp_path.iterdir()) == []


def test_its_location_opens_it_again(place: Place) -> None:
    made(place, "hi", 1)
    again = open_store(place.store.location)
    assert again.location == place.store.location
    assert [info.first_message for info in again.sessions()] == ["hi"]
    again.close()
    again.close()


@pytest.mark.fault("F11")
def test_the_latest_message_comes_first(place: Place) -> None:
    old = made(place, "old", 1000)
    made(place, "new", 2000)
    assert firsts(place) == ["new", "old"]
    place.store.rename(old, "renamed")
    assert firsts(place) == ["new", "old"]
    with Session.open(old) as session:
        session.append_message(UserMessage("more", 3000))
    assert firsts(place) == ["old", "new"]


def test_a_list_tells_what_a_person_needs(place: Place) -> None:
    origin = made(place, "origin", 1)
    with Session.create("/wörk/\udce9", place.store, session_id="abc", parent=origin) as session:
        session.append_session_info("my  name")
        session.append_message(UserMessage("first\nmessage \0 \ud800", 5000))
        session.append_message(AssistantMessage([TextContent("hello")], "api", "p", "m", timestamp=6000))
        size = sum(len(line) + 1 for line in [b"", *session.lines(whole=True)]) - 1
        location = session.location
    info = place.store.sessions()[0]
    assert (info.location, info.id, info.cwd, info.name) == (location, "abc", "/wörk/\udce9", "my name")
    assert info.first_message == "first\nmessage \0 \ud800"
    assert (info.last_message_at, info.parent_session) == (6000, origin)
    assert abs(info.created - time.time() * 1000) < 60_000
    assert info.size > size
    assert (info.path is None) == place.is_database


def test_a_name_is_the_last_one_until_it_is_taken_away(place: Place) -> None:
    location = made(place, "hi", 1)
    for name, shown in [("one", "one"), ("  two\nlines ", "two lines"), ("", None)]:
        place.store.rename(location, name)
        assert place.store.sessions()[0].name == shown
        with Session.open(location) as session:
            assert session.name == shown
    with Session.open(location) as session:
        assert [entry.type for entry in session.path()] == ["message", *["session_info"] * 3]
        assert texts(session) == ["hi"]


def test_a_session_can_be_renamed_while_another_process_has_it_open(place: Place) -> None:
    location = made(place, "hi", 1)
    with Session.open(location) as session:
        place.store.rename(location, "named")
        session.append_message(UserMessage("on"))
        assert (session.name, texts(session)) == ("named", ["hi", "on"])
    with Session.open(location) as again:
        assert (again.name, texts(again), again.warnings) == ("named", ["hi", "on"], [])


def test_a_list_can_be_of_one_directory(place: Place) -> None:
    made(place, "other", 3000, cwd="/other")
    made(place, "mine", 1000, cwd="/work")
    assert firsts(place, "/work/") == ["mine"]
    assert firsts(place, "/nowhere") == []
    assert firsts(place) == ["other", "mine"]


@pytest.mark.fault("F07")
def test_a_list_does_not_read_what_sessions_hold(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    location = made(place, "first", 1000)
    with Session.open(location) as session:
        for number in range(400):
            session.append_message(UserMessage("x" * 20_000, 2000 + number))
    read: list[int] = []
    monkeypatch.setattr(os, "read", _counted(os.read, read))
    if isinstance(place.store, DatabaseStore):
        database = place.store._database
        monkeypatch.setattr(database, "rows", _counted(database.rows, read))
    (info,) = place.store.sessions()
    assert 0 < sum(read) < 0.01 * info.size
    assert (info.first_message, info.last_message_at) == ("first", 2399)
    assert info.size > 8_000_000


def test_a_session_is_found_by_the_beginning_of_its_id(place: Place) -> None:
    one, two = made(place, "1", 1, session_id="abc1"), made(place, "2", 1, session_id="abc2")
    whole = made(place, "3", 1, session_id="abc12")
    assert place.store.find("abc2") == two
    assert place.store.find("abc12") == whole
    assert place.store.find("abc1") == one  # a whole id is not ambiguous
    with pytest.raises(SessionLookupError, match="3 sessions"):
        place.store.find("abc")
    for number in range(3, 6):
        made(place, "more", 1, session_id=f"abc{number}")
    with pytest.raises(SessionLookupError, match="fits 6 sessions; give more of the id") as caught:
        place.store.find("abc")
    ids = str(caught.value).rpartition(": ")[2].split(", ")
    assert len(ids) == 6 and ids[-1] == "…" and all(each.startswith("abc") for each in ids[:-1])
    for missing in ("xyz", "", "ABC1", "%", "_bc1", "a'b", "\0", "\ud800", "é"):
        with pytest.raises(SessionLookupError, match="no session"):
            place.store.find(missing)


def test_what_is_deleted_is_gone(place: Place) -> None:
    gone, kept = made(place, "secret", 1), made(place, "kept", 2)
    deletion = place.store.delete(gone)
    assert deletion.location == gone
    if place.is_database:
        assert not deletion.to_bin
    assert firsts(place) == ["kept"]
    assert place.store.search("secret") == []
    with pytest.raises(SessionFileError):
        Session.open(gone)
    with pytest.raises(SessionFileError, match="nothing was deleted"):
        place.store.delete(gone)
    with Session.open(kept) as session:
        assert texts(session) == ["kept"]


@pytest.mark.skipif(os.name == "nt", reason="who has a file open is not known on Windows")
def test_what_somebody_has_open_is_not_deleted(place: Place) -> None:
    location = made(place, "hi", 1)
    with Session.open(location) as session:
        with pytest.raises(
            SessionFileError, match="is open, here or in another process, so nothing was deleted"
        ):
            place.store.delete(location)
        session.append_message(UserMessage("still here"))
    process = child(_HOLD, location)
    assert told(process) == "open"
    with pytest.raises(SessionFileError, match="close it there first"):
        place.store.delete(location)
    process.communicate("\n", timeout=20)
    with Session.open(location, reading=True) as reader:  # of whom nobody is told
        assert texts(reader) == ["hi", "still here"]
        place.store.delete(location)
    assert place.store.sessions() == []


_HOLD = """
from cantle_session.session import Session
with Session.open(location):
    print("open", flush=True)
    sys.stdin.readline()
"""


def test_a_location_is_known_however_it_is_written(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(place, "hi", 1, session_id="abc")
    location = place.store.find("abc")
    if place.name == "postgres":
        other = location.replace("postgresql://cantle@", "postgres://cantle:s3cret@")
    else:
        monkeypatch.chdir(tmp_path)
        other = location.replace(f"{tmp_path}{os.sep}", "")
    assert other != location
    with Session.open(other) as session:
        assert texts(session) == ["hi"]
    place.store.rename(other, "plum")
    assert place.store.delete(other).location == location
    assert place.store.sessions() == []


@in_databases
@pytest.mark.parametrize("session_id", ["\0", "\ud800", "é", "a\nb", "%", "'"])
def test_what_can_be_no_id_is_no_session(place: Place, session_id: str) -> None:
    made(place, "hi", 1)
    location = f"{place.store.location}#{session_id}"
    for act in (
        Session.open,
        place.store.open,
        place.store.delete,
        lambda each: place.store.rename(each, "x"),
    ):
        with pytest.raises(SessionFileError, match=r"no such session|no session of"):
            act(location)
    with pytest.raises(SessionLookupError, match="no session"):
        place.store.find(session_id)


@in_databases
def test_a_session_of_another_place_is_not_touched(place: Place, tmp_path: Path) -> None:
    made(place, "hi", 1, session_id="abc")
    for wrong in ("abc", f"sqlite:{tmp_path}/else.db#abc", "postgresql://other/db#abc", place.store.location):
        for act in (place.store.open, place.store.delete, lambda location: place.store.rename(location, "x")):
            with pytest.raises(SessionFileError, match="no session of"):
                act(wrong)
    assert firsts(place) == ["hi"]


def test_whole_sessions_go_from_one_place_to_another_unchanged(place: Place, tmp_path: Path) -> None:
    location = made(place, "hi \0 \ud800 é", 1)
    with Session.open(location) as session:
        session.append_custom("odd", {"number": 12345678901234567890, "text": "\u2028"})
    source = place.store.open(location)
    lines = [line for _, line in source.lines()]
    source.close()
    other = open_store(f"sqlite:{tmp_path / 'other.db'}")
    with Session.open(location) as session:
        copy = other.create(session.header)
    copy.append(lines)
    copy.close()
    again = other.open(copy.location)
    assert [line for _, line in again.lines()] == lines
    again.close()
    with Session.open(copy.location) as session:
        assert texts(session) == ["hi \0 \ud800 é"]
    other.close()


_BIN = """
from cantle_session.storage.folder_store import FolderStore
store = FolderStore(location)
(info,) = store.sessions()
print(store.delete(info.location).to_bin, len(store.sessions()))
"""


@pytest.mark.skipif(os.name == "nt", reason="the bin of a test cannot be moved elsewhere there")
def test_a_file_goes_to_the_bin_and_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home" / "data"))
    (tmp_path / "home").mkdir()
    with Session.create("/work", tmp_path / "s") as session:
        session.append_message(UserMessage("hi"))
        path = session.file
    assert path is not None
    content = path.read_bytes()
    process = child(_BIN, str(tmp_path / "s"))
    assert told(process) == "True 0"
    process.communicate()
    (binned,) = (tmp_path / "home").rglob(path.name)
    assert binned.read_bytes() == content
    binned.rename(path)
    with Session.open(path) as again:
        assert texts(again) == ["hi"]


def test_without_a_bin_a_file_is_removed_for_good_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A home and a disk whose bins cannot be made: files stand where their folders would.
    blocked = tmp_path / "blocked"
    blocked.write_text("")
    monkeypatch.setenv("HOME", str(blocked))
    monkeypatch.setenv("XDG_DATA_HOME", str(blocked))
    with Session.create("/work", tmp_path / "s") as session:
        session.append_message(UserMessage("hi"))
    process = child(_BIN, str(tmp_path / "s"))
    assert told(process) == "False 0"
    process.communicate()


def test_a_folder_of_folders_keeps_each_directory_apart(tmp_path: Path) -> None:
    store = FolderStore(tmp_path, by_directory=True)
    for cwd, text, time_ in [("/a/b", "one", 1), ("/a:b", "two", 2), ("/c", "three", 3)]:
        with Session.create(cwd, store) as session:
            session.append_message(UserMessage(text, time_))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["--a-b--", "--c--"]
    assert [info.first_message for info in store.sessions()] == ["three", "two", "one"]
    assert [info.first_message for info in store.sessions(cwd="/a/b")] == ["one"]
    (info,) = store.sessions(cwd="/c")
    assert store.find(info.id) == info.location
    assert [hit.id for hit in store.search("three")] == [info.id]
    assert store.search("three", cwd="/a/b") == []
    assert FolderStore(tmp_path / "none", by_directory=True).sessions() == []


def test_an_older_file_is_renamed_as_version_3_with_the_original_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "old.jsonl"
    path.write_bytes(
        b'{"type":"session","id":"abc","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/work"}\n'
        b'{"type":"message","timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"hi","timestamp":1}}\n'
    )
    original = path.read_bytes()
    FolderStore(tmp_path).rename(str(path), "new name")
    assert path.with_name("old.jsonl.v1").read_bytes() == original
    with Session.open(path) as session:
        assert (session.name, texts(session)) == ("new name", ["hi"])


def test_what_is_no_session_is_not_renamed_or_deleted(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    note = tmp_path / "note.jsonl"
    note.write_text('{"a": 1}\n')
    with pytest.raises(SessionFileError, match="no session"):
        store.rename(str(note), "x")
    with pytest.raises(SessionFileError, match="nothing was deleted"):
        store.delete(str(note))
    assert note.read_text() == '{"a": 1}\n'
    (tmp_path / "folder").mkdir()
    with pytest.raises(SessionFileError, match="nothing was deleted"):
        store.delete(str(tmp_path / "folder"))
    with pytest.raises(SessionFileError, match="nothing was deleted"):
        store.delete(str(tmp_path / "none.jsonl"))


def test_a_bin_that_is_full_is_no_reason_to_delete_for_good(tmp_path, monkeypatch):
    def full(path: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("send2trash.send2trash", full)
    file = tmp_path / "s.jsonl"
    file.write_text("kept\n", "utf-8")
    with pytest.raises(SessionFileError, match=r"could not take it: no space left.*nothing was deleted"):
        delete_file(file)
    assert file.read_text("utf-8") == "kept\n"
