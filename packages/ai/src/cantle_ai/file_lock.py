"""A lock between processes on a file: advisory, and gone when its holder is."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["held_lock", "try_lock"]

_PAUSE = 0.01
"""Seconds between two looks at a lock that another process has."""

_ABANDONED = 60.0
"""Seconds after which a folder in the lock's place belongs to nobody."""

if sys.platform == "win32":

    def try_lock(descriptor: int) -> bool:
        """Lock the file for as long as it is open. False when another process has it."""
        import msvcrt

        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:

    def try_lock(descriptor: int) -> bool:
        """Lock the file for as long as it is open. False when another process has it.

        Raises OSError where the file system knows no locks.
        """
        import fcntl

        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


@contextmanager
def held_lock(path: Path, *, patience: float) -> Iterator[None]:
    """Hold the lock that the file `path` stands for, and wait for whoever has it. Blocks.

    The file is there while the lock is held. The reference makes a folder of that name while it writes, and waits
    as long as there is anything of that name, so the two keep out of each other's way; a file left behind would
    keep the reference out for ever. Raises TimeoutError after `patience` seconds, and what the system raises.
    """
    descriptor = _locked(path, time.monotonic() + patience)
    try:
        yield
    finally:
        if sys.platform == "win32":
            os.close(descriptor)  # an open file cannot be removed there, nor one that somebody waits for
        with suppress(OSError):
            path.unlink()
        if sys.platform != "win32":
            os.close(descriptor)


def _locked(path: Path, deadline: float) -> int:
    """A descriptor of the file at `path`, locked."""
    while True:
        descriptor = _opened(path, deadline)
        try:
            while not try_lock(descriptor):
                _pause(path, deadline)
            if _lies_at(path, descriptor):
                return descriptor
        except BaseException:  # raised again, whatever it is: no descriptor is left behind
            os.close(descriptor)
            raise
        os.close(descriptor)  # whoever had the lock has taken this file away with it


def _lies_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _opened(path: Path, deadline: float) -> int:
    while True:
        try:
            return os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        except OSError:
            if not path.is_dir():
                raise
        try:
            if time.time() - path.stat().st_mtime > _ABANDONED:
                path.rmdir()
        except OSError:  # its owner was faster
            continue
        _pause(path, deadline)


def _pause(path: Path, deadline: float) -> None:
    if time.monotonic() > deadline:
        raise TimeoutError(f"{path} is locked")
    time.sleep(_PAUSE)
