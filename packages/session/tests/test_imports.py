"""Sessions that are taken in from elsewhere, or moved."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cantle_ai.messages import UserMessage
from cantle_session.errors import SessionFileError
from cantle_session.imports import import_session
from cantle_session.listing import find_session, list_sessions
from cantle_session.moves import move_session
from cantle_session.session import Session
from packages.session.tests.support import (
    HEADER,
    chain,
    encoded,
    said,
    texts,
    user,
    write,
)
from packages.session.tests.test_entries import ENTRIES
from packages.session.tests.test_legacy import V1, V2

ALL = chain(*[fields for fields, _ in ENTRIES])
DAMAGED = encoded(HEADER, *ALL, "foreign", "", {**HEADER, "id": "second"}) + b"\0" * 100 + b'{"type":"mess'


def everything_below(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# --- import


@pytest.mark.parity("sessions.import")
def test_an_imported_session_keeps_its_id_its_directory_and_its_lines(tmp_path):
    source = write(tmp_path / "from elsewhere.txt", HEADER, *ALL)
    imported = import_session(source, tmp_path / "sessions")
    assert (imported.id, imported.cwd) == (HEADER["id"], HEADER["cwd"])
    path = Path(imported.location)
    assert path == tmp_path / "sessions" / f"2026-01-01T00-00-00-000Z_{HEADER['id']}.jsonl"
    assert path.read_bytes() == source.read_bytes()
    assert find_session(str(HEADER["id"])[:8], tmp_path / "sessions") == path
    if os.name != "nt":
        assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_it_can_be_given_another_directory_or_a_new_id(tmp_path):
    header = {**HEADER, "fromTheFuture": [1]}
    source = write(tmp_path / "s.txt", header, *ALL)
    moved = import_session(source, tmp_path / "sessions", cwd="/elsewhere/")
    again = import_session(source, tmp_path / "sessions", new_id=True)
    assert (moved.cwd, again.cwd, again.id != moved.id) == ("/elsewhere", "/work", True)
    for imported in (moved, again):
        first, *lines = Path(imported.location).read_bytes().split(b"\n")
        assert json.loads(first) == {**header, "id": imported.id, "cwd": imported.cwd}
        assert lines == source.read_bytes().split(b"\n")[1:]


@pytest.mark.fault("F03")
def test_f03_an_import_never_replaces_a_session(tmp_path):
    source = write(tmp_path / "s.txt", HEADER, *ALL)
    here = Path(import_session(source, tmp_path / "sessions").location)
    with Session.open(here) as session:
        session.append_message(UserMessage("mine"))
    before = everything_below(tmp_path)
    for again in (source, here):
        with pytest.raises(SessionFileError, match=f"{HEADER['id']} is there already.*left alone"):
            import_session(again, tmp_path / "sessions")
    # Under another name, too.
    here.rename(here.with_name("renamed.jsonl"))
    with pytest.raises(SessionFileError, match="is there already"):
        import_session(source, tmp_path / "sessions")
    (tmp_path / "sessions" / "renamed.jsonl").rename(here)
    assert everything_below(tmp_path) == before


def test_a_file_of_that_name_that_is_no_session_is_left_alone(tmp_path):
    source = write(tmp_path / "s.txt", HEADER, *ALL)
    taken = tmp_path / "sessions" / f"2026-01-01T00-00-00-000Z_{HEADER['id']}.jsonl"
    taken.parent.mkdir()
    taken.write_bytes(b"mine")
    with pytest.raises(SessionFileError, match="left alone"):
        import_session(source, tmp_path / "sessions")
    assert taken.read_bytes() == b"mine"


@pytest.mark.fault("F03")
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n\n",
        b"hello\n",
        b"\0" * 5000,
        b"[]\n",
        encoded(*ALL),
        b'{"type":"session"}\n',
        b'{"type":"sess',
    ],
)
def test_what_is_no_session_is_refused_and_leaves_nothing(tmp_path, content):
    (tmp_path / "s.jsonl").write_bytes(content)
    with pytest.raises(SessionFileError, match="give the path of a session file"):
        import_session(tmp_path / "s.jsonl", tmp_path / "sessions")
    assert everything_below(tmp_path) == {Path("s.jsonl"): content}
    assert not (tmp_path / "sessions").exists()


def test_what_is_no_file_is_refused(tmp_path):
    with pytest.raises(SessionFileError, match="no such file"):
        import_session(tmp_path / "none", tmp_path / "sessions")
    with pytest.raises(SessionFileError, match="not a file"):
        import_session(tmp_path, tmp_path / "sessions")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(SessionFileError, match="not a file"):
            import_session(tmp_path / "pipe", tmp_path / "sessions")


@pytest.mark.parametrize("session_id", ["", "../../etc/x", "a/b", "..", ".hidden", "a\0b", "x" * 300, "a\nb"])
def test_a_hostile_id_does_not_lead_out_of_the_folder(tmp_path, session_id):
    source = write(tmp_path / "s.txt", {**HEADER, "id": session_id}, *ALL)
    with pytest.raises(SessionFileError, match="cannot be a session id"):
        import_session(source, tmp_path / "sessions")
    with pytest.raises(SessionFileError, match="cannot be a session id"):
        move_session(source, tmp_path / "sessions")
    assert [path.name for path in tmp_path.iterdir()] == ["s.txt"]
    imported = import_session(source, tmp_path / "sessions", new_id=True)
    assert Path(imported.location).parent == tmp_path / "sessions"


@pytest.mark.parametrize(
    "timestamp", ["", "../../x", "/etc/x", "a\0b", "2026\n", "x" * 5000, 5, None, "日本"]
)
def test_a_hostile_time_does_not_lead_out_of_the_folder(tmp_path, timestamp):
    source = write(tmp_path / "s.txt", {**HEADER, "timestamp": timestamp}, *ALL)
    imported = import_session(source, tmp_path / "sessions")
    path = Path(imported.location)
    assert path.parent == tmp_path / "sessions"
    assert path.read_bytes() == source.read_bytes()
    assert [info.id for info in list_sessions(tmp_path / "sessions")] == [HEADER["id"]]


def test_a_damaged_session_is_taken_in_with_all_of_its_lines(tmp_path):
    source = tmp_path / "s.txt"
    source.write_bytes(DAMAGED)
    path = Path(import_session(source, tmp_path / "sessions").location)
    assert path.read_bytes() == DAMAGED.replace(b"\n\n", b"\n") + b"\n"
    assert [entry.id for entry in Session.open(path).entries()] == [entry["id"] for entry in ALL]


@pytest.mark.parametrize("lines", [V1, V2])
def test_an_old_file_is_taken_in_as_it_is(tmp_path, lines):
    source = write(tmp_path / "s.txt", *lines)
    path = Path(import_session(source, tmp_path / "sessions").location)
    assert path.read_bytes() == source.read_bytes()
    assert texts(Session.open(path)) == texts(Session.open(source))


LIMITED = """
import resource, sys
from cantle_session.errors import SessionFileError
from cantle_session.forks import clone_session
from cantle_session.imports import import_session
from cantle_session.moves import move_session
from cantle_session.repair import repair_session
from cantle_session.session import Session
session = Session.open(sys.argv[1])
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
for do in (import_session, move_session, lambda _, place: clone_session(session, place),
           lambda path, _: repair_session(path)):
    session.close() if do is move_session else None
    try:
        do(sys.argv[1], sys.argv[2])
    except SessionFileError as problem:
        print(problem)
    session = Session.open(sys.argv[1], reading=True)
"""


@pytest.mark.fault("F02")
@pytest.mark.skipif(os.name == "nt", reason="limits of POSIX systems")
def test_what_does_not_fit_leaves_nothing(tmp_path):
    source = tmp_path / "s" / "s.jsonl"
    source.parent.mkdir()
    source.write_bytes(encoded(HEADER, *chain(*[said(user("x" * 1000))] * 100), "foreign"))
    before = everything_below(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, source, tmp_path / "place"],
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=50,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("could not be written: file too large") == 4
    assert everything_below(tmp_path) == before


# --- move


def test_a_session_is_moved_to_another_directory(tmp_path):
    header = {**HEADER, "fromTheFuture": [1]}
    (tmp_path / "a").mkdir()
    source = write(tmp_path / "a" / "s.jsonl", header, *ALL)
    lines = source.read_bytes().split(b"\n")[1:]
    moved = Path(move_session(source, tmp_path / "b", cwd="/elsewhere"))
    assert not source.exists()
    assert moved.parent == tmp_path / "b"
    first, *rest = moved.read_bytes().split(b"\n")
    assert (json.loads(first), rest) == ({**header, "cwd": "/elsewhere"}, lines)
    back = Path(move_session(moved, tmp_path / "b", cwd="/work"))
    assert (back, list(back.parent.iterdir())) == (moved, [moved])
    assert json.loads(back.read_bytes().split(b"\n")[0]) == header
    with Session.open(back) as session:
        session.append_message(UserMessage("on"))


def test_a_session_that_is_there_already_is_not_replaced(tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()
        write(tmp_path / name / f"{name}.jsonl", HEADER, *chain(said(user(name))))
    before = everything_below(tmp_path)
    with pytest.raises(SessionFileError, match="is there already"):
        move_session(tmp_path / "a" / "a.jsonl", tmp_path / "b")
    assert everything_below(tmp_path) == before


def test_a_link_to_the_folder_it_is_in_is_that_folder(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    source = write(tmp_path / "a" / "s.jsonl", HEADER, *ALL)
    moved = move_session(source, tmp_path / "link", cwd="/elsewhere")
    assert [info.cwd for info in list_sessions(tmp_path / "a")] == ["/elsewhere"]
    assert Path(moved).samefile(next((tmp_path / "a").iterdir()))


HOLD = """
import sys
from cantle_session.session import Session
session = Session.open(sys.argv[1])
print("open", flush=True)
sys.stdin.readline()
"""


@pytest.mark.skipif(os.name == "nt", reason="who has a file open is not known on Windows")
def test_a_session_that_somebody_has_open_stays(tmp_path):
    source = write(tmp_path / "s.jsonl", HEADER, *ALL)
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, source], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"open\n"
        with pytest.raises(SessionFileError, match="is open, here or in another process, so it was left"):
            move_session(source, tmp_path / "b")
        assert list(tmp_path.iterdir()) == [source]
        holder.communicate(b"\n", timeout=20)
    assert move_session(source, tmp_path / "b")
    assert not source.exists()


def test_where_the_old_file_cannot_go_there_is_no_new_one(tmp_path, monkeypatch):
    source = write(tmp_path / "s.jsonl", HEADER, *ALL)
    real = Path.unlink

    def refuse(path, missing_ok=False):
        if path == source:
            raise PermissionError(13, "Permission denied")
        real(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(SessionFileError, match="permission denied"):
        move_session(source, tmp_path / "b")
    assert everything_below(tmp_path) == {Path("s.jsonl"): source.read_bytes()}


# --- between files and databases


@pytest.mark.parametrize("lines", [[HEADER, *ALL, "foreign"], V1, V2], ids=["3", "1", "2"])
def test_a_session_goes_to_a_database_and_back(tmp_path, lines):
    source = write(tmp_path / "s.jsonl", *lines)
    store = f"sqlite:{tmp_path / 'sessions.db'}"
    with Session.open(source) as session:
        before = [entry.to_json() for entry in session.entries()]
    imported = import_session(source, store)
    assert imported.location == f"{store}#{HEADER['id']}"
    with Session.open(imported.location) as session:
        assert [entry.to_json() for entry in session.entries()] == before
        assert session.header.version == 3
    with pytest.raises(SessionFileError, match="is there already"):
        import_session(source, store)
    back = Path(import_session(imported.location, tmp_path / "back").location)
    with Session.open(back) as session:
        assert [entry.to_json() for entry in session.entries()] == before
    if lines[0] is HEADER:
        assert back.read_bytes() == source.read_bytes()
