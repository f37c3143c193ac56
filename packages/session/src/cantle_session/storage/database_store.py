"""The sessions of a database: listed, found, searched, renamed, deleted."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from msgspec import Struct

from cantle_ai.codec import decode_object
from cantle_session.errors import SessionFileError, SessionLookupError, still_open
from cantle_session.folders import absolute_directory
from cantle_session.lines import encode_header
from cantle_session.listing import NAMED_AT_ONCE, SessionInfo
from cantle_session.stamps import check_session_id
from cantle_session.storage.bin import Deletion
from cantle_session.storage.database import (
    FIRST_PAGE,
    NUMBER,
    Database,
    Row,
    as_bytes,
    as_int,
    as_text,
    directory_bytes,
    lines_between,
    may_be_id,
    row_of,
)
from cantle_session.storage.database_storage import DatabaseStorage
from cantle_session.storage.names import append_name
from cantle_session.storage.search import Query, SearchHit, hit_in, index_words, said_by

if TYPE_CHECKING:
    from cantle_session.entries import SessionHeader
    from cantle_session.storage.store import SessionStore

__all__ = ["DatabaseStore"]

_INDEX_STEP = 512
"""Lines that go into the index in one transaction: few enough that nobody waits long for its end."""
_INDEX_ROUNDS = 20


class _Portion(Struct, frozen=True):
    """Some lines of a session, by their numbers."""

    session: int
    start: int
    stop: int


class DatabaseStore:
    """The sessions of a database."""

    def __init__(self, connect: Callable[[], Database], shown: Callable[[str], str]) -> None:
        """`connect` gives a connection, which every open session has one of. `shown` gives what is shown of the
        location of a store of this kind, however it is written.
        """
        self._connect = connect
        self._shown = shown
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
        except BaseException:  # raised again, whatever it is: no connection is left behind
            database.close()
            raise

    def open(self, location: str, *, reading: bool = False) -> DatabaseStorage:
        return self.session(self._id_in(location), reading=reading)

    def sessions(self, *, cwd: str | os.PathLike[str] | None = None) -> list[SessionInfo]:
        return [info for _, info in self._listed(cwd)]

    def find(self, text: str) -> str:
        found: list[Row] = []
        if may_be_id(text):
            found = self._database.rows("SELECT id FROM cantle_sessions WHERE id = ?", text)
            found = found or self._database.rows(
                "SELECT id FROM cantle_sessions WHERE substr(id, 1, ?) = ? ORDER BY id", len(text), text
            )
        ids = [as_text(row[0]) for row in found]
        if len(ids) == 1:
            return f"{self.location}#{ids[0]}"
        if ids:
            listed = ", ".join(ids[:NAMED_AT_ONCE]) + (", …" if len(ids) > NAMED_AT_ONCE else "")
            raise SessionLookupError(f"{text!r} fits {len(ids)} sessions; give more of the id: {listed}")
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
        with closing(self.open(location)) as storage:
            append_name(storage, name)

    def move(self, location: str, header: SessionHeader) -> None:
        """Give a session another header, so another working directory. Its other lines stay."""
        found = self._database.rows("SELECT session FROM cantle_sessions WHERE id = ?", self._id_in(location))
        if not found:
            raise SessionFileError(location, "there is no such session; nothing was moved")
        session, line = as_int(found[0][0]), encode_header(header)
        try:
            if self._database.begin(session) is None:
                raise SessionFileError(location, "somebody has deleted it; nothing was moved")
            ((old,),) = self._database.rows("SELECT line FROM cantle_lines WHERE row = ?", row_of(session, 0))
            more = len(line) - len(as_bytes(old))
            self._database.finish(
                [
                    ("UPDATE cantle_lines SET line = ? WHERE row = ?", (line, row_of(session, 0))),
                    (
                        "UPDATE cantle_sessions SET cwd = ?, size = size + ? WHERE session = ?",
                        (directory_bytes(header.cwd), more, session),
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
        with closing(self.open(location)) as storage:
            if storage.shared():
                raise still_open(storage.location, "nothing was deleted")
        session = as_int(found[0][0])
        first, last = row_of(session, 0), row_of(session + 1, 0) - 1
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
        return Deletion(location=f"{self.location}#{self._id_in(location)}", to_bin=False)

    def close(self) -> None:
        self._database.close()

    # --- how

    def _id_in(self, location: str) -> str:
        store, mark, session_id = location.rpartition("#")
        if not mark or not may_be_id(session_id) or self._shown(store) != self.location:
            raise SessionFileError(location, f"it is no session of {self.location}")
        return session_id

    def _listed(self, cwd: str | os.PathLike[str] | None) -> list[tuple[int, SessionInfo]]:
        """The sessions, the one with the latest message first, each with its number."""
        where = "" if cwd is None else " WHERE cwd = ?"
        found = self._database.rows(
            f"SELECT session, id, cwd, size, latest, facts FROM cantle_sessions{where} ORDER BY latest DESC, id DESC",
            *([] if cwd is None else [directory_bytes(absolute_directory(cwd))]),
        )
        return [(as_int(row[0]), _info(self.location, row)) for row in found]

    def _candidates(self, terms: Sequence[tuple[str, bool]]) -> dict[int, list[int]] | None:
        """Numbers of the lines to look at, by session; None: at all of them."""
        if not terms or not self._database.has_index:
            return None
        try:
            self._bring_index_up()
        except SessionFileError:
            return None  # a full disk, a role that may only read: what can be read is looked at
        found: dict[int, list[int]] = {}
        for row in self._database.with_words(terms):
            found.setdefault(row >> 32, []).append(row & NUMBER)
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
            for at in range(as_int(start), as_int(stop), _INDEX_STEP):
                batch.append(_Portion(as_int(session), at, min(at + _INDEX_STEP, as_int(stop))))
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
            (row_of(portion.session, number), index_words(said.text))
            for portion in portions
            for number, line in lines_between(self._database, portion.session, portion.start, portion.stop)
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
            for at in range(0, len(numbers), FIRST_PAGE):
                rows = [row_of(session, number) for number in numbers[at : at + FIRST_PAGE]]
                marks = ", ".join("?" * len(rows))
                statement = f"SELECT line FROM cantle_lines WHERE row IN ({marks}) ORDER BY row DESC"
                yield from (as_bytes(line) for (line,) in self._database.rows(statement, *rows))
            return
        found = self._database.rows("SELECT lines FROM cantle_sessions WHERE session = ?", session)
        stop = as_int(found[0][0]) if found else 0
        while stop > 0:
            page = lines_between(self._database, session, max(0, stop - FIRST_PAGE), stop)
            yield from (line for _, line in reversed(page))
            stop -= FIRST_PAGE


def _info(store: str, row: Row) -> SessionInfo:
    _, session_id, cwd, size, latest, told = row
    facts = decode_object(as_bytes(told))
    name, first, parent, created = (facts.get(key) for key in ("name", "first", "parent", "created"))
    return SessionInfo(
        location=f"{store}#{as_text(session_id)}",
        id=as_text(session_id),
        cwd=as_bytes(cwd).decode("utf-8", "surrogatepass"),
        created=created if isinstance(created, int) else 0,
        last_message_at=as_int(latest),
        name=name if isinstance(name, str) else None,
        first_message=first if isinstance(first, str) else "",
        parent_session=parent if isinstance(parent, str) else None,
        size=as_int(size),
    )


if TYPE_CHECKING:
    _: type[SessionStore] = DatabaseStore
