"""Several writers of one file, writers that die, and files that change under a session's hands."""

import itertools
import json
import os
import random
import signal
import subprocess
import sys

import pytest

from cantle_ai.messages import UserMessage
from cantle_session.errors import SessionFileError
from cantle_session.session import Session
from cantle_session.storage import locks
from packages.session.tests.support import conversation, encoded, entries_on_disk, file_of, texts
from tests.support.samples import samples

posix = pytest.mark.skipif(os.name == "nt", reason="locks on folders and presence are for POSIX systems")


def started(tmp_path):
    session = Session.create("/work", tmp_path)
    session.append_message(UserMessage("hi"))
    return session


def child(code, *words):
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, words)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def check_linked(path):
    """Every line is an entry, ids are unique, and every parent stands before its children."""
    seen = set()
    for raw in entries_on_disk(path):
        assert raw["id"] not in seen
        assert raw["parentId"] is None or raw["parentId"] in seen
        seen.add(raw["id"])
    return seen


@posix
def test_the_second_to_open_a_file_is_warned(tmp_path):
    first = started(tmp_path)
    second = Session.open(first.file)
    assert [str(warning) for warning in second.warnings] == [
        "another process has this session open; both can go on, each on a branch of its own"
    ]
    assert first.warnings == []
    second.close()
    first.close()
    assert Session.open(first.file).warnings == []


@posix
def test_a_reader_does_not_count_as_another_process(tmp_path):
    with started(tmp_path) as session:
        with Session.open(session.file, reading=True) as reader:
            assert reader.warnings == []
            session.append_message(UserMessage("more"))
            assert [entry.type for entry in reader.pull()] == ["message"]
        location = session.file
    with Session.open(location, reading=True), Session.open(location) as alone:
        assert alone.warnings == []


def test_each_writer_goes_on_from_its_own_leaf(tmp_path):
    first = started(tmp_path)
    second = Session.open(first.file)
    start = first.leaf_id
    for number in range(5):
        first.append_message(UserMessage(f"first {number}"))
        second.append_message(UserMessage(f"second {number}"))
    assert texts(first) == ["hi", *(f"first {number}" for number in range(5))]
    assert texts(second) == ["hi", *(f"second {number}" for number in range(5))]
    assert [e.parent_id for e in first.path()][1] == [e.parent_id for e in second.path()][1] == start
    assert len(first.entries()) == 10  # what the other added last is not known yet
    assert len(entries_on_disk(first.file)) == 11
    check_linked(first.file)
    assert [str(warning) for warning in first.warnings] == [
        "another process adds to this session; its entries are a branch of their own"
    ]
    assert len(second.warnings) == 1


def test_an_id_that_another_writer_has_taken_is_not_used_again(tmp_path, monkeypatch):
    from cantle_session import kept as module

    first = started(tmp_path)
    second = Session.open(first.file)
    theirs = second.append_message(UserMessage("theirs"))
    asked = []
    monkeypatch.setattr(module, "new_entry_id", lambda taken: asked.append(theirs.id in taken) or "0a0b0c0d")
    first.append_message(UserMessage("mine"))
    assert asked == [True]


WRITER = """
import sys
from cantle_ai.messages import UserMessage
from cantle_session.session import Session
session = Session.open(sys.argv[1])
print("open", flush=True)
sys.stdin.readline()
for number in range(int(sys.argv[2])):
    session.append_message(UserMessage(f"{sys.argv[3]} {number} " + "x" * (number % 50) * 200))
print(session.leaf_id, len(session.warnings), flush=True)
"""


@pytest.mark.timeout(120)
def test_writers_at_the_same_time_lose_no_line_and_each_has_its_branch(tmp_path):
    session = started(tmp_path)
    count = samples(1000, 150)
    writers = [child(WRITER, session.file, count, name) for name in ("a", "b", "c")]
    for writer in writers:
        assert writer.stdout.readline() == "open\n"
    for writer in writers:
        writer.stdin.write("go\n")
        writer.stdin.flush()
    leaves = []
    for writer in writers:
        out, _ = writer.communicate()
        assert writer.returncode == 0
        leaves.append(out.split()[0])
    assert len(check_linked(session.file)) == 1 + 3 * count
    parents = {raw["id"]: raw for raw in entries_on_disk(session.file)}
    for leaf, name in zip(leaves, "abc", strict=True):
        contents = []
        at = leaf
        while at is not None:
            contents.append(parents[at]["message"]["content"].split(" x")[0].strip())
            at = parents[at]["parentId"]
        assert contents[::-1] == ["hi", *(f"{name} {number}" for number in range(count))]


DOOMED = """
import os, signal, sys
from cantle_ai.messages import UserMessage
from cantle_session.session import Session

def tell(what):
    os.write(1, b"%b\\n" % str(what).encode())  # at once, or a kill could cut it

def write_until_killed(how, path):
    tell(os.getpid())
    session = Session.open(path) if how == "open" else Session.create("/work", path)
    for number in range(200):
        tell(session.append_message(UserMessage(f"{number} " + "x" * (number * 7919 % 70000))).id)
    signal.pause()

for line in sys.stdin:
    pid = os.fork()
    if pid == 0:
        write_until_killed(*line.split())
    os.waitpid(pid, 0)
    tell("dead")
"""


class Doomed:
    """Starts writers, one after another, that write until they are killed, or have written a lot."""

    def __init__(self):
        self._parent = child(DOOMED)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._parent.communicate()

    def killed_after(self, lines, how, path):
        """The ids that a writer told before it was killed, at least so many."""
        self._parent.stdin.write(f"{how} {path}\n")
        self._parent.stdin.flush()
        pid = int(self._line())
        told = [self._line() for _ in range(lines)]
        os.kill(pid, signal.SIGKILL)
        return told + list(iter(self._line, "dead"))

    def _line(self):
        line = self._parent.stdout.readline()
        assert line.endswith("\n"), f"the parent of the writers ended with {self._parent.wait()}"
        return line.rstrip("\n")


kills = pytest.mark.skipif(os.name == "nt", reason="SIGKILL and fork are of POSIX systems")


@kills
@pytest.mark.timeout(120)
def test_no_line_that_was_acknowledged_is_lost_to_a_kill(tmp_path):
    count = 0
    with Doomed() as writers:
        for block in range(samples(30, 3)):
            session = started(tmp_path)
            path = session.file
            session.close()
            acknowledged = set()
            for seed in range(block * 10, block * 10 + 10):
                acknowledged |= set(writers.killed_after(random.Random(seed).randrange(30), "open", path))
                session = Session.open(path)
                assert acknowledged <= {entry.id for entry in session.entries()}
                on = session.append_message(UserMessage("on"))
                acknowledged.add(on.id)
                assert session.context().messages[-1] == on.message
                session.close()
            count += len(acknowledged)
    assert count > samples(30, 3) * 80


@kills
def test_a_kill_around_the_first_message_leaves_a_session_or_none(tmp_path):
    with Doomed() as writers:
        for round_number in range(samples(200, 20)):
            folder = tmp_path / str(round_number)
            told = writers.killed_after(round_number % 2, "create", folder)
            for path in folder.iterdir() if folder.exists() else ():
                if path.stat().st_size == 0:
                    assert told == []
                else:
                    assert [e.id for e in Session.open(path).entries()][: len(told)] == told


def append_foreign(path, data):
    with path.open("ab") as file:
        file.write(data)


def test_lines_that_others_add_without_locks_are_taken_in(tmp_path):
    session = started(tmp_path)
    raw = {
        "type": "custom",
        "id": "0a0b0c0d",
        "parentId": session.leaf_id,
        "timestamp": "t",
        "customType": "c",
    }
    append_foreign(session.file, encoded(raw))
    session.append_message(UserMessage("on"))
    assert texts(session) == ["hi", "on"]
    assert session.entry("0a0b0c0d").to_json() == raw
    check_linked(session.file)


@pytest.mark.parametrize("piece", [b'{"type":"mess', b"\0\0\0\0", b"x"])
def test_a_line_that_others_left_torn_is_closed_and_named(tmp_path, piece):
    session = started(tmp_path)
    append_foreign(session.file, piece)
    session.append_message(UserMessage("on"))
    session.append_message(UserMessage("and on"))
    assert [warning.line for warning in session.warnings] == [3]
    assert texts(Session.open(session.file)) == ["hi", "on", "and on"]


def test_what_others_glue_to_a_torn_line_is_taken_in(tmp_path):
    session = started(tmp_path)
    append_foreign(session.file, b'{"type":"mess')
    session.append_message(UserMessage("on"))
    append_foreign(session.file, b'{"type":"mess')
    late = Session.open(session.file)
    raw = {
        "type": "custom",
        "id": "0a0b0c0d",
        "parentId": session.leaf_id,
        "timestamp": "t",
        "customType": "c",
    }
    append_foreign(session.file, encoded(raw))
    late.append_message(UserMessage("late"))
    for each in (late, Session.open(session.file)):
        assert each.entry("0a0b0c0d").to_json() == raw
        assert texts(each) == ["hi", "on", "late"]


def test_a_line_that_others_add_between_looking_and_writing_is_taken_in(tmp_path, monkeypatch):

    session = started(tmp_path)
    raw = {
        "type": "custom",
        "id": "0a0b0c0d",
        "parentId": session.leaf_id,
        "timestamp": "t",
        "customType": "c",
    }
    real = os.write

    def write(fd, data):
        append_foreign(session.file, encoded(raw))
        monkeypatch.setattr(os, "write", real)
        return real(fd, data)

    monkeypatch.setattr(os, "write", write)
    session.append_message(UserMessage("on"))
    session.append_message(UserMessage("and on"))
    assert texts(session) == ["hi", "on", "and on"]
    assert session.entry("0a0b0c0d").to_json() == raw
    assert [entry.to_json() for entry in session.path()] == [
        entry for entry in entries_on_disk(session.file) if entry["id"] != "0a0b0c0d"
    ]


@pytest.mark.parametrize("change", ["deleted", "replaced", "shortened"])
def test_a_file_that_is_not_what_it_was_is_not_written_to(tmp_path, change):
    session = started(tmp_path)
    session.append_message(UserMessage("more"))
    content = session.file.read_bytes()
    if change == "deleted":
        session.file.unlink()
    elif change == "replaced":
        fresh = tmp_path / "fresh"
        fresh.write_bytes(content)
        fresh.replace(session.file)
    else:
        os.truncate(session.file, len(content) // 2)
    leaf = session.leaf_id
    after = session.file.read_bytes() if session.file.exists() else None
    for _ in range(2):
        with pytest.raises(SessionFileError) as caught:
            session.append_message(UserMessage("lost"))
    assert str(session.file) in str(caught.value)
    assert (session.file.read_bytes() if session.file.exists() else None) == after
    assert session.leaf_id == leaf


@posix
@pytest.mark.parametrize("change", [os.unlink, lambda path: path.with_name("new").replace(path)])
def test_who_follows_a_file_is_told_that_it_is_gone(tmp_path, change):
    with Session.create(tmp_path, tmp_path) as session:
        session.append_message(UserMessage("Hello"))
        file = file_of(session)
        (tmp_path / "new").write_bytes(file.read_bytes())
        with Session.open(file, reading=True) as reader:
            change(file)
            with pytest.raises(SessionFileError, match="no more of it can be seen"):
                list(reader.follow(30))


def test_a_lock_that_is_never_given_back_is_waited_for_and_then_named(tmp_path, monkeypatch):
    session = started(tmp_path)
    content, leaf = session.file.read_bytes(), session.leaf_id
    code = "import fcntl, os, sys; fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX); print(); input()"
    holder = child(code, tmp_path)
    holder.stdout.readline()
    monkeypatch.setattr(locks, "WAIT", 0.05)
    with pytest.raises(SessionFileError, match="locked"):
        session.append_message(UserMessage("lost"))
    assert (session.file.read_bytes(), session.leaf_id) == (content, leaf)
    assert texts(Session.open(session.file)) == ["hi"]
    holder.communicate("\n")
    session.append_message(UserMessage("on"))
    assert texts(session) == ["hi", "on"]


@posix
def test_a_file_system_without_locks_is_used_without_them(tmp_path, monkeypatch):
    import fcntl

    def flock(fd, operation):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)
    session = started(tmp_path)
    session.append_message(UserMessage("on"))
    assert (texts(session), session.warnings) == (["hi", "on"], [])


def test_a_child_does_not_keep_the_file(tmp_path):
    session = started(tmp_path)
    sleeper = child("input()")
    session.close()
    assert Session.open(session.file).warnings == []
    sleeper.communicate("\n")


@pytest.mark.parametrize("seed", range(samples(40, 8)))
def test_handles_that_come_and_go_keep_every_line(tmp_path, seed):
    choice = random.Random(seed)
    first = started(tmp_path)
    handles = [first]
    added = {first.leaf_id: ["hi"]}
    messages = (message for message in conversation(10_000))
    for _, message in zip(range(120), messages, strict=False):
        handle = choice.choice(handles)
        what = choice.random()
        if what < 0.1 and len(handles) < 4:
            handles.append(Session.open(first.file))
        elif what < 0.15 and len(handles) > 1:
            handles.remove(handle)
            handle.close()
        else:
            before = added[handle.leaf_id]
            entry = handle.append_message(message)
            added[entry.id] = [*before, texts(handle)[-1]]
        for each in handles:
            assert texts(each) == added[each.leaf_id]
    assert check_linked(first.file) == set(added)
    ids = [raw["id"] for raw in entries_on_disk(first.file)]
    again = Session.open(first.file)
    assert [entry.id for entry in again.entries()] == ids
    assert texts(again) == added[ids[-1]]
    assert [json.dumps(entry.to_json()) for entry in again.entries()] == [
        json.dumps(raw) for raw in entries_on_disk(first.file)
    ]


def test_reading_changes_nothing(tmp_path):
    session = started(tmp_path)
    session.close()
    os.utime(session.file, ns=(5, 5))
    before = (session.file.stat(), sorted(tmp_path.iterdir()))
    for _ in itertools.repeat(None, 2):
        with Session.open(session.file) as again:
            again.context(), again.entries(), again.name
    assert (session.file.stat().st_mtime_ns, sorted(tmp_path.iterdir())) == (5, before[1])
