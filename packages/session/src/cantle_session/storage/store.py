"""Places that hold sessions: a folder, a SQLite file, a PostgreSQL database. One port for all of them. Their
locations are drawn in :mod:`cantle_session.folders`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from cantle_session.errors import SessionFileError
from cantle_session.folders import is_database

if TYPE_CHECKING:
    from cantle_session.entries import SessionHeader
    from cantle_session.listing import SessionInfo
    from cantle_session.storage.bin import Deletion
    from cantle_session.storage.database_store import DatabaseStore
    from cantle_session.storage.port import Storage
    from cantle_session.storage.search import SearchHit

__all__ = ["SessionStore", "open_database", "open_storage", "open_store", "store_of"]


class SessionStore(Protocol):
    """A place that holds sessions. Not thread-safe. Failures are
    :class:`~cantle_session.errors.SessionFileError`.
    """

    @property
    def location(self) -> str:
        """What :func:`open_store` takes."""
        ...

    def create(self, header: SessionHeader) -> Storage:
        """A place for a new session. Nothing is kept before the first append, which fails if there is one of this id."""
        ...

    def open(self, location: str, *, reading: bool = False) -> Storage:
        """The lines of a session of this store. `reading` if they are only read: then others are not told that it is open."""
        ...

    def sessions(self, *, cwd: str | os.PathLike[str] | None = None) -> list[SessionInfo]:
        """The sessions, the one with the latest message first; with `cwd`, that working directory's. Reads no session whole."""
        ...

    def find(self, text: str) -> str:
        """The location of the session whose id is `text`; failing that, begins with it.

        Raises :class:`~cantle_session.errors.SessionLookupError` when there is none, or more than one.
        """
        ...

    def search(
        self, words: str, *, cwd: str | os.PathLike[str] | None = None, limit: int = 50
    ) -> list[SearchHit]:
        """The entries that say all of `words`: see :mod:`cantle_session.storage.search`.

        Those of the session with the latest message come first, in each session the latest entry.
        """
        ...

    def rename(self, location: str, name: str) -> None:
        """Give a session a name, on one line; an empty one takes it away."""
        ...

    def delete(self, location: str) -> Deletion:
        """Remove a session: to the system's bin where that is possible, else for good.

        Raises when somebody has it open, here or in another process, as far as that can be known.
        """
        ...

    def close(self) -> None:
        """Let go of it. May be called again."""
        ...


def open_store(location: str | os.PathLike[str]) -> SessionStore:
    """The store at a location: a folder, which need not be there yet, `sqlite:PATH` or `postgresql://…`.

    A database is connected to when something is asked of it, and the file of a SQLite database made when the first
    session is. Raises :class:`~cantle_session.errors.SessionFileError` for what cannot be a location.
    """
    if is_database(location):
        return open_database(location)
    from cantle_session.storage.folder_store import FolderStore

    return FolderStore(location)


def open_database(location: str) -> DatabaseStore:
    """:func:`open_store` for what :func:`~cantle_session.folders.is_database` says yes to."""
    if location.startswith("sqlite:"):
        from cantle_session.storage.sqlite import SqliteStore

        return SqliteStore(location)
    from cantle_session.storage.postgres import PostgresStore

    return PostgresStore(location)


def store_of(location: str) -> SessionStore:
    """The store that holds the session at a location."""
    return open_store(location.rpartition("#")[0] if is_database(location) else Path(location).parent)


def open_storage(location: str | os.PathLike[str], *, reading: bool = False) -> Storage:
    """The lines of the session at a location. `reading` as for :meth:`SessionStore.open`.

    Raises :class:`~cantle_session.errors.SessionFileError` when they cannot be opened.
    """
    if not is_database(location):
        from cantle_session.storage.jsonl import JsonlStorage

        return JsonlStorage.open(Path(location).absolute(), reading=reading)
    store, mark, session_id = location.rpartition("#")
    if not mark or not session_id:
        text = "it names a store and no session in it; put '#' and the id of a session behind it"
        raise SessionFileError(location, text)
    return open_database(store).session(session_id, reading=reading)
