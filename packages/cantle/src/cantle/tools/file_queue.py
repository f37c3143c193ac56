"""Changes of one file happen one after the other, in the order in which they were asked for.

A file is known by its real path and, while a change of it runs, by its device and inode as well: two
spellings of one name on a file system that ignores case, or two hard links, meet there. The second
lock is always taken after the first and only one of each is held, so nobody waits in a circle.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeAlias

__all__ = ["FileQueue"]

_Key: TypeAlias = "str | tuple[int, int]"


class FileQueue:
    """The turns that calls of one event loop take at files."""

    __slots__ = ("_locks",)

    def __init__(self) -> None:
        self._locks: dict[_Key, tuple[asyncio.Lock, int]] = {}

    @asynccontextmanager
    async def turn(self, path: Path) -> AsyncIterator[Path]:
        """Wait for the turn of `path` and hold it. Gives the real path, symbolic links followed."""
        real = os.path.realpath(path)
        async with self._held(os.path.normcase(real)):
            try:
                found = Path(real).stat()
            except OSError:
                yield Path(real)
                return
            async with self._held((found.st_dev, found.st_ino)):
                yield Path(real)

    @asynccontextmanager
    async def _held(self, key: _Key) -> AsyncIterator[None]:
        lock, users = self._locks.get(key) or (asyncio.Lock(), 0)
        self._locks[key] = (lock, users + 1)
        try:
            async with lock:
                yield
        finally:
            lock, users = self._locks[key]
            if users == 1:
                del self._locks[key]
            else:
                self._locks[key] = (lock, users - 1)
