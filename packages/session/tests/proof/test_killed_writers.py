"""Writers that are killed at any byte of what they write, alone and beside others."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from cantle_ai.messages import UserMessage
from cantle_session.session import Session
from cantle_session.storage.store import open_store
from packages.session.tests.proof.doomed_writer import Task, operate
from packages.session.tests.proof.strict_request import APIS, check_request
from packages.session.tests.support import encoded
from packages.session.tests.test_legacy import V1, V2
from tests.support.paths import ROOT
from tests.support.samples import samples

pytestmark = [
    pytest.mark.skipif(os.name == "nt", reason="limits, signals and fork are of POSIX systems"),
    pytest.mark.timeout(1200),
]

STORES = {"jsonl": "{}/sessions", "sqlite": "sqlite:{}/sessions.db"}
KILLS = samples(200, 20)


class Writers:
    """A process that carries out tasks, one at a time."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def begin(self, task: Task) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(msgspec.json.encode(task) + b"\n")
        self._process.stdin.flush()

    def end(self) -> tuple[list[dict[str, Any]], int]:
        """The entries that were acknowledged, and the signal that killed the writer, or 0."""
        assert self._process.stdout is not None
        told: list[dict[str, Any]] = []
        for line in self._process.stdout:
            what = json.loads(line)
            if "died" in what:
                return told, what["died"]
            assert "refused" not in what, what
            told.append(what)
        raise AssertionError(f"the parent of the writers ended with {self._process.wait()}")

    def run(self, task: Task) -> tuple[list[dict[str, Any]], int]:
        self.begin(task)
        return self.end()


@contextmanager
def writers() -> Iterator[Writers]:
    words = [sys.executable, "-m", "packages.session.tests.proof.doomed_writer"]
    with subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield Writers(process)
        assert process.stdin is not None
        process.stdin.close()


def started(store: str, folder: Path) -> Session:
    session = Session.create("/work", open_store(store.format(folder)))
    session.append_message(UserMessage("hi"))
    return session


def largest(folder: Path) -> int:
    """The size of the largest file under `folder`."""
    return max(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def sound_after(location: str, acknowledged: list[dict[str, Any]], api: str) -> dict[str, Any]:
    """Open the session, find in it all that was acknowledged, and go on. Gives the entry that went on."""
    with Session.open(location) as session:
        check_request(session.context().messages, api)
        before = [entry.to_json() for entry in session.entries()]
        known = {entry["id"]: entry for entry in before}
        assert [entry for entry in acknowledged if known.get(entry["id"]) != entry] == []
        on = session.append_message(UserMessage("on"))
        assert session.context().messages[-1] == on.message
    with Session.open(location) as session:
        assert [entry.to_json() for entry in session.entries()] == [*before, on.to_json()]
        assert session.leaf_id == on.id
    return on.to_json()


@pytest.mark.parametrize("name", STORES)
def test_a_writer_that_dies_at_any_byte_costs_no_acknowledged_line(name: str, tmp_path: Path) -> None:
    choose = Random(f"bytes {name}")
    died = count = 0
    with writers() as doomed:
        for number in range(KILLS):
            if number % 10 == 0:
                folder = tmp_path / str(number)
                folder.mkdir()
                with started(STORES[name], folder) as session:
                    location = session.location
                acknowledged: list[dict[str, Any]] = []
            kept = snapshot(name, location)
            limit = largest(folder) + choose.randrange(1, choose.choice([200, 2_000, 40_000]))
            told, how = doomed.run(Task(location, number, steps=60, limit=limit))
            died += how == signal.SIGXFSZ
            acknowledged += told
            count += len(told)
            assert snapshot(name, location)[: len(kept)] == kept
            acknowledged.append(sound_after(location, acknowledged, APIS[number % len(APIS)]))
    assert died > 0.9 * KILLS
    assert count > KILLS


def snapshot(name: str, location: str) -> bytes:
    """What may only grow: the bytes of a file, the lines of a database."""
    if name == "jsonl":
        return Path(location).read_bytes()
    with Session.open(location) as session:
        return b"".join(json.dumps(entry.to_json()).encode() + b"\n" for entry in session.entries())


@pytest.mark.parametrize("name", STORES)
def test_a_writer_that_dies_beside_another_costs_neither_a_line(name: str, tmp_path: Path) -> None:
    choose = Random(f"two {name}")
    died = 0
    with started(STORES[name], tmp_path) as session:
        location = session.location
    acknowledged: list[dict[str, Any]] = []
    with writers() as doomed, writers() as other:
        for number in range(samples(40, 5)):
            limit = largest(tmp_path) + choose.randrange(2_000, 60_000)
            other.begin(Task(location, 1000 + number, steps=25))
            told, how = doomed.run(Task(location, number, steps=60, limit=limit))
            died += how == signal.SIGXFSZ
            theirs, well = other.end()
            assert well == 0
            assert len(theirs) == 25
            acknowledged += told + theirs
            acknowledged.append(sound_after(location, acknowledged, APIS[number % len(APIS)]))
    assert died > 0


@pytest.mark.fault("F02")
@pytest.mark.fault("F04")
@pytest.mark.parametrize("name", STORES)
def test_a_writer_that_dies_in_its_first_write_leaves_a_session_or_none(name: str, tmp_path: Path) -> None:
    choose = Random(f"first {name}")
    died = 0
    with writers() as doomed:
        for number in range(samples(100, 12)):
            folder = tmp_path / str(number)
            folder.mkdir()
            place = STORES[name].format(folder)
            limit = choose.randrange(1, 900 if name == "jsonl" else 150_000)
            told, how = doomed.run(Task(place, number, 3, limit=limit, create=True))
            died += how == signal.SIGXFSZ
            store = open_store(place)
            found = store.sessions()
            assert len(found) <= 1
            if told:
                sound_after(found[0].location, told, APIS[number % len(APIS)])
            with started(STORES[name], folder) as fresh:
                assert fresh.location in [info.location for info in store.sessions()]
            store.close()
    assert died > 0


@pytest.mark.fault("F02")
@pytest.mark.parametrize("old", [V1, V2], ids=["version 1", "version 2"])
def test_a_writer_that_dies_while_it_brings_an_old_file_up_to_date_leaves_the_old_one(
    old: list[Any], tmp_path: Path
) -> None:
    original = encoded(*old)
    choose = Random(5)
    died = whole = 0
    with writers() as doomed:
        for number in range(samples(100, 12)):
            folder = tmp_path / str(number)
            folder.mkdir()
            file = folder / "s.jsonl"
            file.write_bytes(original)
            limit = choose.randrange(1, 2 * len(original))
            told, how = doomed.run(Task(str(file), number, 3, limit=limit))
            died += how == signal.SIGXFSZ
            if file.read_bytes() == original:
                assert told == []
            else:
                whole += 1
                assert json.loads(file.read_bytes().split(b"\n")[0])["version"] == 3
                kept = [path for path in folder.iterdir() if path != file and path.read_bytes() == original]
                assert len(kept) == 1
            sound_after(str(file), told, APIS[number % len(APIS)])
            with Session.open(file) as session:
                assert len(session.entries()) == len(old) + len(told)
    assert died > 0


@pytest.mark.fault("F02")
@pytest.mark.parametrize("there", STORES)
@pytest.mark.parametrize("here", STORES)
def test_a_move_that_dies_at_any_byte_leaves_the_session_whole(here: str, there: str, tmp_path: Path) -> None:
    choose = Random(f"{here} {there}")
    died = 0
    with writers() as doomed:
        for number in range(samples(50, 5)):
            old, new = tmp_path / f"old{number}", tmp_path / f"new{number}"
            old.mkdir()
            new.mkdir()
            with started(STORES[here], old) as session:
                for place in range(8):
                    operate(session, choose, place)
                location = session.location
                entries = [entry.to_json() for entry in session.entries()]
            limit = choose.randrange(1, 60_000)
            task = Task(location, number, 0, limit=limit, move_to=STORES[there].format(new))
            _, how = doomed.run(task)
            assert how in (0, signal.SIGXFSZ)
            died += how == signal.SIGXFSZ
            found = []
            for store in (open_store(STORES[here].format(old)), open_store(STORES[there].format(new))):
                found += [info.location for info in store.sessions()]
                store.close()
            assert found
            for each in found:
                with Session.open(each) as session:
                    assert [entry.to_json() for entry in session.entries()] == entries
                    assert [warning for warning in session.warnings if warning.line is not None] == []
    assert died > 0


def test_a_signal_at_any_moment_costs_no_acknowledged_line(tmp_path: Path) -> None:
    """SIGKILL from outside, as soon as a number of lines was told."""
    with started(STORES["sqlite"], tmp_path) as session:
        location = session.location
    acknowledged: list[dict[str, Any]] = []
    choose = Random(9)
    for number in range(samples(60, 4)):
        status, told = killed_after(location, number, choose.randrange(1, 12))
        assert status == -signal.SIGKILL
        acknowledged += told
        acknowledged.append(sound_after(location, acknowledged, APIS[number % len(APIS)]))


ENDLESS = """
import sys
from random import Random
import msgspec
from cantle_session.session import Session
from packages.session.tests.proof.doomed_writer import operate, tell
session, random = Session.open(sys.argv[1]), Random(int(sys.argv[2]))
for number in range(100_000):
    tell(operate(session, random, number).to_json())
"""


def killed_after(location: str, seed: int, lines: int) -> tuple[int, list[dict[str, Any]]]:
    """The exit status and the entries of a writer that is killed when it has told so many."""
    words = [sys.executable, "-c", ENDLESS, location, str(seed)]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        told = [process.stdout.readline() for _ in range(lines)]
        process.kill()
        told += process.stdout.readlines()
    return process.returncode, [json.loads(line) for line in told if line.endswith(b"\n")]


def test_the_operations_draw_every_kind_of_entry() -> None:
    session, random = Session.in_memory("/work"), Random(1)
    kinds = {operate(session, random, number).type for number in range(200)}
    assert kinds == {"message", "compaction", "context_edit", "label", "branch_summary"}
