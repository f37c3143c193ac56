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

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TypeAlias

from msgspec import Struct

from cantle_ai.codec import JsonObject, decode_object, encode_json
from cantle_ai.messages import UserMessage, message_from_json
from cantle_session.errors import SessionFileError, SessionLookupError
from cantle_session.folders import absolute_directory
from cantle_session.lines import encode_header
from cantle_session.listing import FIRST_MESSAGE, SessionInfo
from cantle_session.stamps import check_session_id, milliseconds
from cantle_session.storage.bin import Deletion
from cantle_session.storage.names import append_name
from cantle_session.storage.search import Query, SearchHit, hit_in, index_words, said_by

if TYPE_CHECKING:
    from cantle_session.entries import SessionHeader
    from cantle_session.storage.port import KeyedLine, Storage
    from cantle_session.storage.store import SessionStore

__all__ = ["Database", "DatabaseStorage", "DatabaseStore", "Head", "Row", "Statement", "Value"]

Value: TypeAlias = int | str | bytes
Row: TypeAlias = "tuple[Value | None, ...]"
Statement: TypeAlias = "tuple[str, Sequence[Value]]"

_FIRST_PAGE, _LARGEST_PAGE = 64, 4096
"""Lines that are fetched at once, first and at most: more only while they are small."""
_MOST_VALUES = 900
"""In one statement; older versions of SQLite take 999."""
_PAGE_BYTES = 1 << 20
_INDEX_STEP = 512
"""Lines that go into the index in one transaction: few enough that nobody waits long for its end."""
_INDEX_ROUNDS = 20
_NUMBER = 0xFFFFFFFF
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
        found = self._database.rows("SELECT session, lines FROM cantle_sessions WHERE id = ?", self._id)
        if not found:
            raise SessionFileError(
                self.location, "there is no such session; list the sessions to see which there are"
            )
        self._session, self._taken = _int(found[0][0]), _int(found[0][1])
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
        start, size = 0, _FIRST_PAGE
        while start < self._taken:
            page = self._fetch(start, min(start + size, self._taken))
            yield from _spoken(page)
            start, size = start + len(page), _next_size(size, page)
        own = sorted(self._own)
        yield from zip(own, self.read(own), strict=True)

    def backwards(self) -> Iterator[KeyedLine]:
        if self._session is None:
            return
        own = sorted(self._own, reverse=True)
        yield from zip(own, self.read(own), strict=True)
        stop, size = self._taken, _FIRST_PAGE
        while stop > 0:
            page = self._fetch(max(0, stop - size), stop)
            yield from reversed(_spoken(page))
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
            start = max(0, stop - _FIRST_PAGE)
            found = self._rows(statement, _row(self._session, start), _row(self._session, stop), text)
            yield from ((_int(row) & _NUMBER, _bytes(line)) for row, line in found)
            stop = start

    def pull(self) -> Iterator[KeyedLine]:
        if self._session is None:
            return
        stop = self._count() if self._head is None else self._head.lines
        while self._taken < stop:
            page = self._fetch(self._taken, min(stop, self._taken + _FIRST_PAGE))
            own = self._own
            self._taken += len(page)
            self._own = {number for number in own if number >= self._taken}
            yield from [keyed for keyed in _spoken(page) if keyed[0] not in own]

    def read(self, keys: Sequence[int]) -> Iterator[bytes]:
        at, size = 0, _FIRST_PAGE
        while at < len(keys):
            rows = [_row(self._key(), number) for number in keys[at : at + size]]
            marks = ", ".join("?" * len(rows))
            found = self._rows(f"SELECT row, line FROM cantle_lines WHERE row IN ({marks})", *rows)
            lines = {_int(row): _bytes(line) for row, line in found}
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
        return _int(found[0][0]) if found else 0

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
        except BaseException:
            # Whatever came between, an interrupt too: nothing was kept, and nobody is kept out.
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
        return _int(found[0][0])

    def _fetch(self, start: int, stop: int) -> list[KeyedLine]:
        """The lines with these numbers, all of them."""
        self._check_open()
        page = _lines_between(self._database, self._key(), start, stop)
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
            _directory(self._header.cwd),
            created,
            facts,
        )
        found = self._database.rows("SELECT session, lines FROM cantle_sessions WHERE id = ?", self._id)
        if not found or found[0][1] != 0:
            raise SessionFileError(self.location, "there is a session of this id already; it was left alone")
        return _int(found[0][0]), Head(0, 0, created, facts)


class _Portion(Struct, frozen=True):
    """Some lines of a session, by their numbers."""

    session: int
    start: int
    stop: int


class DatabaseStore:
    """The sessions of a database."""

    def __init__(self, connect: Callable[[], Database]) -> None:
        """`connect` gives a connection, which every open session has one of."""
        self._connect = connect
        self._database = connect()

    @property
    def location(self) -> str:
        return self._database.location

    def create(self, header: SessionHeader) -> DatabaseStorage:
        try:
            return DatabaseStorage(self._connect(), check_session_id(header.id), header)
        except ValueError as problem:
            raise SessionFileError(self.location, str(problem)) from None

    def session(self, session_id: str, *, reading: bool = False) -> DatabaseStorage:
        """The lines of the session of this id."""
        database = self._connect()
        try:
            return DatabaseStorage(database, session_id, reading=reading)
        except BaseException:
            database.close()
            raise

    def open(self, location: str, *, reading: bool = False) -> DatabaseStorage:
        return self.session(self._id_in(location), reading=reading)

    def sessions(self, *, cwd: str | os.PathLike[str] | None = None) -> list[SessionInfo]:
        return [info for _, info in self._listed(cwd)]

    def find(self, text: str) -> str:
        found: list[Row] = []
        if text and text.isascii() and text.isprintable():
            found = self._database.rows("SELECT id FROM cantle_sessions WHERE id = ?", text)
            found = found or self._database.rows(
                "SELECT id FROM cantle_sessions WHERE substr(id, 1, ?) = ? ORDER BY id", len(text), text
            )
        locations = [f"{self.location}#{_text(row[0])}" for row in found]
        if len(locations) == 1:
            return locations[0]
        if locations:
            listed = ", ".join(locations[:5])
            raise SessionLookupError(f"{text!r} fits {len(found)} sessions; give more of the id: {listed}")
        raise SessionLookupError(
            f"there is no session whose id begins with {text!r} in {self.location}; give another id"
        )

    def search(
        self, words: str, *, cwd: str | os.PathLike[str] | None = None, limit: int = 50
    ) -> list[SearchHit]:
        query, hits = Query(words), list[SearchHit]()
        if not query or limit < 1:
            return hits
        asked = self._candidates(query.index_terms())
        for session, info in self._listed(cwd):
            for line in self._lines_of(session, asked):
                if query.may_be_in(line) and (hit := hit_in(line, info, query)) is not None:
                    hits.append(hit)
                    if len(hits) == limit:
                        return hits
        return hits

    def rename(self, location: str, name: str) -> None:
        storage = self.open(location)
        try:
            append_name(storage, name)
        finally:
            storage.close()

    def move(self, location: str, header: SessionHeader) -> None:
        """Give a session another header, so another working directory. Its other lines stay."""
        found = self._database.rows("SELECT session FROM cantle_sessions WHERE id = ?", self._id_in(location))
        if not found:
            raise SessionFileError(location, "there is no such session; nothing was moved")
        session, line = _int(found[0][0]), encode_header(header)
        try:
            self._database.begin(session)
            ((old,),) = self._database.rows("SELECT line FROM cantle_lines WHERE row = ?", _row(session, 0))
            more = len(line) - len(_bytes(old))
            self._database.finish(
                [
                    ("UPDATE cantle_lines SET line = ? WHERE row = ?", (line, _row(session, 0))),
                    (
                        "UPDATE cantle_sessions SET cwd = ?, size = size + ? WHERE session = ?",
                        (_directory(header.cwd), more, session),
                    ),
                ],
                changed=session,
            )
        finally:
            self._database.rollback()

    def delete(self, location: str) -> Deletion:
        """For good: a database has no bin."""
        found = self._database.rows("SELECT session FROM cantle_sessions WHERE id = ?", self._id_in(location))
        if not found:
            raise SessionFileError(location, "there is no such session; nothing was deleted")
        session = _int(found[0][0])
        first, last = _row(session, 0), _row(session + 1, 0) - 1
        try:
            self._database.begin(session)
            self._database.finish(
                [
                    *self._database.removing_words(first, last),
                    ("DELETE FROM cantle_lines WHERE row BETWEEN ? AND ?", (first, last)),
                    ("DELETE FROM cantle_sessions WHERE session = ?", (session,)),
                ],
                changed=session,
            )
        finally:
            self._database.rollback()
        return Deletion(location=location, to_bin=False)

    def close(self) -> None:
        self._database.close()

    # --- how

    def _id_in(self, location: str) -> str:
        store, mark, session_id = location.rpartition("#")
        if not mark or not session_id or store != self.location:
            raise SessionFileError(location, f"it is no session of {self.location}")
        return session_id

    def _listed(self, cwd: str | os.PathLike[str] | None) -> list[tuple[int, SessionInfo]]:
        """The sessions, the one with the latest message first, each with its number."""
        where = "" if cwd is None else " WHERE cwd = ?"
        found = self._database.rows(
            f"SELECT session, id, cwd, size, latest, facts FROM cantle_sessions{where} ORDER BY latest DESC, id DESC",
            *([] if cwd is None else [_directory(absolute_directory(cwd))]),
        )
        return [(_int(row[0]), _info(self.location, row)) for row in found]

    def _candidates(self, terms: Sequence[tuple[str, bool]]) -> dict[int, list[int]] | None:
        """Numbers of the lines to look at, by session; None: at all of them."""
        if not terms or not self._database.has_index:
            return None
        self._bring_index_up()
        found: dict[int, list[int]] = {}
        for row in self._database.with_words(terms):
            found.setdefault(row >> 32, []).append(row & _NUMBER)
        return found

    def _bring_index_up(self) -> None:
        """Put what was added since into the index."""
        query = "SELECT session, indexed, lines FROM cantle_sessions WHERE indexed < lines ORDER BY session"
        # Where two do this at once, what one leaves to the other is looked at again.
        for _ in range(_INDEX_ROUNDS):
            if not (behind := self._database.rows(query)):
                return
            self._index_behind(behind)

    def _index_behind(self, behind: Sequence[Row]) -> None:
        """Put lines of these sessions into the index, some in each transaction."""
        batch: list[_Portion] = []
        for session, start, stop in behind:
            for at in range(_int(start), _int(stop), _INDEX_STEP):
                batch.append(_Portion(_int(session), at, min(at + _INDEX_STEP, _int(stop))))
                if sum(portion.stop - portion.start for portion in batch) >= _INDEX_STEP:
                    self._index(batch)
                    batch = []
        self._index(batch)

    def _index(self, portions: Sequence[_Portion]) -> None:
        """Put these lines into the index, all of them, unless somebody else has done some."""
        if not portions:
            return
        # The words are found before the turn is taken: a line never changes, and writers wait less.
        words = [
            (_row(portion.session, number), index_words(said.text))
            for portion in portions
            for number, line in _lines_between(self._database, portion.session, portion.start, portion.stop)
            if (said := said_by(line)) is not None
        ]
        marks = ", ".join("?" * len(portions))
        statement = (
            f"SELECT session, indexed FROM cantle_sessions WHERE session IN ({marks}) ORDER BY session"
        )
        update = "UPDATE cantle_sessions SET indexed = ? WHERE session = ?"
        try:
            self._database.begin(None)
            found = self._database.rows(
                statement + self._database.for_update, *[portion.session for portion in portions]
            )
            if found == [(portion.session, portion.start) for portion in portions]:
                done = [(update, (portion.stop, portion.session)) for portion in portions]
                self._database.finish([*self._database.adding_words(words), *done])
        finally:
            self._database.rollback()

    def _lines_of(self, session: int, asked: dict[int, list[int]] | None) -> Iterator[bytes]:
        """The lines of a session that are to be looked at, the last one first."""
        if asked is not None:
            numbers = sorted(asked.get(session, ()), reverse=True)
            for at in range(0, len(numbers), _FIRST_PAGE):
                rows = [_row(session, number) for number in numbers[at : at + _FIRST_PAGE]]
                marks = ", ".join("?" * len(rows))
                statement = f"SELECT line FROM cantle_lines WHERE row IN ({marks}) ORDER BY row DESC"
                yield from (_bytes(line) for (line,) in self._database.rows(statement, *rows))
            return
        found = self._database.rows("SELECT lines FROM cantle_sessions WHERE session = ?", session)
        stop = _int(found[0][0]) if found else 0
        while stop > 0:
            page = _lines_between(self._database, session, max(0, stop - _FIRST_PAGE), stop)
            yield from (line for _, line in reversed(page))
            stop -= _FIRST_PAGE


def _row(session: int, number: int) -> int:
    return session << 32 | number


def _lines_between(database: Database, session: int, start: int, stop: int) -> list[KeyedLine]:
    found = database.rows(
        "SELECT row, line FROM cantle_lines WHERE row >= ? AND row < ? ORDER BY row",
        _row(session, start),
        _row(session, stop),
    )
    return [(_int(row) & _NUMBER, _bytes(line)) for row, line in found]


def _spoken(page: list[KeyedLine]) -> list[KeyedLine]:
    """Without blank lines."""
    return [keyed for keyed in page if keyed[1] and not keyed[1].isspace()]


def _next_size(size: int, page: list[KeyedLine]) -> int:
    """How many lines to fetch after these."""
    room = sum(len(line) for _, line in page) * 2 < _PAGE_BYTES
    return min(size * 2, _LARGEST_PAGE) if room else max(size // 2, 1)


def _writing(session: int, head: Head, lines: Sequence[bytes]) -> list[Statement]:
    """Statements that add lines to a session."""
    facts = decode_object(head.facts)
    latest, before = head.latest, dict(facts)
    for line in lines:
        latest = _learn(facts, line) or latest
    size = head.size + sum(len(line) + 1 for line in lines)
    adding: list[Statement] = [
        ("INSERT INTO cantle_lines (row, line) VALUES (?, ?)", (_row(session, number), bytes(line)))
        for number, line in enumerate(lines, head.lines)
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
        case {"type": "message", "message": dict(message)}:
            if "first" not in facts and message.get("role") == "user":
                said = message_from_json(message)
                if isinstance(said, UserMessage):
                    facts["first"] = said.text[:FIRST_MESSAGE]
            stamp, written = message.get("timestamp"), raw.get("timestamp")
            if isinstance(stamp, int) and 0 < stamp < 1 << 62:
                return stamp
            return milliseconds(written) if isinstance(written, str) else None
    return None


def _info(store: str, row: Row) -> SessionInfo:
    _, session_id, cwd, size, latest, told = row
    facts = decode_object(_bytes(told))
    name, first, parent, created = (facts.get(key) for key in ("name", "first", "parent", "created"))
    return SessionInfo(
        location=f"{store}#{_text(session_id)}",
        id=_text(session_id),
        cwd=_bytes(cwd).decode("utf-8", "surrogatepass"),
        created=created if isinstance(created, int) else 0,
        last_message_at=_int(latest),
        name=name if isinstance(name, str) else None,
        first_message=first if isinstance(first, str) else "",
        parent_session=parent if isinstance(parent, str) else None,
        size=_int(size),
    )


def _directory(cwd: str) -> bytes:
    return cwd.encode("utf-8", "surrogatepass")


def _int(value: Value | None) -> int:
    assert isinstance(value, int)
    return value


def _text(value: Value | None) -> str:
    assert isinstance(value, str)
    return value


def _bytes(value: Value | None) -> bytes:
    assert isinstance(value, bytes)
    return value


if TYPE_CHECKING:
    _storage: type[Storage] = DatabaseStorage
    _store: type[SessionStore] = DatabaseStore
