"""Files of versions 1 and 2."""

import json
import os
import signal
import subprocess
import sys

import pytest

from cantle_ai.messages import UserMessage
from cantle_session.errors import SessionFileError
from cantle_session.exports import export_jsonl
from cantle_session.forks import clone_session, copy_session
from cantle_session.imports import import_session
from cantle_session.listing import find_session, list_sessions
from cantle_session.messages import ExtensionMessage
from cantle_session.session import Session
from cantle_session.stats import session_stats
from packages.session.tests.support import (
    HEADER,
    answer,
    chain,
    encoded,
    entries_on_disk,
    file_of,
    opened,
    said,
    texts,
    user,
    write,
)
from tests.support.samples import samples

NO_VERSION = {key: value for key, value in HEADER.items() if key != "version"}


def bare(*entries):
    """Entries as version 1 wrote them."""
    return [{k: v for k, v in entry.items() if k not in {"id", "parentId"}} for entry in chain(*entries)]


V1 = [
    NO_VERSION,
    *bare(
        said(user("1")),
        {"type": "model_change", "provider": "p", "modelId": "m"},
        said(answer("2")),
        {"type": "compaction", "summary": "sum", "firstKeptEntryIndex": 3, "tokensBefore": 5},
        said(user("3")),
    ),
]
V2 = [
    {**HEADER, "version": 2},
    *chain(
        said({"role": "hookMessage", "customType": "c", "content": "note", "display": True, "timestamp": 1}),
        said(user("1")),
        said(user("left")),
        said(user("2"), parentId="00000001"),
    ),
]


@pytest.mark.parity("sessions.version-1")
def test_version_1_is_read_as_a_row_of_entries(tmp_path):
    session = opened(tmp_path / "s.jsonl", *V1)
    assert texts(session) == ["<compactionSummary> sum", "2", "3"]
    assert session.context().model == ("p", "m1")
    assert session.header.version == 3
    assert session.warnings == []
    ids = [entry.id for entry in session.entries()]
    assert len(set(ids)) == 5
    assert [entry.parent_id for entry in session.entries()] == [None, *ids[:-1]]
    assert [entry.id for entry in Session.open(file_of(session)).entries()] == ids


@pytest.mark.parametrize("index", [None, -1, 0, 4, 99, "1"])
def test_a_compaction_of_version_1_that_names_no_entry_keeps_none(tmp_path, index):
    lines = bare(said(user("1")), said(user("2")), {"type": "compaction", "summary": "s", "tokensBefore": 1})
    lines[2]["firstKeptEntryIndex"] = index
    assert texts(opened(tmp_path / "s.jsonl", NO_VERSION, *lines)) == ["<compactionSummary> s"]


@pytest.mark.parity("sessions.version-2")
def test_version_2_is_read_with_its_hook_messages_as_custom_ones(tmp_path):
    session = opened(tmp_path / "s.jsonl", *V2)
    assert texts(session) == ["note", "1", "2"]
    assert isinstance(session.context().messages[0], ExtensionMessage)


@pytest.mark.parity("sessions.old-versions-on-disk")
@pytest.mark.parametrize(("lines", "version"), [(V1, 1), (V2, 2)])
def test_reading_an_old_file_does_not_change_it(tmp_path, lines, version):
    session = opened(tmp_path / "s.jsonl", *lines)
    session.context()
    session.close()
    assert file_of(session).read_bytes() == encoded(*lines)
    assert list(tmp_path.iterdir()) == [session.file]


@pytest.mark.parity("sessions.old-versions-on-disk")
@pytest.mark.parametrize(("lines", "version"), [(V1, 1), (V2, 2)])
def test_the_first_append_writes_a_file_of_version_3_and_keeps_the_old_one(tmp_path, lines, version):
    path = write(tmp_path / "s.jsonl", *lines)
    path.chmod(0o640)
    session = Session.open(path)
    before = texts(session)
    old = [entry.to_json() for entry in session.entries()]
    session.append_message(UserMessage("on"))
    session.append_message(UserMessage("and on"))
    kept = tmp_path / f"s.jsonl.v{version}"
    assert kept.read_bytes() == encoded(*lines)
    assert sorted(tmp_path.iterdir()) == [path, kept]
    if os.name != "nt":
        assert path.stat().st_mode & 0o777 == 0o640
    assert json.loads(path.read_bytes().split(b"\n")[0]) == HEADER
    assert entries_on_disk(path)[:-2] == old
    for each in (session, Session.open(path)):
        assert texts(each) == [*before, "on", "and on"]
    session.close()


def test_a_second_old_file_of_that_name_is_kept_too(tmp_path):
    (tmp_path / "s.jsonl.v1").write_bytes(b"mine")
    opened(tmp_path / "s.jsonl", *V1).append_message(UserMessage("on"))
    assert (tmp_path / "s.jsonl.v1").read_bytes() == b"mine"
    assert (tmp_path / "s.jsonl.v1.2").read_bytes() == encoded(*V1)


def test_an_old_file_with_foreign_and_torn_lines_keeps_them(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_bytes(encoded(V1[0], V1[1], "hello", V1[3]) + b'{"type":"mess')
    session = Session.open(path)
    assert texts(session) == ["1", "2"]
    assert [warning.line for warning in session.warnings] == [3, 5]
    session.append_message(UserMessage("on"))
    assert path.read_bytes().split(b"\n")[2] == b"hello"
    assert path.read_bytes().split(b"\n")[4] == b'{"type":"mess'
    assert texts(Session.open(path)) == ["1", "2", "on"]


def test_an_old_file_that_others_change_is_not_replaced(tmp_path):
    session = opened(tmp_path / "s.jsonl", *V2)
    with file_of(session).open("ab") as file:
        file.write(encoded({**V2[1], "id": "0a0b0c0d"}))
    before = file_of(session).read_bytes()
    with pytest.raises(SessionFileError, match="open the session again"):
        session.append_message(UserMessage("on"))
    assert file_of(session).read_bytes() == before
    assert list(tmp_path.iterdir()) == [session.file]


def test_an_old_file_that_cannot_be_replaced_stays(tmp_path, monkeypatch):
    session = opened(tmp_path / "s.jsonl", *V2)

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(SessionFileError, match="no space left"):
        session.append_message(UserMessage("on"))
    monkeypatch.undo()
    assert file_of(session).read_bytes() == encoded(*V2)
    assert list(tmp_path.iterdir()) == [session.file]
    session.append_message(UserMessage("on"))
    assert texts(Session.open(file_of(session)))[-1] == "on"


@pytest.mark.parity("sessions.old-versions-on-disk")
@pytest.mark.parametrize("lines", [V1, V2])
def test_nothing_but_an_append_changes_an_old_file_or_adds_one_beside_it(tmp_path, lines):
    (tmp_path / "s").mkdir()
    path = write(tmp_path / "s" / "s.jsonl", *lines)
    before = path.read_bytes(), path.stat().st_mtime_ns
    list_sessions(path.parent)
    find_session("0197a", path.parent)
    with Session.open(path) as session:
        (session.context(), session.entries(), session.usage(), session.labels(), session_stats(session))
        session.branch(session.entries()[0].id)
        export_jsonl(session, tmp_path / "out.jsonl")
        clone_session(session, tmp_path / "clones").close()
        copy_session(session, tmp_path / "copies").close()
    import_session(path, tmp_path / "imported")
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert list(path.parent.iterdir()) == [path]


APPEND = """
import sys
from cantle_ai.messages import UserMessage
from cantle_session.session import Session
session = Session.open(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
session.append_message(UserMessage("on"))
print("kept", flush=True)
sys.stdin.readline()
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX systems")
@pytest.mark.timeout(60)
def test_a_kill_while_an_old_file_is_upgraded_costs_nothing(tmp_path):
    path = tmp_path / "s.jsonl"
    old = encoded(V2[0], *V2[1:], *chain(*[said(user("x" * 5000), id=f"{n:08x}") for n in range(10, 400)]))
    for number in range(samples(60, 8)):
        for left in tmp_path.iterdir():
            left.unlink()
        path.write_bytes(old)
        worker = subprocess.Popen(
            [sys.executable, "-c", APPEND, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        with worker:
            assert worker.stdin is not None and worker.stdout is not None
            assert worker.stdout.readline() == b"ready\n"
            worker.stdin.write(b"\n")
            worker.stdin.flush()
            # Something new in the folder: the file that is being written, the second name, or the end of it.
            while len(list(tmp_path.iterdir())) < 2 + number % 2 and path.read_bytes()[:60] == old[:60]:
                assert worker.poll() is None
            worker.send_signal(signal.SIGKILL)
        # The original is there, whole: in its place still, or beside what took it.
        assert old in {each.read_bytes() for each in (path, tmp_path / "s.jsonl.v2") if each.exists()}
        with Session.open(path) as session:
            assert session.warnings == []
            session.append_message(UserMessage("and on"))
            assert texts(session)[-1] == "and on"
        assert entries_on_disk(path)[-1]["message"]["content"] == "and on"
