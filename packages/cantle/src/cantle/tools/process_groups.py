"""Processes that are started, watched and ended together.

A command gets a session of its own, so one signal reaches all that it starts, and nothing it does to a
terminal reaches ours. What leaves that group by starting a session of its own is followed from parent to child
where the system tells (`/proc`). On Windows a command gets a process group, and `taskkill` walks the tree.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

__all__ = ["ProcessGroup"]

_PROC = Path("/proc")


class ProcessGroup:
    """A running command and everything in its process group, or that left it while its parent was one of them.

    Used by one thread. The group's number is ours as long as a process of it lives or its first one has not
    been waited for; nothing is sent to it afterwards. Nor is anything sent to a process that left the group once
    its number belongs to another one.
    """

    __slots__ = ("_emptied", "_seen", "process")

    def __init__(self, argv: Sequence[str], cwd: Path, variables: Mapping[str, str]) -> None:
        """Start the command with nothing to read, its output and errors in one pipe. Raises OSError, ValueError."""
        self._emptied = False
        self._seen: dict[int, bytes] = {}
        windows = sys.platform == "win32"
        flags = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0) | getattr(
            subprocess, "CREATE_NO_WINDOW", 0
        )
        self.process = subprocess.Popen(
            argv,
            cwd=cwd,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            bufsize=0,
            start_new_session=not windows,
            creationflags=flags if windows else 0,
        )

    @property
    def output(self) -> int:
        """The descriptor to read the output from."""
        assert self.process.stdout is not None
        return self.process.stdout.fileno()

    def close_output(self) -> None:
        if self.process.stdout is not None:
            self.process.stdout.close()

    def members(self) -> tuple[int, ...]:
        """The ids of its processes that live; 0 for one that can't be named."""
        alive = self.process.poll() is None
        if sys.platform == "win32":
            return (self.process.pid,) if alive else ()
        if not self._emptied:
            try:
                os.killpg(self.process.pid, 0)
            except ProcessLookupError:
                self._emptied = True
            except PermissionError:
                return (0,)
        if self._emptied and not self._seen:
            return ()
        if not _PROC.joinpath("self", "stat").exists():
            return (0,)
        self._look(alive)
        return tuple(sorted(self._seen))

    def terminate(self) -> None:
        """Ask every process of the group to end."""
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """End every process of the group."""
        self._send(signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)

    def _send(self, number: int) -> None:
        if sys.platform == "win32":
            _end_tree(self.process)
            return
        members = self.members()
        if members and not self._emptied:
            try:
                os.killpg(self.process.pid, number)
            except (ProcessLookupError, PermissionError):
                pass
        for pid, born in self._seen.items():
            now = _stat(pid)
            if now is not None and now.born == born and (self._emptied or now.group != self.process.pid):
                try:
                    os.kill(pid, number)
                except (ProcessLookupError, PermissionError):
                    pass

    def _look(self, alive: bool) -> None:
        """Find those that live: the group, what was seen of it before, and the children of both."""
        found = {int(name): stat for name in _numbers() if (stat := _stat(int(name))) is not None}
        children: dict[int, list[int]] = {}
        for pid, stat in found.items():
            children.setdefault(stat.parent, []).append(pid)
        family = {pid for pid, stat in found.items() if self._ours(pid, stat)}
        if alive:
            family.add(self.process.pid)
        waiting = list(family)
        while waiting:
            new = set(children.get(waiting.pop(), ())) - family
            family |= new
            waiting.extend(new)
        # A process that nobody has waited for keeps its number, but does nothing any more.
        self._seen = {
            pid: found[pid].born for pid in family if pid in found and found[pid].state not in (b"Z", b"X")
        }

    def _ours(self, pid: int, stat: _Stat) -> bool:
        in_group = not self._emptied and stat.group == self.process.pid
        return in_group or self._seen.get(pid) == stat.born


class _Stat(NamedTuple):
    """What the system tells of a process. `born` tells it from an earlier one of the same number."""

    state: bytes
    parent: int
    group: int
    born: bytes


def _numbers() -> list[str]:
    return [entry.name for entry in os.scandir(_PROC) if entry.name.isdigit()]


def _stat(pid: int) -> _Stat | None:
    try:
        fields = Path(_PROC, str(pid), "stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return _Stat(fields[0], int(fields[1]), int(fields[2]), fields[19])


def _end_tree(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        try:
            subprocess.run(
                ["taskkill", "/T", "/F", "/PID", str(process.pid)], capture_output=True, check=False
            )
        except OSError:
            process.kill()
