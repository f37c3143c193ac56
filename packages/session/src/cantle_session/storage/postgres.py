"""Sessions in PostgreSQL: `postgresql://ann@db.example/notes`, what libpq takes. Needs `psycopg`, the extra `postgres`.

The tables are drawn in :mod:`cantle_session.storage.database`. They are made in the first schema of the search
path, if they are not there. Beside them:

- A writer locks its session's row, so writers of different sessions do not wait for each other.
- `NOTIFY cantle_session_<number>` goes out with each transaction; who follows a session listens to it.
- Who has a session open holds a shared advisory lock, which goes with the connection.
- Words are a `tsvector` with a GIN index.

A connection that was lost is made again for the next statement, but never in the middle of a transaction.
Passwords are left out of locations, and remembered as long as the process lives.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from cantle_session.addresses import NO_ADDRESS, passwords_in, without_passwords
from cantle_session.errors import SessionFileError
from cantle_session.storage.database import Head, Row, Statement, Value
from cantle_session.storage.database_store import DatabaseStore

if TYPE_CHECKING:
    import psycopg

    from cantle_session.storage.database import Database
    from cantle_session.storage.store import SessionStore

__all__ = ["PostgresDatabase", "PostgresStore"]

_T = TypeVar("_T")

_COMMENT = "Cantle sessions, format 1"
_TABLES_LOCK = 0x43414E54
"""The advisory lock of who makes the tables."""
_DEFAULTS = {
    "connect_timeout": "10",
    "application_name": "cantle",
    # A peer that went away without a word is noticed within half a minute, not after hours.
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
}
_LOCK_TIMEOUT = "5s"
_PATIENCE = 30.0
"""Seconds without a word of the server, after which nobody waits for it any longer."""
_MOST_WORDS = 400_000
"""Bytes of words that the index takes of an entry; a `tsvector` holds 1 MB. Entries with more are always looked at."""
_ROWS_AT_ONCE = 128
_TABLES = """
    CREATE TABLE cantle_sessions (
        session INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id TEXT NOT NULL UNIQUE, cwd BYTEA NOT NULL,
        lines BIGINT NOT NULL, size BIGINT NOT NULL, latest BIGINT NOT NULL, indexed BIGINT NOT NULL,
        facts BYTEA NOT NULL);
    CREATE INDEX cantle_sessions_latest ON cantle_sessions (latest);
    CREATE TABLE cantle_lines (row BIGINT PRIMARY KEY, line BYTEA NOT NULL);
    CREATE TABLE cantle_words (row BIGINT PRIMARY KEY, words TSVECTOR);
    CREATE INDEX cantle_words_words ON cantle_words USING gin (words);
    CREATE INDEX cantle_words_none ON cantle_words (row) WHERE words IS NULL;
    COMMENT ON TABLE cantle_sessions IS '{comment}'
"""


class PostgresStore(DatabaseStore):
    """The sessions of a PostgreSQL database."""

    def __init__(self, location: str) -> None:
        shown, address = _shown_and_whole(location)
        super().__init__(lambda: PostgresDatabase(shown, address), without_passwords)


class PostgresDatabase:
    """A connection to a server."""

    for_update = " FOR UPDATE"
    holds = "position(?::bytea IN line) > 0"
    has_index = True

    def __init__(self, location: str, address: str) -> None:
        """`location` is the `address` without a password."""
        self._location = location
        self._address = address
        self._connection: psycopg.Connection | None = None
        self._joined: int | None = None
        self._listening: int | None = None
        self._missed = False
        """Whether there was a time without a connection, in which nothing was heard."""

    @property
    def location(self) -> str:
        return self._location

    def rows(self, statement: str, *values: Value) -> list[Row]:
        return self._again_if_lost(lambda connection: _run(connection, statement, values))

    def begin(self, session: int | None) -> Head | None:
        found = self._again_if_lost(lambda connection: _begin(connection, session))
        return None if found is None else Head(*found)  # type: ignore[arg-type]  # as the table says

    def finish(self, statements: Sequence[Statement], *, changed: int | None = None) -> None:
        import psycopg

        connection = self._connected()
        try:
            # All of them in one go: a server that is far away costs one round trip.
            with connection.pipeline():
                for statement, values in statements:
                    connection.execute(_marked(statement), values)
                if changed is not None:
                    connection.execute("SELECT pg_notify(%s, '')", (_channel(changed),))
                connection.execute("COMMIT")
        except psycopg.Error as problem:
            if problem.sqlstate is None and connection.closed:
                text = f"the connection was lost, so it may be kept or not: {_words_of(problem)}"
                raise SessionFileError(self._location, text) from None
            raise self._problem(problem) from None

    def rollback(self) -> None:
        import psycopg

        connection = self._connection
        if connection is None or connection.closed:
            return
        if connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            try:
                connection.execute("ROLLBACK")
            except psycopg.Error:
                connection.close()  # the server rolls back what has lost its connection

    def adding_words(self, entries: Sequence[tuple[int, set[str]]]) -> Sequence[Statement]:
        statements: list[Statement] = []
        for at in range(0, len(entries), _ROWS_AT_ONCE):
            marks, values = [], list[Value]()
            for row, words in entries[at : at + _ROWS_AT_ONCE]:
                text = " ".join(words)
                if len(text) > _MOST_WORDS:
                    marks.append("(?, NULL)")
                    values.append(row)
                else:
                    marks.append("(?, array_to_tsvector(string_to_array(?, ' ')))")
                    values += (row, text)
            statements.append((f"INSERT INTO cantle_words (row, words) VALUES {', '.join(marks)}", values))
        return statements

    def removing_words(self, first: int, last: int) -> Sequence[Statement]:
        return (("DELETE FROM cantle_words WHERE row BETWEEN ? AND ?", (first, last)),)

    def with_words(self, terms: Sequence[tuple[str, bool]]) -> Iterable[int]:
        query = " & ".join(f"'{word}':*" if begins else f"'{word}'" for word, begins in terms)
        found = self.rows(
            "SELECT row FROM cantle_words WHERE words @@ ?::tsquery"
            " UNION ALL SELECT row FROM cantle_words WHERE words IS NULL",
            query,
        )
        return (row for (row,) in found if isinstance(row, int))

    def join(self, session: int, session_id: str) -> bool:
        self._joined = session
        return self._again_if_lost(lambda connection: _join(connection, session))

    def wait(self, session: int, seconds: float) -> None:
        import psycopg

        if self._listening != session:
            self._listening = session
            self.rows(f"LISTEN {_channel(session)}")
            return
        connection = self._connected()
        if self._missed:
            self._missed = False
            return
        try:
            for _ in connection.notifies(timeout=seconds, stop_after=1):
                pass
        except psycopg.Error as problem:
            # Lost while it waited: the next statement connects again, and listens.
            if not connection.closed:
                raise self._problem(problem) from None

    def close(self) -> None:
        connection, self._connection = self._connection, None
        joined, self._joined, self._listening = self._joined, None, None
        if connection is not None:
            if joined is not None:
                _leave(connection)
            connection.close()

    def __del__(self) -> None:
        # A session that was forgotten is closed without a word, as its file would be.
        if self._connection is not None:
            self._connection.close()

    # --- how

    def _again_if_lost(self, ask: Callable[[psycopg.Connection], _T]) -> _T:
        """What `ask` gives; asked once more where the connection turns out to be lost outside a transaction."""
        connection = self._connected()
        import psycopg

        idle = connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        try:
            return ask(connection)
        except psycopg.Error as problem:
            if not (idle and connection.closed):
                raise self._problem(problem) from None
        try:
            return ask(self._connected())
        except psycopg.Error as problem:
            raise self._problem(problem) from None

    def _connected(self) -> psycopg.Connection:
        if self._connection is not None and not self._connection.closed:
            return self._connection
        connection = self._connect()
        import psycopg

        try:
            self._prepare(connection)
        except psycopg.Error as problem:
            connection.close()
            raise self._problem(problem) from None
        except BaseException:  # raised again, whatever it is: no connection is left behind
            connection.close()
            raise
        self._connection = connection
        return connection

    def _connect(self) -> psycopg.Connection:
        try:
            import psycopg
            from psycopg.conninfo import conninfo_to_dict
        except ImportError:
            text = "PostgreSQL needs the package psycopg: pip install 'cantle[postgres]'"
            raise SessionFileError(self._location, text) from None
        # What goes wrong comes as an error; a word about it on stderr would say it twice.
        logger = logging.getLogger("psycopg")
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
        try:
            wanted = {**_DEFAULTS, **conninfo_to_dict(self._address), "client_encoding": "UTF8"}
        except psycopg.Error as problem:
            reason = _words_of(problem)
            for password in passwords_in(self._address):
                reason = reason.replace(f'"{password}"', "a password")
            text = f"it is no address of a PostgreSQL database: {reason}"
            raise SessionFileError(self._location, text) from None
        try:
            return _connection_class().connect(**wanted, autocommit=True)
        except psycopg.Error as problem:
            text = f"could not be reached: {_words_of(problem)}; check the address, and that the server runs"
            raise SessionFileError(self._location, text) from None

    def _prepare(self, connection: psycopg.Connection) -> None:
        if not self._has_tables(connection):
            # Not in the transaction: one that waited for the lock would not see what was made meanwhile.
            connection.execute("SELECT pg_advisory_lock(%s)", (_TABLES_LOCK,))
            if not self._has_tables(connection):
                self._make_tables(connection)
            connection.execute("SELECT pg_advisory_unlock(%s)", (_TABLES_LOCK,))
        # What a connection before this one had told the server.
        if self._joined is not None:
            _join(connection, self._joined)
        if self._listening is not None:
            connection.execute(f"LISTEN {_channel(self._listening)}")
        self._missed = True

    def _has_tables(self, connection: psycopg.Connection) -> bool:
        # Both in one round trip.
        cursor = connection.execute(
            f"SET lock_timeout = '{_LOCK_TIMEOUT}';"
            " SELECT obj_description(to_regclass('cantle_sessions'), 'pg_class')",
            prepare=False,
        )
        cursor.nextset()
        (said,) = cursor.fetchone()
        if said is None:
            return False
        if said != _COMMENT:
            text = f"its tables are {said!r}, and {_COMMENT!r} are known here; use a newer version of Cantle"
            raise SessionFileError(self._location, text)
        return True

    def _make_tables(self, connection: psycopg.Connection) -> None:
        from psycopg import errors

        try:
            with connection.transaction():
                for statement in _TABLES.format(comment=_COMMENT).split(";"):
                    connection.execute(statement)
        except (
            errors.InsufficientPrivilege,
            errors.InvalidSchemaName,
            errors.ReadOnlySqlTransaction,
        ) as problem:
            text = (
                f"it has no tables for sessions yet, and PostgreSQL says: {_words_of(problem)};"
                " begin with a role that may make them"
            )
            raise SessionFileError(self._location, text) from None

    def _problem(self, problem: psycopg.Error) -> SessionFileError:
        from psycopg import errors

        self.rollback()
        if isinstance(problem, errors.LockNotAvailable | errors.DeadlockDetected):
            text = "another process keeps it locked; nothing was written, try again"
        else:
            text = f"PostgreSQL says: {_words_of(problem)}"
        return SessionFileError(self._location, text)


@cache
def _connection_class() -> type[psycopg.Connection]:
    """Connections that give up when the server does not answer, which libpq by itself would never do."""
    import psycopg

    class Connection(psycopg.Connection):  # type: ignore[misc]
        def wait(
            self, steps: Generator[int, int, _T], *more: object, timeout: float | None = None, **named: object
        ) -> object:
            if timeout is not None:  # somebody who listens
                return super().wait(steps, *more, timeout=timeout, **named)
            return super().wait(self._watched(steps), *more, **named)

        def _watched(self, steps: Generator[int, int, _T]) -> Generator[int, int, _T]:
            """The steps of an exchange; each is told what the connection is ready for, 0 when it is for nothing."""
            heard = time.monotonic()
            try:
                wanted = next(steps)
                while True:
                    if ready := (yield wanted):
                        heard = time.monotonic()
                    elif time.monotonic() - heard > _PATIENCE:
                        self.close()
                        raise psycopg.OperationalError(f"nothing for {_PATIENCE:g} seconds")
                    wanted = steps.send(ready)
            except StopIteration as end:
                value: _T = end.value
                return value

    return Connection


def _run(connection: psycopg.Connection, statement: str, values: Sequence[Value]) -> list[Row]:
    cursor = connection.execute(_marked(statement), values)
    return cursor.fetchall() if cursor.description else []


def _begin(connection: psycopg.Connection, session: int | None) -> Row | None:
    if session is None:
        connection.execute("BEGIN")
        return None
    # Both in one round trip, which statements with values would not be.
    statement = (
        f"SELECT lines, size, latest, facts FROM cantle_sessions WHERE session = {session:d} FOR UPDATE"
    )
    cursor = connection.execute(f"BEGIN; {statement}", prepare=False)
    cursor.nextset()
    found: Row | None = cursor.fetchone()
    return found


def _join(connection: psycopg.Connection, session: int) -> bool:
    # The table's number is part of the lock: several schemas of a database may have sessions.
    # In one round trip, as two statements: within one, the lock might come after the count.
    cursor = connection.execute(
        f"SELECT pg_advisory_lock_shared('cantle_sessions'::regclass::oid::bigint << 32 | {session:d});"
        " SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1"
        f" AND classid = 'cantle_sessions'::regclass::oid AND objid = {session:d}"
        " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        " AND pid <> pg_backend_pid()",
        prepare=False,
    )
    cursor.nextset()
    (others,) = cursor.fetchone()
    return bool(others)


def _leave(connection: psycopg.Connection) -> None:
    """Give back the lock of who has a session open: the end of the connection does so a moment later only."""
    import psycopg

    with suppress(psycopg.Error):  # it was lost, and the lock with it
        connection.execute("SELECT pg_advisory_unlock_all()")


def _channel(session: int) -> str:
    return f"cantle_session_{session}"


def _marked(statement: str) -> str:
    """A statement with the marks that psycopg has for values."""
    return statement.replace("?", "%s")


def _words_of(problem: psycopg.Error) -> str:
    """What went wrong, on one line."""
    return " ".join((problem.diag.message_primary or str(problem) or type(problem).__name__).split())


def _shown_and_whole(location: str) -> tuple[str, str]:
    """The location without a password, and the address with it, which is remembered."""
    address = re.sub("^postgres://", "postgresql://", location)
    if "#" in address:
        text = "'#' stands in front of a session's id; write %23 where it is part of an address"
        raise SessionFileError(without_passwords(address.partition("#")[0]), text)
    shown = without_passwords(address)
    if shown == NO_ADDRESS:
        text = "it is no address of a PostgreSQL database; in a password write %40 for '@', %2F for '/' and %25 for '%'"
        raise SessionFileError(shown, text)
    if shown != address:
        _ADDRESSES[shown] = address
    return shown, _ADDRESSES.get(shown, address)


_ADDRESSES: dict[str, str] = {}
"""Addresses with a password, by what is shown of them."""


if TYPE_CHECKING:
    _database: type[Database] = PostgresDatabase
    _store: type[SessionStore] = PostgresStore
