"""Marks by which the processes of a command are known after they have left its group and lost their parents.

A mark is inherited from process to process, and two things carry it:

- a variable in the environment, `CANTLE_COMMAND_ID`, which holds the ids of this command and of all it runs in;
- on Linux the limit of file locks, a number that limits nothing since Linux 2.6 and is still kept, inherited and
  shown. It also stays where a program clears or overwrites its environment, as servers do to show a title, and
  can be read of a process that has ended.

A process has its limits from the moment it is made, so this program wears the number while it starts a command.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from cantle.tools.process_table import children_of

__all__ = ["COMMAND_ID", "Mark", "marks_of"]

COMMAND_ID = "CANTLE_COMMAND_ID"
"""The variable; ids are parted by `/`, the outermost command first."""

_PROC = Path("/proc")
_FILE_LOCKS = 10
"""RLIMIT_LOCKS, for which Python has no name."""

_starting = Lock()


class Mark:
    """What tells the processes of one command from all others."""

    __slots__ = ("_before", "_id", "_limit", "names")

    def __init__(self) -> None:
        self._id = os.urandom(8).hex()
        self._limit = 1 << 62 | int(self._id, 16) >> 2
        self._before: int | None = None
        """The limit that this program had before it wore the mark."""
        self.names = (self._id.encode(), b"%d" % self._limit)
        """What :func:`marks_of` may give for a process that carries it."""

    def variables(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """The environment with the mark in it."""
        outer = inherited.get(COMMAND_ID)
        return {**inherited, COMMAND_ID: f"{outer}/{self._id}" if outer else self._id}

    @contextmanager
    def worn(self) -> Iterator[None]:
        """While this is entered, processes that are started carry the mark, if the system can do it."""
        with _starting:
            self._before = _replace_limit(self._limit)
            try:
                yield
            finally:
                if self._before is not None:
                    _replace_limit(self._before)

    def take_off_others(self) -> None:
        """Take it off what other threads of this program have started in the same moment."""
        if self._before is None:
            return
        while others := [pid for pid in children_of(os.getpid()) if self._is_on_other(pid)]:
            # They may start others and end meanwhile, so all are looked at again.
            taken = [self._take_off(pid, self._before) for pid in others]
            if not any(taken):
                return

    def _is_on_other(self, pid: int) -> bool:
        return (
            self._is_limit_of(pid)
            and bool(variables := _read(pid, "environ"))
            and self._id.encode() not in variables
        )

    def _take_off(self, pid: int, limit: int) -> bool:
        """Give that process, and what it has started with the mark, a limit. Whether it has taken it."""
        # Not the limit of this moment, which may be another command's mark.
        taken = _give_limit(pid, limit)
        for child in children_of(pid):
            if self._is_limit_of(child):
                self._take_off(child, limit)
        return taken

    def _is_limit_of(self, pid: int) -> bool:
        return _limit_of(pid) == self.names[1]


def marks_of(pid: int) -> set[bytes]:
    """The names of all marks that a process carries, as far as the system tells, and perhaps some other number."""
    _, _, rest = _read(pid, "environ").partition(COMMAND_ID.encode() + b"=")
    return {*rest.partition(b"\0")[0].split(b"/"), _limit_of(pid)}


def _limit_of(pid: int) -> bytes:
    _, _, rest = _read(pid, "limits").partition(b"Max file locks")
    return rest.lstrip().partition(b" ")[0]


if sys.platform == "linux":

    def _replace_limit(limit: int) -> int | None:
        """Wear another limit; the one before, None when this one can't be worn."""
        import resource

        before, most = resource.getrlimit(_FILE_LOCKS)
        try:
            resource.setrlimit(_FILE_LOCKS, (limit, most))
        except (OSError, ValueError):
            # Someone has set a lower one; the variable has to do.
            return None
        return before

    def _give_limit(pid: int, limit: int) -> bool:
        import resource

        try:
            resource.prlimit(pid, _FILE_LOCKS, (limit, resource.getrlimit(_FILE_LOCKS)[1]))
        except OSError:
            # It has ended, or become another user's, which nobody can end from here.
            return False
        return True

else:

    def _replace_limit(limit: int) -> int | None:
        return None

    def _give_limit(pid: int, limit: int) -> bool:
        return False


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(_PROC, str(pid), name).read_bytes()
    except OSError:
        return b""
