"""Disks that are full, files that may not be written or read."""

import errno
import os
import subprocess
import sys

import pytest

from cantle_ai.messages import UserMessage
from cantle_session.errors import SessionFileError
from cantle_session.session import Session
from packages.session.tests.support import entries_on_disk, texts

pytestmark = pytest.mark.skipif(os.name == "nt", reason="limits, mounts and users of POSIX systems")
super_user = os.name != "nt" and os.geteuid() == 0


def started(tmp_path):
    session = Session.create("/work", tmp_path)
    session.append_message(UserMessage("hi"))
    return session


def run(code, *words):
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, words)],
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=50,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


LIMITED = """
import resource, sys
from cantle_ai.messages import UserMessage
from cantle_session.errors import SessionFileError
from cantle_session.session import Session
session = Session.open(sys.argv[1])
size = session.file.stat().st_size
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 1000, hard))
for _ in range(2):
    try:
        session.append_message(UserMessage("x" * 5000))
    except SessionFileError as problem:
        print(problem)
    assert session.file.stat().st_size == size
    assert len(session.entries()) == 1
session.append_message(UserMessage("short"))
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
session.append_message(UserMessage("on"))
assert session.warnings == [], session.warnings
"""


def test_a_line_that_does_not_fit_is_taken_back(tmp_path):
    session = started(tmp_path)
    session.close()
    told = run(LIMITED, session.file)
    assert told.count("could not be written") == 2
    assert str(session.file) in told
    assert texts(Session.open(session.file)) == ["hi", "short", "on"]
    assert len(entries_on_disk(session.file)) == 3


FIRST = """
import resource, sys
from pathlib import Path
from cantle_ai.messages import UserMessage
from cantle_session.errors import SessionFileError
from cantle_session.session import Session
session = Session.create("/work", sys.argv[1])
session.append_model_change("p", "m")
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
try:
    session.append_message(UserMessage("x" * 5000))
except SessionFileError as problem:
    print(problem)
assert not session.saved and not session.file.exists()
assert len(session.entries()) == 1
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
session.append_message(UserMessage("again"))
"""


def test_a_first_message_that_does_not_fit_leaves_no_file(tmp_path):
    told = run(FIRST, tmp_path / "sessions")
    assert told.count("could not be written") == 1
    (path,) = (tmp_path / "sessions").iterdir()
    session = Session.open(path)
    assert (texts(session), session.context().model) == (["again"], ("p", "m"))


@pytest.mark.root
@pytest.mark.skipif(not super_user, reason="only the super-user can mount a small file system")
def test_a_full_disk_costs_no_line(tmp_path):
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", tmp_path], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"a small file system cannot be mounted here: {mounted.stderr.decode().strip()}")
    try:
        session = started(tmp_path)
        kept, refused = ["hi"], 0
        filler = tmp_path / "filler"
        filler.write_bytes(b"x" * 150_000)
        for number in range(60):
            text = f"{number} " + "x" * 5000
            try:
                session.append_message(UserMessage(text))
                kept.append(text)
            except SessionFileError as problem:
                assert os.strerror(errno.ENOSPC).lower() in str(problem)
                refused += 1
            assert len(session.entries()) == len(kept)
            if number == 40:
                filler.unlink()
        assert refused > 5
        assert texts(session) == kept
        assert texts(Session.open(session.file)) == kept
        assert [raw["message"]["content"] for raw in entries_on_disk(session.file)] == kept
        assert session.warnings == []
        session.close()
    finally:
        del session
        # Lazily: where the test fails, its files are still open.
        subprocess.run(["umount", "--lazy", tmp_path], check=True)


def test_a_torn_line_that_cannot_be_taken_back_stays_and_is_closed(tmp_path, monkeypatch):
    session = started(tmp_path)
    real = os.write

    def write(fd, data):
        monkeypatch.setattr(os, "write", fail)
        return real(fd, bytes(data[:10]))

    def fail(fd, data):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "write", write)
    monkeypatch.setattr(os, "ftruncate", fail)
    with pytest.raises(SessionFileError, match="input/output error"):
        session.append_message(UserMessage("lost"))
    monkeypatch.undo()
    assert texts(session) == ["hi"]
    session.append_message(UserMessage("on"))
    assert [warning.line for warning in session.warnings] == [3]
    assert texts(session) == texts(Session.open(session.file)) == ["hi", "on"]


def test_others_who_write_into_a_torn_line_keep_theirs(tmp_path, monkeypatch):
    session = started(tmp_path)
    real = os.write
    theirs = b'{"type":"custom","id":"0a0b0c0d","parentId":null,"timestamp":"t","customType":"c"}\n'

    def write(fd, data):
        with session.file.open("ab") as file:
            real(fd, bytes(data[:10]))
            file.write(theirs)
        return 10

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(SessionFileError, match="middle of a line"):
        session.append_message(UserMessage("lost"))
    monkeypatch.undo()
    assert session.file.read_bytes().endswith(theirs)
    session.append_message(UserMessage("on"))
    assert texts(session) == texts(Session.open(session.file)) == ["hi", "on"]
    assert session.entry("0a0b0c0d").id == "0a0b0c0d"


def test_a_short_write_is_finished(tmp_path, monkeypatch):
    session = started(tmp_path)
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, bytes(data[:7])))
    session.append_message(UserMessage("x" * 100))
    monkeypatch.undo()
    assert texts(session) == texts(Session.open(session.file)) == ["hi", "x" * 100]


# What is imported late is imported early: another user may not be allowed to read the interpreter's files.
AS_ANOTHER = """
import datetime, fcntl, json, os, sys
from cantle_ai.messages import UserMessage
from cantle_session.errors import SessionFileError
from cantle_session.session import Session
from cantle_session.listing import list_sessions
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
try:
    session = Session.open(sys.argv[1])
    print([message.content for message in session.context().messages])
    session.append_message(UserMessage("on"))
except SessionFileError as problem:
    print(problem)
print(len(list_sessions(os.path.dirname(sys.argv[1]))))
"""


def test_a_file_that_may_only_be_read_is_read_and_not_written(open_folder):
    session = started(open_folder)
    session.close()
    session.file.chmod(0o444)
    before = session.file.read_bytes()
    told = run(AS_ANOTHER, session.file).splitlines()
    assert told[0] == "['hi']"
    assert "could not be opened for writing: permission denied" in told[1]
    assert told[2] == "1"
    assert session.file.read_bytes() == before


def test_a_file_that_may_not_be_read_is_named(open_folder):
    session = started(open_folder)
    session.close()
    session.file.chmod(0)
    told = run(AS_ANOTHER, session.file).splitlines()
    assert told == [f"{session.file}: could not be opened: permission denied", "0"]


@pytest.mark.root
@pytest.mark.skipif(not super_user, reason="only the super-user can become somebody else")
def test_a_folder_that_may_not_be_listed_is_named(open_folder):
    folder = open_folder / "closed"
    folder.mkdir(mode=0o700)
    code = (
        "import os, sys\n"
        "from cantle_session.errors import SessionFileError\n"
        "from cantle_session.listing import latest\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "try:\n    latest(sys.argv[1])\nexcept SessionFileError as problem:\n    print(problem)\n"
    )
    assert (
        run(code, folder).strip()
        == f"{folder}: could not be listed: permission denied; check its permissions"
    )


def test_closing_puts_what_was_written_on_the_disk(tmp_path, monkeypatch):
    synced = []
    session = started(tmp_path)
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.fstat(fd).st_ino))
    session.append_message(UserMessage("on"))
    assert synced == []
    session.close()
    assert synced[0] == session.file.stat().st_ino
    reader = Session.open(session.file)
    reader.close()
    assert len(synced) <= 2
