"""What is special about a SQLite file."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cantle_ai.messages import UserMessage
from cantle_session.errors import SessionError, SessionFileError
from cantle_session.session import Session
from cantle_session.storage.store import open_store
from packages.session.tests.storage.backends import child, header, told
from packages.session.tests.support import texts
from tests.support.privileges import bound_by_permissions
from tests.support.samples import samples

posix = pytest.mark.skipif(os.name == "nt", reason="modes and locks of POSIX systems")


def started(path: Path, text: str = "hi") -> Session:
    session = Session.create("/work", f"sqlite:{path}")
    session.append_message(UserMessage(text))
    return session


def refused(path: Path, words: str) -> None:
    """Nothing may be done with the file, and nothing is."""
    content = path.read_bytes()
    store = open_store(f"sqlite:{path}")
    for act in (
        store.sessions,
        lambda: store.find("a"),
        lambda: store.search("a"),
        lambda: store.open(f"{store.location}#a"),
        lambda: store.create(header()).append([b"{}"]),
    ):
        with pytest.raises(SessionFileError, match=words) as caught:
            act()
        assert str(path) in str(caught.value)
        assert not str(caught.value).endswith(".")
    assert path.read_bytes() == content
    assert [other.name for other in path.parent.iterdir()] == [path.name]


def test_the_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE theirs (a)")
    connection.close()
    refused(path, "another program")


@pytest.mark.parametrize("pragma", ["user_version", "application_id"])
def test_an_empty_database_that_bears_a_mark_is_left_alone(tmp_path: Path, pragma: str) -> None:
    path = tmp_path / "other.db"
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA {pragma} = 77")
    connection.close()
    refused(path, "another program")


@pytest.mark.parametrize("content", [b"hello, I am no database\n" * 100, b"{}\n", os.urandom(9000)])
def test_a_file_of_another_kind_is_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.db"
    path.write_bytes(content)
    refused(path, "not a SQLite database")


def test_a_newer_format_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    started(path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 2")
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    refused(path, "newer version")


def test_a_folder_in_its_place_is_named(tmp_path: Path) -> None:
    (tmp_path / "folder.db").mkdir()
    with pytest.raises(SessionFileError, match=r"folder\.db"):
        open_store(f"sqlite:{tmp_path / 'folder.db'}").sessions()
    with pytest.raises(SessionFileError, match=r"folder\.db"):
        started(tmp_path / "folder.db")


@pytest.mark.parametrize("location", ["sqlite:", "sqlite:/"])
def test_a_location_without_a_name_says_what_to_give(location: str) -> None:
    with pytest.raises(SessionFileError, match="give a path behind 'sqlite:'"):
        open_store(location)


def test_a_location_without_an_id_says_what_to_give(tmp_path: Path) -> None:
    started(tmp_path / "s.db").close()
    for location in (f"sqlite:{tmp_path / 's.db'}#", "sqlite:#"):
        with pytest.raises(SessionFileError, match="names a store and no session"):
            Session.open(location)


def test_paths_count_from_here_and_from_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    assert open_store("sqlite:s#1.db").location == f"sqlite:{tmp_path / 's#1.db'}"
    assert open_store("sqlite:~/s.db").location == f"sqlite:{tmp_path / 'home' / 's.db'}"
    with Session.create("/work", "sqlite:s#1 é%?.db") as session:
        session.append_message(UserMessage("hi"))
    assert (tmp_path / "s#1 é%?.db").is_file()
    with Session.open(session.location) as again:
        assert texts(again) == ["hi"]
    with Session.open(f"sqlite:s#1 é%?.db#{session.id}") as again:
        assert texts(again) == ["hi"]


@posix
def test_what_is_made_is_for_its_owner_alone(tmp_path: Path) -> None:
    with started(tmp_path / "a" / "s.db"):
        modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "a").rglob("*")}
        folder = (tmp_path / "a").stat().st_mode & 0o777
    assert modes.pop("s.db-open") == folder == 0o700
    assert set(modes.values()) == {0o600}
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["s.db"]


def test_a_database_without_an_index_finds_the_same(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    started(path, "find the word").close()
    connection = sqlite3.connect(path)
    connection.execute("DROP TABLE cantle_words")  # as where SQLite has no FTS5
    connection.commit()
    connection.close()
    store = open_store(f"sqlite:{path}")
    with Session.create("/work", store) as session:
        session.append_message(UserMessage("another word", 1))
    assert [hit.excerpt for hit in store.search("wor")] == ["find the word", "another word"]
    assert store.search("nowhere") == []
    store.delete(session.location)
    assert [hit.excerpt for hit in store.search("wor")] == ["find the word"]
    store.close()


def test_nothing_of_a_deleted_session_stays_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    store = open_store(f"sqlite:{path}")
    started(path, "keep this").close()
    for number in range(20):
        with Session.create("/work", store) as session:
            for _ in range(20):
                session.append_message(UserMessage(f"topsecretword{number} " + "x" * 3000))
    assert len(store.search("topsecret", limit=1000)) == 400
    for info in store.sessions():
        if "keep" not in info.first_message:
            store.delete(info.location)
    store.close()
    assert [file.name for file in tmp_path.iterdir()] == ["s.db"]
    content = path.read_bytes()
    assert b"topsecret" not in content
    assert b"keep this" in content


@pytest.mark.parametrize("seed", range(samples(200, 15)))
def test_what_a_power_cut_leaves_opens_up_to_where_it_is_whole(tmp_path: Path, seed: int) -> None:
    """A log that ends, or is garbled, at a random byte: what is before that is there, and work goes on."""
    choice = random.Random(seed)
    path, copy = tmp_path / "s.db", tmp_path / "copy" / "s.db"
    session = started(path)
    ids = [session.leaf_id]
    for number in range(30):
        ids.append(session.append_message(UserMessage(f"{number} " + "x" * choice.randrange(9000))).id)
    copy.parent.mkdir()
    log = path.with_name("s.db-wal")
    shutil.copy(path, copy)
    content = bytearray(log.read_bytes())
    cut = choice.randrange(len(content))
    if seed % 2:
        del content[cut:]
    else:
        content[cut : cut + 64] = bytes(64)
    copy.with_name("s.db-wal").write_bytes(content)
    session.close()
    try:
        again = Session.open(f"sqlite:{copy}#{session.id}")
    except SessionError:
        assert open_store(f"sqlite:{copy}").sessions() == []  # it was cut before the first session was whole
        return
    kept = [entry.id for entry in again.entries()]
    assert kept == ids[: len(kept)]
    on = again.append_message(UserMessage("on"))
    again.close()
    with Session.open(again.location) as last:
        assert [entry.id for entry in last.entries()] == [*kept, on.id]


def test_damage_in_the_file_is_an_error_that_a_person_reads(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with started(path) as session:
        for _ in range(200):
            session.append_message(UserMessage("x" * 2000))
    content = bytearray(path.read_bytes())
    for at in range(4096, len(content), 4096):
        content[at : at + 200] = os.urandom(200)
    path.write_bytes(content)
    with pytest.raises(SessionFileError, match=r"\.recover") as caught:
        with Session.open(session.location) as again:
            again.entries()
    assert str(path) in str(caught.value)


LOOKER = """
import sys
from cantle_ai.messages import UserMessage
from cantle_session.errors import SessionFileError
from cantle_session.session import Session
from cantle_session.storage.store import open_store
store = open_store(sys.argv[1].rpartition("#")[0])
def appending():
    with Session.open(sys.argv[1]) as session:
        session.append_message(UserMessage("lost"))
for way in (
    store.sessions,
    lambda: store.search("hi"),
    lambda: Session.open(sys.argv[1], reading=True).entries(),
    appending,
    lambda: store.delete(sys.argv[1]),
):
    try:
        print(len(way()))
    except SessionFileError as error:
        print(error)
"""


def looked_at(location: str) -> list[str]:
    """What another process, bound by permissions, finds there."""
    words = bound_by_permissions([sys.executable, "-c", LOOKER, location])
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()


@posix
@pytest.mark.parametrize(("file", "folder"), [(0o400, 0o700), (0o600, 0o500), (0o400, 0o500)])
def test_what_may_not_be_written_is_still_listed_searched_and_read(
    tmp_path: Path, file: int, folder: int
) -> None:
    path = tmp_path / "kept" / "s.db"
    path.parent.mkdir()
    session = started(path)
    session.close()
    path.chmod(file)
    path.parent.chmod(folder)
    try:
        *read, appended, deleted = looked_at(session.location)
    finally:
        path.parent.chmod(0o700)
    assert read == ["1", "1", "1"]
    for refused in (appended, deleted):
        assert str(path) in refused and "check the permissions" in refused
    assert [file.name for file in path.parent.iterdir()] == ["s.db"]


@posix
def test_what_is_out_of_reach_is_named(tmp_path: Path) -> None:
    path = tmp_path / "kept" / "s.db"
    path.parent.mkdir()
    started(path).close()
    path.parent.chmod(0)
    try:
        shown = looked_at(f"sqlite:{path}#abc")
    finally:
        path.parent.chmod(0o700)
    assert shown == [f"{path}: could not be opened: permission denied"] * 5
    for name in ("a" * 300, "a\0b", "~nobody-of-this-name/s.db"):
        with pytest.raises(SessionFileError):
            open_store(f"sqlite:{name}").sessions()


@posix
def test_a_file_that_may_not_be_written_is_named(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    session = started(path)
    session.close()
    path.chmod(0o400)
    code = """
import sys
from cantle_ai.messages import UserMessage
from cantle_session.errors import SessionFileError
from cantle_session.session import Session
with Session.open(sys.argv[1], reading=True) as session:
    print(len(session.entries()))
try:
    with Session.open(sys.argv[1]) as session:
        session.append_message(UserMessage("lost"))
except SessionFileError as error:
    print(error)
"""
    words = bound_by_permissions([sys.executable, "-c", code, session.location])
    shown = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    assert shown[0] == "1"
    assert str(path) in shown[1] and "check the permissions" in shown[1]
    path.chmod(0o600)
    with Session.open(session.location) as again:
        assert texts(again) == ["hi"]


@posix
def test_the_presence_of_who_was_killed_is_forgotten(tmp_path: Path) -> None:
    session = started(tmp_path / "s.db")
    session.close()
    process = child("storage = open_storage(location)\nprint(flush=True)\ninput()", session.location)
    told(process)
    with Session.open(session.location) as beside:
        assert "another process" in str(beside.warnings)
    process.kill()
    process.communicate()
    with Session.open(session.location) as alone:
        assert alone.warnings == []
    assert [path.name for path in tmp_path.iterdir()] == ["s.db"]


def test_another_thread_may_go_on_with_it(tmp_path: Path) -> None:
    with started(tmp_path / "s.db") as session, ThreadPoolExecutor(1) as pool:
        pool.submit(session.append_message, UserMessage("from a thread")).result()
        assert texts(session) == ["hi", "from a thread"]


def test_who_stops_in_the_middle_of_reading_keeps_nobody_out(tmp_path: Path) -> None:
    with started(tmp_path / "s.db") as session, Session.open(session.location) as other:
        for number in range(300):
            session.append_message(UserMessage(str(number)))
        lines = session.lines()
        next(iter(lines))
        storage = open_store(f"sqlite:{tmp_path / 's.db'}").open(session.location)
        some = storage.lines()
        next(some)
        other.append_message(UserMessage("beside"))
        with storage.locked():
            storage.append([b"{}"])
        assert len(list(some)) >= 300
        storage.close()
