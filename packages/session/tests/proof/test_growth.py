"""What sessions cost: in step with their entries, however they hang together; and nothing for what a compaction hides."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from cantle_ai.messages import UserMessage
from cantle_session.branch_summary import plan_branch_summary
from cantle_session.compaction.plan import NothingToCompact, plan_compaction
from cantle_session.compaction.settings import CompactionSettings
from cantle_session.exports import export_jsonl
from cantle_session.fates import fates
from cantle_session.forks import clone_session, copy_session
from cantle_session.imports import import_session
from cantle_session.repair import repair_session
from cantle_session.session import Session
from cantle_session.stats import session_stats
from cantle_session.storage.store import open_store
from packages.session.tests.proof.long_files import SHAPES, long_file
from tests.support.samples import full_run, samples

pytestmark = pytest.mark.timeout(1200)

COUNT = samples(10_000, 1_600)
"""Entries of the smaller session, enough not to be read whole where that can be spared; the other has twice as many."""
_SHAPES = list(SHAPES) if full_run() else ["deep", "wide"]


def calls_of(work: Callable[[], object]) -> int:
    """How many functions the work calls, those of C included."""
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        if event in ("call", "c_call"):
            count += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def memory_of(work: Callable[[], object]) -> int:
    """How many bytes more than before the work held at its height."""
    gc.collect()
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def opened(file: Path, use: Callable[[Session], object]) -> Callable[[], None]:
    def work() -> None:
        with Session.open(file) as session:
            use(session)

    return work


def _every_child(session: Session) -> None:
    for link in list(session.links()):
        session.children(link.id)
        session.parent(link.id)


def _move_about(session: Session) -> None:
    ids = [link.id for link in session.links()]
    for entry_id in ids[:: max(1, len(ids) // 100)]:
        session.branch(entry_id)
    session.reset_leaf()


def _label_all(session: Session) -> None:
    for link in list(session.links())[::20]:
        session.append_label(link.id, "x")
    assert session.labels()


def _edit_all(session: Session) -> None:
    for link in list(session.links())[::20]:
        session.append_context_edit(link.id, None)
    session.context()


def _find_ancestor(session: Session) -> None:
    ids = [link.id for link in session.links()]
    session.common_ancestor(ids[-1], ids[len(ids) // 2])


def _copy(session: Session) -> None:
    """The branch, and then all, in a file of its own, and back."""
    with tempfile.TemporaryDirectory() as folder:
        file = export_jsonl(session, f"{folder}/exported.jsonl")
        import_session(file, folder, new_id=True)
        assert repair_session(file).problems == []
        clone_session(session, folder).close()
        copy_session(session, folder).close()


def _plan(session: Session) -> None:
    settings = CompactionSettings(keep_recent_tokens=1)
    with suppress(NothingToCompact):  # of a branch of two messages
        plan_compaction(session, settings)
    plan_branch_summary(session, session.roots()[0])


def _append_many(session: Session) -> None:
    for number in range(sum(1 for _ in session.links()) // 20):
        session.append_message(UserMessage(str(number)))


USES: dict[str, Callable[[Session], object]] = {
    "context": Session.context,
    "projected": Session.projected,
    "entries": Session.entries,
    "path": Session.path,
    "roots": Session.roots,
    "usage": Session.usage,
    "links": lambda session: list(session.links()),
    "children": _every_child,
    "branch": _move_about,
    "labels": _label_all,
    "edits": _edit_all,
    "common ancestor": _find_ancestor,
    "append": _append_many,
    "copies": _copy,
    "fates": lambda session: list(fates(session)),
    "plans": _plan,
    "stats": session_stats,
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    """For each shape a file of :data:`COUNT` entries and one of twice as many."""
    folder = tmp_path_factory.mktemp("files")
    return {
        shape: [long_file(folder / f"{shape}-{count}.jsonl", count, shape) for count in (COUNT, 2 * COUNT)]
        for shape in _SHAPES
    }


@pytest.mark.fault("F06")
@pytest.mark.parametrize("shape", _SHAPES)
@pytest.mark.parametrize("use", USES)
def test_twice_the_entries_cost_twice_as_much(
    use: str, shape: str, files: dict[str, list[Path]], tmp_path: Path
) -> None:
    small, large = (calls_of(opened(copied(file, tmp_path), USES[use])) for file in files[shape])
    assert large < 2.1 * small


def copied(file: Path, folder: Path) -> Path:
    return Path(shutil.copy(file, folder))


@pytest.mark.fault("F06")
@pytest.mark.parametrize("shape", SHAPES)
def test_memory_grows_in_step_with_the_entries(shape: str, tmp_path: Path) -> None:
    count = max(2_000, COUNT // 5)
    small, large = (
        memory_of(opened(long_file(tmp_path / f"{size}.jsonl", size, shape), lambda each: each.roots()))
        for size in (count, 2 * count)
    )
    assert large < 2.2 * small + 100_000


def test_an_entry_costs_few_bytes_in_memory(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    count = samples(100_000, 10_000)
    file = long_file(tmp_path / "s.jsonl", count, "deep")
    with Session.open(file) as session:
        gc.collect()
        tracemalloc.start()
        assert len(session.roots()) == 1
        held = tracemalloc.get_traced_memory()[0] / count
        tracemalloc.stop()
    record_property("figure", f"the index of {count:,} entries: {held:.0f} bytes each")
    assert held < 300


class Reads:
    """Counts the bytes that are read from files."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bytes = 0
        real = os.pread

        def pread(fd: int, size: int, offset: int) -> bytes:
            data = real(fd, size, offset)
            self.bytes += len(data)
            return data

        monkeypatch.setattr(os, "pread", pread)


@pytest.mark.skipif(not hasattr(os, "pread"), reason="files are read another way on Windows")
def test_what_a_compaction_hides_is_not_read_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    figures: dict[int, Any] = {}
    for count in (1_000, samples(100_000, 10_000)):
        file = long_file(tmp_path / f"{count}.jsonl", count, "deep", compact_every=200)
        go_on = opened(file, Session.context)
        reads = Reads(monkeypatch)
        go_on()
        monkeypatch.undo()
        figures[count] = reads.bytes, calls_of(go_on), memory_of(go_on)
    (few_bytes, few_calls, little), (bytes_read, calls, memory) = figures.values()
    record_property("figure", f"of {file.stat().st_size:,} bytes {bytes_read:,} are read to go on")
    assert bytes_read <= few_bytes + 2**21
    assert bytes_read < 0.2 * file.stat().st_size
    assert calls <= 1.2 * few_calls
    assert memory <= 1.5 * little


def test_going_on_costs_the_same_however_much_is_hidden(tmp_path: Path) -> None:
    def go_on(session: Session) -> None:
        session.context()
        for number in range(20):
            session.append_message(UserMessage(str(number)))
        session.context()

    costs = []
    for count in (1_000, samples(100_000, 10_000)):
        file = long_file(tmp_path / f"{count}.jsonl", count, "deep", compact_every=200)
        costs.append(calls_of(opened(file, go_on)))
    assert costs[1] <= 1.5 * costs[0]


@pytest.mark.parametrize("location", ["{}/sessions", "sqlite:{}/s.db"])
def test_appending_and_following_cost_in_step_in_every_store(location: str, tmp_path: Path) -> None:
    count = samples(2_000, 200)
    costs = []
    for size in (count, 2 * count):
        folder = tmp_path / str(size)
        folder.mkdir()
        store = open_store(location.format(folder))
        writer = Session.create("/work", store)
        writer.append_message(UserMessage("hi"))
        reader = Session.open(writer.location)

        def work(writer: Session = writer, reader: Session = reader, size: int = size) -> None:
            for number in range(size):
                writer.append_message(UserMessage(str(number)))
                if number % 10 == 9:
                    assert len(reader.pull()) == 10
            with Session.open(writer.location) as again:
                assert len(again.context().messages) == 1 + size

        costs.append(calls_of(work))
        writer.close()
        reader.close()
        store.close()
    assert costs[1] < 2.1 * costs[0]
