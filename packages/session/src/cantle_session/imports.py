"""Taking in a session from elsewhere: a file, or a store."""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from cantle_ai.messages import now_ms
from cantle_session.errors import SessionFileError
from cantle_session.folders import absolute_directory
from cantle_session.lines import encode_header
from cantle_session.places import check_id, find_exactly, header_of, keep, with_header
from cantle_session.stamps import new_session_id
from cantle_session.storage.store import open_storage

if TYPE_CHECKING:
    from cantle_session.places import Place

__all__ = ["Imported", "import_session"]


class Imported(Struct, frozen=True, kw_only=True):
    """Where a session is now, its id and its working directory."""

    location: str
    id: str
    cwd: str


def import_session(
    source: str | os.PathLike[str],
    place: Place,
    *,
    cwd: str | os.PathLike[str] | None = None,
    new_id: bool = False,
) -> Imported:
    """Keep a copy of the session in the file (or at the location) `source` at `place`, its lines as they are.

    With `cwd` it belongs to that working directory from now on; with `new_id` it gets an id of its own, and so
    can lie beside the one that it is a copy of. Raises :class:`~cantle_session.errors.SessionFileError` when the
    source is no session, or a session with its id is there already; then nothing is left behind.
    """
    with closing(open_storage(source, reading=True)) as storage:
        line, header = header_of(storage)
        if new_id:
            header = replace(header, id=new_session_id(now_ms()))
        check_id(header, storage)
        there = find_exactly(place, header.id)
        if there is not None:
            text = f"the session {header.id} is there already, and was left alone: {there}; give the copy a new id"
            raise SessionFileError(storage.path or storage.location, text)
        if cwd is not None:
            header = replace(header, cwd=absolute_directory(cwd))
        changed = new_id or cwd is not None
        location = keep(place, header, with_header(encode_header(header) if changed else line, storage))
    return Imported(location=location, id=header.id, cwd=header.cwd)
