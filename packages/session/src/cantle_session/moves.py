"""Giving a session to another working directory, or another place."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cantle_session.errors import SessionFileError, still_open
from cantle_session.folders import absolute_directory, is_database
from cantle_session.lines import encode_header
from cantle_session.places import check_id, find_exactly, header_of, is_same_file, keep, with_header
from cantle_session.storage.jsonl import file_problem
from cantle_session.storage.store import open_database, open_storage, store_of

if TYPE_CHECKING:
    from cantle_session.places import Place
    from cantle_session.storage.port import Storage

__all__ = ["move_session"]


def move_session(
    source: str | os.PathLike[str], place: Place, *, cwd: str | os.PathLike[str] | None = None
) -> str:
    """Keep the session at the location `source` at `place` instead, for the working directory `cwd` (by default, the
    same one). Gives the new location.

    Its id and its lines stay as they are, but for the directory in the header. It goes from where it was when the
    whole of it is in its new place, on the disk. Raises :class:`~cantle_session.errors.SessionFileError` when
    somebody has the session open, here or in another process, or there is one with its id already; then nothing has changed.
    """
    with closing(open_storage(source)) as storage:
        where = storage.path or storage.location
        if storage.shared():
            raise still_open(where, "it was left where it is")
        line, header = header_of(storage)
        check_id(header, storage)
        target = header if cwd is None else replace(header, cwd=absolute_directory(cwd))
        there = find_exactly(place, header.id)
        if there is not None and not _is_at(storage, there):
            text = f"the session {header.id} is there already, so this one was left where it is: {there}"
            raise SessionFileError(where, text)
        if there is not None and storage.path is None:
            with closing(open_database(storage.location.rpartition("#")[0])) as store:
                store.move(storage.location, target)
            return there
        at_once = storage.path is not None and os.name != "nt"
        with storage.locked():
            for _ in storage.pull():
                pass
            lines = with_header(line if target == header else encode_header(target), storage)
            kept = keep(place, target, lines, instead_of=storage.path)
            if at_once:
                _remove(storage, kept)
    if not at_once:  # what is open or locked cannot go: a database's session, a file on Windows
        _remove(storage, kept)
    return kept


def _is_at(storage: Storage, location: str) -> bool:
    return location == storage.location or is_same_file(Path(location), storage.path)


def _remove(storage: Storage, kept: str) -> None:
    """Take away the session that is at `kept` now; where that fails, take that away again."""
    if _is_at(storage, kept):
        return
    if storage.path is None:
        _delete_in_database(storage.location)
        return
    try:
        storage.path.unlink()
    except OSError as problem:
        if is_database(kept):
            _delete_in_database(kept)
        else:
            Path(kept).unlink(missing_ok=True)
        raise file_problem(storage.path, "could not be taken from where it is", problem) from None


def _delete_in_database(location: str) -> None:
    with closing(store_of(location)) as store:
        store.delete(location)
