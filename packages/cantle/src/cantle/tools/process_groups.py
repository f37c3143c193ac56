"""Processes that are started, watched and ended together.

A command gets a session of its own, so one signal reaches all that it starts, and nothing it does to a
terminal reaches ours. On Windows it gets a process group, and `taskkill` walks the tree.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["ProcessGroup"]

_PROC = Path("/proc")


class ProcessGroup:
    """A running command and everything in its process group.

    Used by one thread. The group's number is ours as long as a process of it lives or its first one has not
    been waited for; nothing is sent to it afterwards.
    """

    __slots__ = ("_emptied", "process")

    def __init__(self, argv: Sequence[str], cwd: Path, variables: Mapping[str, str]) -> None:
        """Start the command with nothing to read, its output and errors in one pipe. Raises OSError, ValueError."""
        self._emptied = False
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
        """The ids of the processes of the group that live; 0 for one that can't be named."""
        if self._emptied:
            return ()
        alive = self.process.poll() is None
        if sys.platform == "win32":
            return (self.process.pid,) if alive else ()
        try:
            os.killpg(self.process.pid, 0)
        except ProcessLookupError:
            self._emptied = True
            return ()
        except PermissionError:
            return (0,)
        return _listed(self.process.pid) if _PROC.joinpath("self", "stat").exists() else (0,)

    def terminate(self) -> None:
        """Ask every process of the group to end."""
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """End every process of the group."""
        self._send(signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)

    def _send(self, number: int) -> None:
        if sys.platform == "win32":
            _end_tree(self.process)
        elif self.members():
            try:
                os.killpg(self.process.pid, number)
            except (ProcessLookupError, PermissionError):
                pass


def _listed(group: int) -> tuple[int, ...]:
    # A process that nobody has waited for keeps its place in the group, but does nothing any more.
    found = []
    for entry in os.scandir(_PROC):
        if entry.name.isdigit():
            try:
                fields = Path(entry.path, "stat").read_bytes().rpartition(b")")[2].split()
            except OSError:
                continue
            if int(fields[2]) == group and fields[0] not in (b"Z", b"X"):
                found.append(int(entry.name))
    return tuple(sorted(found))


def _end_tree(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        try:
            subprocess.run(
                ["taskkill", "/T", "/F", "/PID", str(process.pid)], capture_output=True, check=False
            )
        except OSError:
            process.kill()
