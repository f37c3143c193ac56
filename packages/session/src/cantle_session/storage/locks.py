"""Locks between processes, advisory, gone when their holder is, and never a file of their own.

Two of them, with `flock`: writers of a folder's sessions take turns by an exclusive lock on the folder, for
the length of one write; whoever has a session open holds a shared lock on its file, which tells others that
it is there. On Windows, where folders have no locks, the turn is a byte far behind the end of the file, and
presence is not known. A file system without locks is used without them: a write is still one `O_APPEND` write.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

__all__ = ["LockTimeout", "announce_presence", "is_alone", "turn"]

WAIT = 5.0
"""Seconds to wait for a turn. A write takes milliseconds, so that long means that something is wrong."""

_PAUSE = 0.002
_FAR = 1 << 40
_BUSY = {errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK}


class LockTimeout(Exception):
    """Somebody else kept the lock for too long."""


def turn(path: Path, *, wait: float | None = None) -> AbstractContextManager[None]:
    """Hold the turn to write the session file `path`. Raises :class:`LockTimeout` after `wait` seconds, or :data:`WAIT`."""
    return _turn(path, WAIT if wait is None else wait)


def _acquire(attempt: Callable[[], None], wait: float) -> None:
    deadline = time.monotonic() + wait
    while True:
        try:
            attempt()
            return
        except OSError as problem:
            if problem.errno not in _BUSY:
                return  # no locks here
        if time.monotonic() >= deadline:
            raise LockTimeout
        time.sleep(_PAUSE)


if sys.platform == "win32":

    def announce_presence(fd: int) -> bool:
        """Always false: others are not known here."""
        return False

    def is_alone(fd: int) -> bool:
        """Always false: others are not known here."""
        return False

    @contextmanager
    def _turn(path: Path, wait: float) -> Iterator[None]:
        import msvcrt

        fd = os.open(path, os.O_RDWR)
        try:
            os.lseek(fd, _FAR, os.SEEK_SET)
            _acquire(lambda: msvcrt.locking(fd, msvcrt.LK_NBLCK, 1), wait)
            try:
                yield
            finally:
                os.lseek(fd, _FAR, os.SEEK_SET)
                with suppress(OSError):
                    msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)
        finally:
            os.close(fd)

else:

    def announce_presence(fd: int) -> bool:
        """Hold a shared lock on an open session file as long as it is open. True if another holder was there before."""
        import fcntl

        alone = False
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            alone = True
        except OSError as problem:
            if problem.errno not in _BUSY:
                return False
        try:
            _acquire(lambda: fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB), WAIT)
        except LockTimeout:
            return True
        return not alone

    def is_alone(fd: int) -> bool:
        """Whether nobody else has announced that the file is open. The own announcement may be gone afterwards."""
        import fcntl

        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    @contextmanager
    def _turn(path: Path, wait: float) -> Iterator[None]:
        import fcntl

        try:
            fd = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            yield  # a folder that cannot be listed cannot be locked either
            return
        try:
            _acquire(lambda: fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB), wait)
            yield
        finally:
            os.close(fd)
