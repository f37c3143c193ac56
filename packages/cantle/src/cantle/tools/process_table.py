"""What the system tells of processes: `/proc` where there is one, else what `ps` lists.

Both give the same fields. `ps` knows neither sessions nor moments closer than a second, and costs as much as a
command; it is asked only when something has to be ended or named.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NamedTuple

__all__ = [
    "ProcessInfo",
    "adopted_by_us",
    "children_of",
    "read_process",
    "read_processes",
]

_PROC = Path("/proc")


class ProcessInfo(NamedTuple):
    """One process at one moment."""

    pid: int
    parent: int
    group: int
    session: int
    """0 where the system does not tell."""
    ended: bool
    """It does nothing any more, but has not been waited for."""
    born: str
    """When it was started, in the system's own form: with the number it names one process for good."""
    name: str
    """Of its program, perhaps shortened."""


def _has_proc() -> bool:
    """Whether processes can be looked up one by one, at little cost."""
    return sys.platform != "win32" and Path(_PROC, "self", "stat").exists()


def read_process(pid: int) -> ProcessInfo | None:
    """The process of that number, None when there is none. Raises OSError when no look can be taken."""
    return _stat(pid) if _has_proc() else (_listed(pid) or {}).get(pid)


def read_processes() -> dict[int, ProcessInfo] | None:
    """All processes that can be seen, by number; None when the system does not tell."""
    if not _has_proc():
        return _listed(None)
    try:
        numbers = [int(entry.name) for entry in os.scandir(_PROC) if entry.name.isdigit()]
        return {pid: info for pid in numbers if (info := _stat(pid)) is not None}
    except OSError:
        # No descriptor is left to look with.
        return None


def _stat(pid: int) -> ProcessInfo | None:
    # Not through pathlib: this is done for each process of the system.
    try:
        descriptor = os.open(f"{_PROC}/{pid}/stat", os.O_RDONLY)
        try:
            text = os.read(descriptor, 4_096).decode("utf-8", "replace")
        finally:
            os.close(descriptor)
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    head, _, tail = text.rpartition(")")
    fields = tail.split(None, 20)
    return ProcessInfo(
        pid=pid,
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        ended=fields[0] in "ZX",
        born=fields[19],
        name=_printable(head.partition("(")[2]),
    )


def _printable(name: str) -> str:
    """A name that a program may have given itself, for a line of text."""
    return name if name.isprintable() else "".join(sign if sign.isprintable() else "?" for sign in name)


def adopted_by_us() -> list[int] | None:
    """The children of this program's first thread, among them all that the system gave it; None when unknown.

    The system hands processes that have lost their parent to the first thread, so children that another
    thread has started may be missing.
    """
    own = str(os.getpid())
    try:
        return [int(pid) for pid in Path(_PROC, own, "task", own, "children").read_bytes().split()]
    except OSError:
        return None


def children_of(parent: int) -> list[int]:
    """The children of all threads of a process, as far as the system tells."""
    found: list[int] = []
    try:
        threads = list(Path(_PROC, str(parent), "task").iterdir())
    except OSError:
        return found
    for thread in threads:
        try:
            found.extend(map(int, Path(thread, "children").read_bytes().split()))
        except OSError:
            # That thread has ended, or the system has no such list.
            continue
    return found


def _listed(only: int | None) -> dict[int, ProcessInfo] | None:
    import subprocess

    which = ["-A"] if only is None else ["-p", str(only)]
    try:
        done = subprocess.run(
            ["ps", *which, "-o", "pid=,ppid=,pgid=,stat=,lstart=,comm="],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "LC_ALL": "C"},
            encoding="utf-8",
            errors="replace",
            check=False,
        )
    except OSError:
        return None
    rows = [fields for line in done.stdout.splitlines() if len(fields := line.split(None, 9)) == 10]
    if not rows and only is None:
        return None
    return {
        int(row[0]): ProcessInfo(
            pid=int(row[0]),
            parent=int(row[1]),
            group=int(row[2]),
            session=0,
            ended=row[3][:1] in "ZX",
            born=" ".join(row[4:9]),
            name=_printable(os.path.basename(row[9].strip())),  # noqa: PTH119 - it may be no path at all
        )
        for row in rows
    }
