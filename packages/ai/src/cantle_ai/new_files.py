"""Files that are written beside another one and then take its place, so that a reader sees the old or the new.

A process that is killed meanwhile leaves such a file behind. Whoever next makes one in that folder removes it:
a file of this kind is locked as long as its writer lives, so one that can be locked belongs to nobody. On
Windows, where no lock can be kept over the change of names, it has to be an hour old instead. Where the file
system knows no locks, nothing is removed.

The names are `.cantle-<12 hexadecimal digits>.tmp`.
"""

from __future__ import annotations

import os
import re
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["NewFile", "new_file"]

_NAME = re.compile(r"\.cantle-[0-9a-f]{12}\.tmp")
_OLD = 3600.0
"""Seconds after which a file without a lock belongs to nobody."""

_BINARY = getattr(os, "O_BINARY", 0)

_cleared: set[str] = set()
"""Folders that this process has looked through. Once is enough, and a look costs what the folder holds."""


class NewFile:
    """A file at `path`, open for writing at `descriptor`, until it takes its place."""

    __slots__ = ("descriptor", "path")

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self.descriptor = descriptor

    def write(self, data: bytes) -> None:
        """Append all of `data`."""
        view = memoryview(data)
        while view:
            view = view[os.write(self.descriptor, view) :]

    def replace(self, target: Path) -> None:
        """Become `target`, instead of the file that may be there."""
        if sys.platform == "win32":
            self.close()  # an open file keeps its name there
        self.path.replace(target)

    def become(self, target: Path) -> None:
        """Become `target`, which must not exist: raises FileExistsError if it does by now."""
        try:
            os.link(self.path, target)
        except FileExistsError:
            raise
        except OSError:  # a file system without a second name for a file
            self.replace(target)

    def close(self) -> None:
        """Let go of the file."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


@contextmanager
def new_file(folder: Path, mode: int) -> Iterator[NewFile]:
    """A new, empty file in `folder`, with the bits of `mode` that the umask leaves. Raises what the system raises.

    At the end it has either taken its place or is gone.
    """
    if (name := os.fspath(folder)) not in _cleared:
        _cleared.add(name)
        with suppress(OSError):
            _clear(name)
    file = _create(folder, mode)
    try:
        yield file
    finally:
        if sys.platform == "win32":
            file.close()
        with suppress(FileNotFoundError):
            file.path.unlink()
        file.close()


def _create(folder: Path, mode: int) -> NewFile:
    while True:
        path = folder / f".cantle-{os.urandom(6).hex()}.tmp"
        file = NewFile(path, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, mode))
        if _keep(file):
            return file
        file.close()


def _clear(folder: str) -> None:
    """Remove what dead processes left in `folder`."""
    with os.scandir(folder) as entries:
        left = [Path(entry.path) for entry in entries if _NAME.fullmatch(entry.name)]
    for path in left:
        with suppress(OSError):
            _remove_left(path)


if sys.platform == "win32":

    def _keep(file: NewFile) -> bool:
        return True

    def _remove_left(path: Path) -> None:
        found = path.lstat()
        if stat.S_ISREG(found.st_mode) and time.time() - found.st_mtime > _OLD:
            path.unlink()

else:
    import fcntl

    def _keep(file: NewFile) -> bool:
        """Lock a file that was just made. False when somebody who clears up was faster, and it is gone."""
        with suppress(OSError):
            fcntl.flock(file.descriptor, fcntl.LOCK_EX)
        return os.path.lexists(file.path)

    def _remove_left(path: Path) -> None:
        """Remove a file of ours that nobody has locked. A link, or somebody else's file, is left alone."""
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY)
        try:
            found = os.fstat(descriptor)
            if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid():
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
        finally:
            os.close(descriptor)
