"""Sessions that are written whole, to a folder or a store, from the lines of another one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from cantle_session.entries import VERSION, SessionHeader
from cantle_session.errors import SessionFileError, SessionLookupError, no_session
from cantle_session.folders import is_database
from cantle_session.lines import decode_header
from cantle_session.stamps import check_session_id
from cantle_session.storage.store import open_storage, open_store
from cantle_session.whole_files import write_whole

if TYPE_CHECKING:
    from cantle_session.storage.port import Storage
    from cantle_session.storage.store import SessionStore

__all__ = [
    "Place",
    "check_id",
    "find_exactly",
    "header_of",
    "is_same_file",
    "keep",
    "with_header",
]

Place: TypeAlias = "str | os.PathLike[str] | SessionStore"
"""A folder that session files lie in, the location of a store, or a store."""


def header_of(storage: Storage) -> tuple[bytes, SessionHeader]:
    """The line of the header, and what it says. Raises :class:`SessionFileError` when the lines are no session."""
    _, line = next(iter(storage.lines()), (0, b""))
    header = decode_header(line)
    if header is None:
        raise no_session(storage.path or storage.location, line)
    return line, header


def with_header(header: bytes, storage: Storage) -> Iterator[bytes]:
    """The lines of a session with this header in place of its own."""
    yield header
    for _, line in islice(storage.lines(), 1, None):
        yield line


def keep(
    place: Place, header: SessionHeader, lines: Iterable[bytes], *, instead_of: Path | None = None
) -> str:
    """Keep a session at `place`, whole or not at all, and never over another one; gives its location.

    `lines` begin with that of the header. Only the file `instead_of`, which it is a new version of, may be where it
    belongs. An older version stays what it is in a file, and becomes the current one in a database.
    """
    if isinstance(place, str | os.PathLike):
        with closing(open_store(place)) as store:
            return keep(store, header, lines, instead_of=instead_of)
    with closing(place.create(header)) as storage:
        if storage.path is not None:
            write_whole(storage.path, lines, instead=is_same_file(storage.path, instead_of))
        else:
            with storage.locked():
                storage.append(list(_current(header, lines)))
        return storage.location


def is_same_file(path: Path, other: Path | None) -> bool:
    """Whether both are there and are one file."""
    try:
        return other is not None and path.samefile(other)
    except OSError:
        return False


def _current(header: SessionHeader, lines: Iterable[bytes]) -> Iterable[bytes]:
    if header.version >= VERSION:
        return lines
    from cantle_session.storage.legacy import upgraded

    return upgraded(header, islice(enumerate(lines), 1, None))


def find_exactly(place: Place, session_id: str) -> str | None:
    """The location of the session with this id at `place`; None when there is none."""
    if not isinstance(place, str | os.PathLike):
        return _found(place, session_id)
    if is_database(place):
        with closing(open_store(place)) as store:
            return _found(store, session_id)
    from cantle_session.listing import file_with_id

    path = file_with_id(session_id, Path(place).absolute())
    return None if path is None else str(path)


def _found(store: SessionStore, session_id: str) -> str | None:
    try:
        location = store.find(session_id)
    except SessionLookupError:
        return None
    with closing(open_storage(location, reading=True)) as storage:
        _, header = header_of(storage)
    return location if header.id == session_id else None


def check_id(header: SessionHeader, storage: Storage) -> None:
    """Raise :class:`SessionFileError` when a session's id cannot be part of a file name."""
    try:
        check_session_id(header.id)
    except ValueError as problem:
        text = f"{problem}; import it with a new id"
        raise SessionFileError(storage.path or storage.location, text) from None
