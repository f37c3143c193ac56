"""Sessions in a database: what SQLite and PostgreSQL have in common.

    cantle_sessions   session   a small number, never used twice          lines     how many there are
                      id        the session's id, unique                  size      their bytes, with line ends
                      cwd       its working directory, UTF-8              latest    when the last message was, ms
                      facts     JSON: created, name?, first?, parent?     indexed   how many lines the index holds
    cantle_lines      row       session << 32 | number of the line        line      its bytes, as in a file
    cantle_words      row       as above                                  words     those of the entry, once each

Lines are the same bytes as in a session file, so a session goes from one to the other and back unchanged. They
are kept as bytes since JSON may hold what a database's text cannot: NUL, and halves of surrogate pairs. The key
of a line is its number.

One transaction keeps new lines and what a list says about the session; it waits for its turn, so lines are
numbered without a gap. The index is not brought up to date then but before a search: most entries are never
searched, and adding one stays cheap.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    from cantle_session.storage.port import KeyedLine

__all__ = [
    "FIRST_PAGE",
    "NUMBER",
    "Database",
    "Head",
    "Row",
    "Statement",
    "Value",
    "as_bytes",
    "as_int",
    "as_text",
    "directory_bytes",
    "lines_between",
    "may_be_id",
    "row_of",
]

Value: TypeAlias = int | str | bytes
Row: TypeAlias = "tuple[Value | None, ...]"
Statement: TypeAlias = "tuple[str, Sequence[Value]]"

FIRST_PAGE = 64
"""Lines that are fetched at once, as long as nothing is known of their size."""
NUMBER = 0xFFFFFFFF
"""The part of a row that is the line's number."""


class Head(Struct, frozen=True):
    """What a writer must know of a session."""

    lines: int
    size: int
    latest: int
    facts: bytes


class Database(Protocol):
    """A connection, made when it is first needed. Statements have `?` for values. Failures are
    :class:`~cantle_session.errors.SessionFileError`, and leave no transaction behind.
    """

    @property
    def location(self) -> str:
        """The store's, without a password."""
        ...

    @property
    def holds(self) -> str:
        """The condition that a line has some bytes in it."""
        ...

    @property
    def has_index(self) -> bool:
        """Whether words can be looked up."""
        ...

    def rows(self, statement: str, *values: Value) -> list[Row]:
        """What a statement gives."""
        ...

    def begin(self, session: int | None) -> Head | None:
        """Begin a transaction that keeps those out who write to this session; None makes a new one, so makes the
        database where there is none. Waits a few seconds at most. Gives what is there of the session.
        """
        ...

    def finish(self, statements: Sequence[Statement], *, changed: int | None = None) -> None:
        """Run these, end the transaction, and tell those who wait for the session `changed`."""
        ...

    def rollback(self) -> None:
        """End the transaction, if there is one, without a change."""
        ...

    @property
    def for_update(self) -> str:
        """What is put behind a query whose rows nobody else shall change before the transaction ends."""
        ...

    def adding_words(self, entries: Sequence[tuple[int, set[str]]]) -> Sequence[Statement]:
        """Puts entries into the index: their rows, and the words that each says."""
        ...

    def removing_words(self, first: int, last: int) -> Sequence[Statement]:
        """Takes the entries with these rows out of the index."""
        ...

    def with_words(self, terms: Sequence[tuple[str, bool]]) -> Iterable[int]:
        """The rows of entries with all these words, each of which may be only the beginning of one."""
        ...

    def join(self, session: int, session_id: str) -> bool:
        """Be known as one who has the session open. Whether somebody else was before."""
        ...

    def wait(self, session: int, seconds: float) -> None:
        """Wait until somebody may have written since the last call, for so long at most. The first call returns at once."""
        ...

    def close(self) -> None:
        """Let go of it, with everything on the disk. May be called again."""
        ...


def row_of(session: int, number: int) -> int:
    return session << 32 | number


def may_be_id(text: str) -> bool:
    """Whether a session can have this id. What none can have may have no form in a database."""
    return text.isascii() and text.isprintable() and text != ""


def lines_between(database: Database, session: int, start: int, stop: int) -> list[KeyedLine]:
    found = database.rows(
        "SELECT row, line FROM cantle_lines WHERE row >= ? AND row < ? ORDER BY row",
        row_of(session, start),
        row_of(session, stop),
    )
    return [(as_int(row) & NUMBER, as_bytes(line)) for row, line in found]


def directory_bytes(cwd: str) -> bytes:
    return cwd.encode("utf-8", "surrogatepass")


def as_int(value: Value | None) -> int:
    assert isinstance(value, int)
    return value


def as_text(value: Value | None) -> str:
    assert isinstance(value, str)
    return value


def as_bytes(value: Value | None) -> bytes:
    assert isinstance(value, bytes)
    return value
