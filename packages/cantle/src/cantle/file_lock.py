"""A lock between processes on an open file: advisory, and gone when its holder is."""

from __future__ import annotations

import sys

__all__ = ["try_lock"]

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
