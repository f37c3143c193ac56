"""Sessions in a SQLite file: `sqlite:/home/ann/sessions.db`. The tables are drawn in
:mod:`cantle_session.storage.database`.

The file is in WAL mode: readers and one writer at a time, in any number of processes of one machine; it must
not lie on a network's file system. A kept line survives the death of the process, and a power cut once the
session was closed. Words are found with FTS5; where SQLite was built without it, by reading everything.

Who has a session open holds a shared lock on an empty file `<name>-open/<session id>`, which goes with the
last of them; SQLite itself knows nothing of who is there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from cantle_ai.system_errors import reason_of
from cantle_session.errors import SessionFileError
from cantle_session.folders import make_folder
from cantle_session.storage.database import Head, Row, Statement, Value
from cantle_session.storage.database_store import DatabaseStore

if TYPE_CHECKING:
    import sqlite3

    from cantle_session.storage.database import Database
    from cantle_session.storage.store import SessionStore

__all__ = ["SqliteDatabase", "SqliteStore"]

_APPLICATION = 0x43414E54
"""Written into the file's head, so that no other program's database is taken for one of ours."""
_FORMAT = 1
_WAIT = 5.0
"""Seconds to wait for another writer."""
_LOOK_EVERY = 0.02
"""Seconds between two looks at a database that is followed. A look reads a number in shared memory."""
_TABLES = """
    CREATE TABLE cantle_sessions (
        session INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, cwd BLOB NOT NULL,
        lines INTEGER NOT NULL, size INTEGER NOT NULL, latest INTEGER NOT NULL, indexed INTEGER NOT NULL,
        facts BLOB NOT NULL);
    CREATE INDEX cantle_sessions_latest ON cantle_sessions (latest);
    CREATE TABLE cantle_lines (row INTEGER PRIMARY KEY, line BLOB NOT NULL);
"""
_WORDS = (
    "CREATE VIRTUAL TABLE cantle_words USING fts5(words, tokenize = 'ascii', detail = none, columnsize = 0)"
)


class SqliteStore(DatabaseStore):
    """The sessions of a SQLite file, which is made with the first of them."""

    def __init__(self, location: str) -> None:
        path = _path_in(location)
        if not location.removeprefix("sqlite:") or path.name == "":
            raise SessionFileError(location, "it names no file; give a path behind 'sqlite:'")
        super().__init__(lambda: SqliteDatabase(path), lambda other: f"sqlite:{_path_in(other)}")


def _path_in(location: str) -> Path:
    try:
        return Path(location.removeprefix("sqlite:")).expanduser().absolute()
    except RuntimeError:
        text = "there is no home folder for its '~'; write the path out"
        raise SessionFileError(location, text) from None


class SqliteDatabase:
    """A connection to a file. One that is not there has no rows."""

    holds = "instr(line, ?) > 0"
    for_update = ""  # a transaction that writes has the file to itself

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._has_index = False
        self._seen: int | None = None
        self._place: tuple[Path, int] | None = None
        self._wrote = False

    @property
    def location(self) -> str:
        return f"sqlite:{self._path}"

    @property
    def has_index(self) -> bool:
        return self._open() is not None and self._has_index

    def rows(self, statement: str, *values: Value) -> list[Row]:
        connection = self._open()
        return [] if connection is None else self._run(connection, statement, values)

    def begin(self, session: int | None) -> Head | None:
        connection = self._open(make=session is None)
        if connection is None:
            return None
        self._run(connection, "BEGIN IMMEDIATE")
        if session is None:
            return None
        found = self._run(
            connection, "SELECT lines, size, latest, facts FROM cantle_sessions WHERE session = ?", (session,)
        )
        return Head(*found[0]) if found else None  # type: ignore[arg-type]  # as the table says

    def finish(self, statements: Sequence[Statement], *, changed: int | None = None) -> None:
        connection = self._open()
        assert connection is not None
        for statement, values in statements:
            self._run(connection, statement, values)
        self._run(connection, "COMMIT")
        self._wrote = True

    def rollback(self) -> None:
        if self._connection is not None and self._connection.in_transaction:
            self._connection.rollback()

    def adding_words(self, entries: Sequence[tuple[int, set[str]]]) -> Sequence[Statement]:
        statement = "INSERT INTO cantle_words (rowid, words) VALUES (?, ?)"
        return [(statement, (row, " ".join(words))) for row, words in entries]

    def removing_words(self, first: int, last: int) -> Sequence[Statement]:
        if not self._has_index:
            return ()
        removing = ("DELETE FROM cantle_words WHERE rowid BETWEEN ? AND ?", (first, last))
        # What is deleted leaves the index's own pages only when they are written anew.
        return removing, ("INSERT INTO cantle_words (cantle_words) VALUES ('optimize')", ())

    def with_words(self, terms: Sequence[tuple[str, bool]]) -> Iterable[int]:
        query = " AND ".join(f'"{word}"*' if begins else f'"{word}"' for word, begins in terms)
        found = self.rows("SELECT rowid FROM cantle_words WHERE cantle_words MATCH ?", query)
        return (row for (row,) in found if isinstance(row, int))

    def join(self, session: int, session_id: str) -> bool:
        from cantle_session.storage.locks import announce_presence

        place = self._path.with_name(f"{self._path.name}-open") / session_id
        try:
            place.parent.mkdir(mode=0o700, exist_ok=True)
            descriptor = os.open(place, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        except OSError:
            return False  # a folder that takes no files: nobody is known to be there
        self._place = place, descriptor
        return announce_presence(descriptor)

    def wait(self, session: int, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while (version := self._version()) == self._seen:
            left = deadline - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(left, _LOOK_EVERY))
        self._seen = version

    def close(self) -> None:
        place, self._place = self._place, None
        if place is not None:
            _leave(*place)
        connection, self._connection = self._connection, None
        if connection is None:
            return
        try:
            if self._wrote:
                # Puts what was written on the disk, also while others have the file open.
                self._run(connection, "PRAGMA wal_checkpoint(PASSIVE)")
        finally:
            connection.close()

    def __del__(self) -> None:
        # A session that was forgotten is closed without a word, as its file would be.
        if self._connection is not None:
            self._connection.close()
        if self._place is not None:
            os.close(self._place[1])

    # --- how

    def _version(self) -> int | None:
        """A number that changes with every transaction of another connection."""
        found = self.rows("PRAGMA data_version")
        return found[0][0] if found and isinstance(found[0][0], int) else None

    def _run(self, connection: sqlite3.Connection, statement: str, values: Sequence[Value] = ()) -> list[Row]:
        import sqlite3

        try:
            return connection.execute(statement, values).fetchall()
        except sqlite3.Error as problem:
            self._seen = None
            with suppress(sqlite3.Error):
                if connection.in_transaction:
                    connection.rollback()
            raise self._problem(problem) from None

    def _problem(self, problem: sqlite3.Error) -> SessionFileError:
        import sqlite3

        code = getattr(problem, "sqlite_errorcode", 0) & 0xFF
        reason = str(problem)
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return SessionFileError(
                self._path, "another process keeps it locked; nothing was written, try again"
            )
        if code == sqlite3.SQLITE_FULL:
            reason = f"{reason}; nothing was written, make room and try again"
        elif code == sqlite3.SQLITE_NOTADB:
            reason = "it is not a SQLite database; give another name behind 'sqlite:'"
        elif code == sqlite3.SQLITE_CORRUPT:
            reason = f"{reason}; copy what can be saved with `sqlite3 {self._path.name} .recover`"
        elif code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
            reason = f"{reason}; check the permissions of it and its folder"
        return SessionFileError(self._path, f"SQLite says: {reason}" if reason == str(problem) else reason)

    def _open(self, *, make: bool = False) -> sqlite3.Connection | None:
        """The connection; None where there is no file and none is to be made."""
        if self._connection is not None:
            return self._connection
        import sqlite3

        if make:
            self._make_file()
        elif not self._is_there():
            return None
        # Where it may not be written, or nothing beside it, what lies there is read, and nothing that comes later.
        log = self._path.with_name(f"{self._path.name}-wal")
        still = not (
            (os.access(self._path, os.W_OK) and os.access(self._path.parent, os.W_OK)) or log.exists()
        )
        try:
            # Any thread may use it, one at a time, as with every storage.
            connection = sqlite3.connect(
                f"{self._path.as_uri()}?mode={'ro&immutable=1' if still else 'rw'}",
                uri=True,
                timeout=_WAIT,
                isolation_level=None,
                check_same_thread=False,
            )
        except sqlite3.Error as problem:
            raise self._problem(problem) from None
        try:
            self._prepare(connection)
        except BaseException:  # raised again, whatever it is: no connection is left behind
            connection.close()
            raise
        self._connection = connection
        return connection

    def _is_there(self) -> bool:
        try:
            self._path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except (OSError, ValueError) as problem:
            reason = reason_of(problem) if isinstance(problem, OSError) else str(problem)
            raise SessionFileError(self._path, f"could not be opened: {reason}") from None
        return True

    def _make_file(self) -> None:
        try:
            make_folder(self._path.parent)
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
        except (OSError, ValueError) as problem:
            reason = reason_of(problem) if isinstance(problem, OSError) else str(problem)
            raise SessionFileError(self._path, f"could not be made: {reason}") from None

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Make the tables where there are none; refuse what is not ours."""
        # In transactions, so that nobody makes them between two looks.
        self._run(connection, "BEGIN")
        new = self._is_new(connection)
        self._run(connection, "COMMIT")
        if new:
            self._run(connection, "BEGIN IMMEDIATE")
            if self._is_new(connection):
                self._make_tables(connection)
            self._run(connection, "COMMIT")
        if self._run(connection, "PRAGMA journal_mode") != [("wal",)]:
            with suppress(SessionFileError):  # somebody reads just now, or it cannot be written to
                self._run(connection, "PRAGMA journal_mode = WAL")
        self._run(connection, "PRAGMA synchronous = NORMAL")
        self._run(connection, "PRAGMA secure_delete = ON")
        self._has_index = self._finds_words(connection)

    def _is_new(self, connection: sqlite3.Connection) -> bool:
        (application,) = self._run(connection, "PRAGMA application_id")[0]
        (version,) = self._run(connection, "PRAGMA user_version")[0]
        if application == _APPLICATION and version == _FORMAT:
            return False
        if application == _APPLICATION:
            text = f"its format is {version!r}, and {_FORMAT} is the one known here; use a newer version of Cantle"
        elif application or version or self._run(connection, "SELECT 1 FROM sqlite_master LIMIT 1"):
            text = "it is the database of another program; give another name behind 'sqlite:'"
        else:
            return True
        raise SessionFileError(self._path, text)

    def _make_tables(self, connection: sqlite3.Connection) -> None:
        import sqlite3

        for statement in _TABLES.split(";"):
            self._run(connection, statement)
        with suppress(sqlite3.OperationalError):  # built without FTS5
            connection.execute(_WORDS)
        self._run(connection, f"PRAGMA application_id = {_APPLICATION}")
        self._run(connection, f"PRAGMA user_version = {_FORMAT}")

    def _finds_words(self, connection: sqlite3.Connection) -> bool:
        import sqlite3

        try:
            connection.execute("SELECT rowid FROM cantle_words LIMIT 0")
        except sqlite3.Error:  # made without FTS5, or damaged: then everything is looked at
            return False
        return True


def _leave(place: Path, descriptor: int) -> None:
    """Let go of the lock of who is there; the last one takes the file away."""
    from cantle_session.storage.locks import is_alone

    alone = is_alone(descriptor)
    os.close(descriptor)
    if alone:
        with suppress(OSError):
            place.unlink()
        with suppress(OSError):
            place.parent.rmdir()


if TYPE_CHECKING:
    _database: type[Database] = SqliteDatabase
    _store: type[SessionStore] = SqliteStore
