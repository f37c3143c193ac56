"""Snapshots of many processes, shared by all commands that want one at the same time.

A snapshot costs in step with what runs on the machine. When a hundred commands are aborted together, each wants
one every few milliseconds; whoever asks before one begins is content with it, so there are few, and all that a
command asks of one costs in step with its own processes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Lock

from cantle.tools.process_marks import Mark, marks_of
from cantle.tools.process_signals import own_session
from cantle.tools.process_table import ProcessInfo, adopted_by_us, read_process, read_processes

__all__ = ["Snapshot", "snapshot_of_adopted", "snapshot_of_all"]


class Snapshot:
    """Processes at one moment, by what ties them to a command."""

    __slots__ = ("_children", "_groups", "_lock", "_marked", "table")

    def __init__(self, table: Mapping[int, ProcessInfo]) -> None:
        self.table = table
        self._lock = Lock()
        self._children: dict[int, list[ProcessInfo]] = {}
        self._groups: dict[int, list[ProcessInfo]] = {}
        self._marked: dict[int, dict[bytes, list[ProcessInfo]]] = {}
        for info in table.values():
            self._children.setdefault(info.parent, []).append(info)
            for number in {info.group, info.session}:
                self._groups.setdefault(number, []).append(info)

    def children_of(self, pid: int) -> Sequence[ProcessInfo]:
        return self._children.get(pid, ())

    def started_by(self, leader: int) -> Sequence[ProcessInfo]:
        """Those in the process group or the session that this process has begun."""
        return self._groups.get(leader, ())

    def marked(self, mark: Mark, parent: int) -> Iterable[ProcessInfo]:
        """The children of `parent` that carry the mark.

        One of our own session is none of them: it can't have come from a command, which has another.
        """
        with self._lock:
            if parent not in self._marked:
                self._marked[parent] = self._marks_below(parent)
            marked = self._marked[parent]
        return [info for name in mark.names for info in marked.get(name, ())]

    def _marks_below(self, parent: int) -> dict[bytes, list[ProcessInfo]]:
        found: dict[bytes, list[ProcessInfo]] = {}
        for info in self.children_of(parent):
            if info.session != own_session():
                for name in marks_of(info.pid):
                    found.setdefault(name, []).append(info)
        return found


class _Shared:
    """The latest snapshot of a kind. It serves all who asked before it began."""

    def __init__(self, take: Callable[[], Mapping[int, ProcessInfo] | None]) -> None:
        self._take = take
        self._lock = Lock()
        self._begun = 0.0
        self._latest: Snapshot | None = None

    def __call__(self) -> Snapshot | None:
        asked = time.monotonic()
        with self._lock:
            if self._begun <= asked:
                begun = time.monotonic()
                table = self._take()
                self._latest, self._begun = None if table is None else Snapshot(table), begun
            return self._latest


def _read_adopted() -> dict[int, ProcessInfo] | None:
    pids = adopted_by_us()
    return None if pids is None else {pid: info for pid in pids if (info := read_process(pid)) is not None}


_all, _adopted = _Shared(read_processes), _Shared(_read_adopted)


def snapshot_of_all() -> Snapshot | None:
    """All processes that can be seen; None when the system does not tell."""
    return _all()


def snapshot_of_adopted() -> Snapshot | None:
    """What the system gave us, at little cost; None when it does not tell. Raises OSError when none can be taken."""
    return _adopted()
