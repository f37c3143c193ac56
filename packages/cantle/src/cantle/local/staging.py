"""A folder inside a folder, to prepare files in that are moved to their place when they are whole.

It has a fixed name and a lock: one process works in it at a time, and what an earlier one left there when it
was killed is removed by the next.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cantle.errors import UserError
from cantle_ai.file_lock import try_lock

__all__ = ["NAME", "staging_folder"]

NAME = ".setup"
_LOCK = "lock"


@contextmanager
def staging_folder(folder: Path) -> Iterator[Path]:
    """An empty folder inside `folder`, which is made when it is missing. Whatever happens, it is gone afterwards.

    So is `folder`, with those above it that were made here, if nothing was moved into it. Raises
    :class:`UserError` when another process is at work there, and OSError when it cannot be made.
    """
    made = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    place = folder / NAME
    lock = _acquired(place)
    try:
        _clear(place)
        yield place
    finally:
        _clear(place)
        if os.name == "nt":  # which deletes no open file
            os.close(lock)
        shutil.rmtree(place, ignore_errors=True)
        if os.name != "nt":
            os.close(lock)
        with suppress(OSError):  # the first that holds something ends it
            for parent in made:
                parent.rmdir()


def _acquired(place: Path) -> int:
    """A descriptor that holds the lock, for as long as it is open."""
    while True:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            lock = os.open(place / _LOCK, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        except FileNotFoundError:
            continue  # its holder was just done
        if not try_lock(lock):
            os.close(lock)
            raise UserError(
                f"Another `cantle local` is at work in {place.parent}.",
                "Wait until it is done, and try again.",
            )
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock), (place / _LOCK).stat()):
                return lock
        os.close(lock)


def _clear(place: Path) -> None:
    """Remove all but the lock."""
    for path in list(place.iterdir()):
        if path.name == _LOCK:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
