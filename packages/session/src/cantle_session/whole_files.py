"""Session files that are written in one go: beside their place first, so that there is the whole file or none."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from cantle_session.errors import SessionFileError
from cantle_session.folders import make_folder
from cantle_session.storage.jsonl import file_problem

__all__ = ["write_whole"]

_BLOCK = 1 << 20
_FILE_MODE = 0o600


def write_whole(path: Path, lines: Iterable[bytes], *, instead: bool = False) -> None:
    """Make the file `path` out of these lines, whole and on the disk, or not at all.

    Raises :class:`SessionFileError` when that fails, or when there is a file already, which is left alone; with
    `instead`, the new one takes its place.
    """
    from cantle_ai.new_files import new_file

    if path.exists() and not instead:
        raise _taken(path)
    try:
        make_folder(path.parent)
        with new_file(path.parent, _FILE_MODE) as fresh:
            for block in _blocks(lines):
                fresh.write(block)
            os.fsync(fresh.descriptor)
            if instead:
                fresh.replace(path)
            else:
                fresh.become(path)
            _synchronise(path.parent)
    except FileExistsError:
        raise _taken(path) from None
    except OSError as problem:
        raise file_problem(path, "could not be written", problem) from None


def _blocks(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines with their ends, gathered so that few writes are needed."""
    parts: list[bytes] = []
    size = 0
    for line in lines:
        parts += (line, b"\n")
        size += len(line) + 1
        if size >= _BLOCK:
            yield b"".join(parts)
            parts, size = [], 0
    yield b"".join(parts)


def _synchronise(folder: Path) -> None:
    """Put the names in a folder on the disk, so that what goes afterwards does not go before they are there."""
    if os.name == "nt":
        return
    with suppress(OSError):  # not every file system can
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _taken(path: Path) -> SessionFileError:
    return SessionFileError(
        path, "there is a file of this name already; it was left alone, give another name"
    )
