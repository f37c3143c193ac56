"""The lines of one session in a database."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cantle_ai.codec import JsonObject, decode_object, encode_json
from cantle_session.errors import SessionFileError
from cantle_session.listing import FIRST_MESSAGE, message_time, user_text
from cantle_session.stamps import milliseconds
from cantle_session.storage.database import (
    FIRST_PAGE,
    NUMBER,
    Database,
    Head,
    Row,
    Statement,
    Value,
    as_bytes,
    as_int,
    directory_bytes,
    lines_between,
    may_be_id,
    row_of,
)

if TYPE_CHECKING:
    from cantle_session.entries import SessionHeader
    from cantle_session.storage.port import KeyedLine, Storage

__all__ = ["DatabaseStorage"]

_LARGEST_PAGE = 4096
"""Lines that are fetched at once, at most: many only while they are small."""
_MOST_VALUES = 900
"""In one statement; older versions of SQLite take 999."""
_PAGE_BYTES = 1 << 20


class DatabaseStorage:
    """The lines of one session in a database."""

    def __init__(
        self,
        database: Database,
        session_id: str,
        header: SessionHeader | None = None,
        *,
        reading: bool = False,
    ) -> None:
        """A session that is there; with `header` a new one, which the first :meth:`append` makes. `reading` if
        others need not know that it is open.
        """
        self._database = database
        self._id = session_id
        self._header = header
        self._session: int | None = None
        self._head: Head | None = None
        """In turn: what the session has."""
        self._taken = 0
        """How many lines were handed out or added here, from the first on."""
        self._own: set[int] = set()
        """Lines added here, behind others that were not handed out yet."""
        self._shared = False
        self._closed = False
        if header is None:
            self._enter(reading)

    def _enter(self, reading: bool) -> None:
        statement = "SELECT session, lines FROM cantle_sessions WHERE id = ?"
        found = self._database.rows(statement, self._id) if may_be_id(self._id) else []
        if not found:
            raise SessionFileError(
                self.location, "there is no such session; list the sessions to see which there are"
            )
        self._session, self._taken = as_int(found[0][0]), as_int(found[0][1])
        self._shared = not reading and self._database.join(self._session, self._id)

    @property
    def path(self) -> None:
        return None

    @property
    def location(self) -> str:
        return f"{self._database.location}#{self._id}"

    def lines(self) -> Iterator[KeyedLine]:
        if self._session is None:
            return
        start, size = 0, FIRST_PAGE
        while start < self._taken:
            page = self._fetch(start, min(start + size, self._taken))
            yield from _without_blanks(page)
            start, size = start + len(page), _next_size(size, page)
        own = sorted(self._own)
        yield from zip(own, self.read(own), strict=True)

    def backwards(self) -> Iterator[KeyedLine]:
        if self._session is None:
            return
        own = sorted(self._own, reverse=True)
        yield from zip(own, self.read(own), strict=True)
        stop, size = self._taken, FIRST_PAGE
        while stop > 0:
            page = self._fetch(max(0, stop - size), stop)
            yield from reversed(_without_blanks(page))
            stop, size = stop - len(page), _next_size(size, page)

    def containing(self, text: bytes) -> Iterator[KeyedLine]:
        if self._session is None:
            return
        own = sorted(self._own, reverse=True)
        yield from ((number, line) for number, line in zip(own, self.read(own), strict=True) if text in line)
        # The database looks, so that lines without it need not be carried here.
        statement = (
            "SELECT row, line FROM cantle_lines WHERE row >= ? AND row < ?"
            f" AND {self._database.holds} ORDER BY row DESC"
        )
        stop = self._taken
        while stop > 0:
            start = max(0, stop - FIRST_PAGE)
            found = self._rows(statement, row_of(self._session, start), row_of(self._session, stop), text)
            yield from ((as_int(row) & NUMBER, as_bytes(line)) for row, line in found)
            stop = start

    def pull(self) -> Iterator[KeyedLine]:
        if self._session is None:
            return
        stop = self._count() if self._head is None else self._head.lines
        while self._taken < stop:
            page = self._fetch(self._taken, min(stop, self._taken + FIRST_PAGE))
            own = self._own
            self._taken += len(page)
            self._own = {number for number in own if number >= self._taken}
            yield from [keyed for keyed in _without_blanks(page) if keyed[0] not in own]

    def read(self, keys: Sequence[int]) -> Iterator[bytes]:
        at, size = 0, FIRST_PAGE
        while at < len(keys):
            rows = [row_of(self._key(), number) for number in keys[at : at + size]]
            marks = ", ".join("?" * len(rows))
            found = self._rows(f"SELECT row, line FROM cantle_lines WHERE row IN ({marks})", *rows)
            lines = {as_int(row): as_bytes(line) for row, line in found}
            at, size = at + size, min(_next_size(size, list(lines.items())), _MOST_VALUES)
            for row in rows:
                if row not in lines:
                    raise self._is_gone()
                yield lines[row]

    def number(self, key: int) -> int:
        return key

    def size(self) -> int:
        if self._session is None:
            return 0
        found = self._rows("SELECT size FROM cantle_sessions WHERE session = ?", self._session)
        return as_int(found[0][0]) if found else 0

    @contextmanager
    def locked(self) -> Iterator[None]:
        if self._session is None:
            yield
            return
        self._check_open()
        try:
            self._head = self._database.begin(self._session)
            if self._head is None:
                raise self._is_gone()
            yield
        finally:
            self._head = None
            self._database.rollback()

    def append(self, lines: Sequence[bytes]) -> Sequence[int]:
        self._check_open()
        try:
            session, head = self._turn_to_write()
            start = head.lines
            self._database.finish(_writing(session, head, lines), changed=session)
        except BaseException:  # raised again, an interrupt too: nothing was kept, and nobody is kept out
            self._head = None
            self._database.rollback()
            raise
        self._head = None
        if self._session is None:
            self._session = session
            self._shared = self._database.join(session, self._id)
        added = range(start, start + len(lines))
        if start == self._taken:
            self._taken = added.stop
        else:
            self._own.update(added)
        return added

    def wait(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        if self._session is None:
            time.sleep(seconds)
            return False
        while self._count() <= self._taken + len(self._own):
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self._database.wait(self._session, left)
        return True

    def shared(self) -> bool:
        return self._shared

    def close(self) -> None:
        self._closed = True
        self._database.close()

    # --- how

    def _key(self) -> int:
        if self._session is None:
            raise SessionFileError(self.location, "nothing has been written to it yet")
        return self._session

    def _check_open(self) -> None:
        if self._closed:
            raise SessionFileError(self.location, "the session is closed; open it again")

    def _rows(self, statement: str, *values: Value) -> list[Row]:
        self._check_open()
        return self._database.rows(statement, *values)

    def _count(self) -> int:
        found = self._rows("SELECT lines FROM cantle_sessions WHERE session = ?", self._key())
        if not found:
            raise self._is_gone()
        return as_int(found[0][0])

    def _fetch(self, start: int, stop: int) -> list[KeyedLine]:
        """The lines with these numbers, all of them."""
        self._check_open()
        page = lines_between(self._database, self._key(), start, stop)
        if len(page) != stop - start:
            raise self._is_gone()
        return page

    def _is_gone(self) -> SessionFileError:
        return SessionFileError(self.location, "somebody has deleted it; nothing was written")

    def _turn_to_write(self) -> tuple[int, Head]:
        """The session, which is made if it is new, and what it has. A transaction is open afterwards."""
        if self._session is not None:
            head = self._head or self._database.begin(self._session)
            if head is None:
                raise self._is_gone()
            return self._session, head
        assert self._header is not None
        self._database.begin(None)
        created = milliseconds(self._header.timestamp) or 0
        facts = encode_json(_facts_of(self._header, created))
        self._database.rows(
            "INSERT INTO cantle_sessions (id, cwd, lines, size, latest, indexed, facts)"
            " VALUES (?, ?, 0, 0, ?, 0, ?) ON CONFLICT (id) DO NOTHING",
            self._id,
            directory_bytes(self._header.cwd),
            created,
            facts,
        )
        found = self._database.rows("SELECT session, lines FROM cantle_sessions WHERE id = ?", self._id)
        if not found or found[0][1] != 0:
            raise SessionFileError(self.location, "there is a session of this id already; it was left alone")
        return as_int(found[0][0]), Head(0, 0, created, facts)


def _without_blanks(page: list[KeyedLine]) -> list[KeyedLine]:
    return [keyed for keyed in page if keyed[1] and not keyed[1].isspace()]


def _next_size(size: int, page: list[KeyedLine]) -> int:
    """How many lines to fetch after these."""
    room = sum(len(line) for _, line in page) * 2 < _PAGE_BYTES
    return min(size * 2, _LARGEST_PAGE) if room else max(size // 2, 1)


def _portions(lines: Iterable[KeyedLine]) -> Iterator[list[KeyedLine]]:
    """Lines that are written by one statement: many only while they are small."""
    portion: list[KeyedLine] = []
    size = 0
    for number, line in lines:
        if portion and (len(portion) == FIRST_PAGE or size + len(line) > _PAGE_BYTES):
            yield portion
            portion, size = [], 0
        portion.append((number, line))
        size += len(line)
    if portion:
        yield portion


def _writing(session: int, head: Head, lines: Sequence[bytes]) -> list[Statement]:
    """Statements that add lines to a session."""
    facts = decode_object(head.facts)
    latest, before = head.latest, dict(facts)
    for line in lines:
        latest = _learn(facts, line) or latest
    size = head.size + sum(len(line) + 1 for line in lines)
    adding = [
        (
            f"INSERT INTO cantle_lines (row, line) VALUES {', '.join(['(?, ?)'] * len(portion))}",
            [value for number, line in portion for value in (row_of(session, number), bytes(line))],
        )
        for portion in _portions(enumerate(lines, head.lines))
    ]
    told = head.facts if facts == before else encode_json(facts)
    update = "UPDATE cantle_sessions SET lines = ?, size = ?, latest = ?, facts = ? WHERE session = ?"
    return [*adding, (update, (head.lines + len(lines), size, latest, told, session))]


def _facts_of(header: SessionHeader, created: int) -> JsonObject:
    facts: JsonObject = {"created": created}
    return facts if header.parent_session is None else {**facts, "parent": header.parent_session}


def _learn(facts: JsonObject, line: bytes) -> int | None:
    """Take into `facts` what an entry says for a list. When the message was that it is, if it is one."""
    try:
        raw = decode_object(line)
    except ValueError:
        return None
    match raw:
        case {"type": "session_info"}:
            name = raw.get("name")
            facts["name"] = name if isinstance(name, str) and name else None
        case {"type": "message"}:
            if "first" not in facts and (text := user_text(raw)) is not None:
                facts["first"] = text[:FIRST_MESSAGE]
            return message_time(raw)
    return None


if TYPE_CHECKING:
    _: type[Storage] = DatabaseStorage
