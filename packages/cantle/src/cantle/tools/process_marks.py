"""Marks by which the processes of a command are known after they have left its group and lost their parents.

A mark is inherited from process to process, and two things carry it:

- a variable in the environment, `CANTLE_COMMAND_ID`, which holds the ids of this command and of all it runs in;
- on Linux a limit that limits nothing: the time a real-time process may work without a pause, more than a
  hundred thousand years. It also stays where a program clears or overwrites its environment, as servers do to
  show a title, and can be read of a process that has ended.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

__all__ = ["COMMAND_ID", "Mark"]

COMMAND_ID = "CANTLE_COMMAND_ID"
"""The variable; ids are parted by `/`, the outermost command first."""

_PROC = Path("/proc")


class Mark:
    """What tells the processes of one command from all others."""

    __slots__ = ("_id", "_limit")

    def __init__(self) -> None:
        self._id = os.urandom(8).hex()
        self._limit = 1 << 62 | int(self._id, 16) >> 2

    def variables(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """The environment with the mark in it."""
        outer = inherited.get(COMMAND_ID)
        return {**inherited, COMMAND_ID: f"{outer}/{self._id}" if outer else self._id}

    def put_on(self, pid: int) -> None:
        """Mark a process that has just been started, if the system can."""
        try:
            import resource

            kind, change = resource.RLIMIT_RTTIME, resource.prlimit
        except (ImportError, AttributeError):
            return
        try:
            change(pid, kind, (self._limit, change(pid, kind)[1]))
        except (OSError, ValueError):
            # The variable has to do.
            pass

    def is_on(self, pid: int) -> bool:
        """Whether that process carries it, as far as the system tells."""
        return self._id.encode() in _read(pid, "environ") or b" %d " % self._limit in _read(pid, "limits")


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(_PROC, str(pid), name).read_bytes()
    except OSError:
        return b""
