"""What is kept of one session, and where it stands: the storage, its index or its end, and what waits to be kept.

:class:`~cantle_session.session.Session` is the face of it. Entries come in and go out here; what they mean is not
known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from cantle_ai.messages import now_ms
from cantle_session.entries import Entry, MessageEntry
from cantle_session.errors import UnknownEntryError
from cantle_session.history import History
from cantle_session.lines import Link, decode_entry, encode_entry
from cantle_session.projection import PathView
from cantle_session.stamps import iso_time, new_entry_id
from cantle_session.tail import LARGE, Tail, read_tail
from cantle_session.tree import ROOT

if TYPE_CHECKING:
    from typing import TypedDict

    from cantle_session.storage.port import KeyedLine, Storage

    class EntryFields(TypedDict):
        """What every entry has."""

        id: str
        parent_id: str | None
        timestamp: str


__all__ = ["Kept", "SessionWarning"]

_MOST_WARNINGS = 100

_E = TypeVar("_E", bound=Entry)


class SessionWarning(Struct, frozen=True):
    """Something that a person should know about a session. `line` counts from 1, where it is about one."""

    text: str
    line: int | None = None

    def __str__(self) -> str:
        return self.text if self.line is None else f"line {self.line}: {self.text}"


class Kept:
    """The entries of one session. `waiting` are the lines of one of which nothing is kept yet, the header first."""

    def __init__(self, storage: Storage, waiting: list[bytes] | None = None) -> None:
        self.storage = storage
        self.waiting = waiting
        self.warnings: list[SessionWarning] = []
        self._whole: History | None = History()
        self._tail: Tail | None = None
        self._leaf = ROOT
        self._leaf_key = 0
        self._crowded = False

    def begin(self, lines: Iterator[KeyedLine]) -> None:
        """Stand at the last entry of what is kept. `lines` are those behind the header."""
        if self.storage.size() >= LARGE and (tail := read_tail(self.storage)) is not None:
            self._whole, self._tail = None, tail
            self._leaf_key = tail.keys[-1]
        else:
            self._leaf = len(self.history.take_in(lines, self.warn)) - 1
        if self.storage.shared():
            self._crowded = True
            self.warn("another process has this session open; both can go on, each on a branch of its own")

    # --- reading

    @property
    def tail(self) -> Tail | None:
        """What has been read of a long session; None once all of it has."""
        return self._tail

    @property
    def history(self) -> History:
        """All of it, which is read now if it was not yet."""
        if self._whole is None:
            whole = History()
            lines = self.storage.lines()
            next(lines, None)
            whole.take_in(lines, self.warn)
            self._leaf = whole.at(self._leaf_key)
            self._whole, self._tail = whole, None
        return self._whole

    @property
    def leaf_id(self) -> str | None:
        """The entry that the next one follows."""
        return self.id_at(self._leaf) if self._tail is None else self._tail.links[-1].id

    def stand_at(self, entry_id: str | None) -> None:
        """Move the leaf to an entry, or before the first. Raises UnknownEntryError when there is no such entry."""
        _ = self.history  # reading it sets the leaf
        self._leaf = ROOT if entry_id is None else self.position(entry_id)

    def position(self, entry_id: str) -> int:
        """Where an entry is in the order in which they were kept. Raises UnknownEntryError when there is no such entry."""
        position = self.history.tree.position(entry_id)
        if position is None:
            raise UnknownEntryError(entry_id)
        return position

    def id_at(self, position: int) -> str | None:
        """The id of the entry there; None for :data:`~cantle_session.tree.ROOT`."""
        return None if position == ROOT else self.history.tree.ids[position]

    def path_to(self, entry_id: str | None) -> list[int]:
        """The positions from the root to an entry, or to the leaf."""
        return self.history.tree.path(self._leaf if entry_id is None else self.position(entry_id))

    def check_known(self, entry_id: str) -> None:
        """Raises UnknownEntryError when there is no such entry."""
        if self._tail is None or entry_id not in self._tail.ids:
            self.position(entry_id)

    def load(self, positions: Sequence[int]) -> Iterator[Entry]:
        """The entries at these positions."""
        return self.history.load(positions, self._read, self.warn)

    def lines(self, positions: Sequence[int]) -> Iterable[bytes]:
        """The lines that the entries at these positions are in, spoilt parts and all."""
        return self._read(self.history.keys(positions))

    def view(self, *, whole: bool = False) -> PathView:
        """The path to the leaf; of a long session its end, which is enough for a context, unless `whole`."""
        if self._tail is not None and not whole:
            return self._tail.path_view(self._read, self.warn)
        return self.history.path_view(self._leaf, self._read, self.warn)

    def newest(self, text: bytes) -> Iterator[Entry]:
        """The entries whose lines hold `text`, the last one first."""
        if self.waiting is None:
            return _decoded(self.storage.containing(text))
        return _decoded((0, line) for line in reversed(self.waiting) if text in line)

    def every_entry(self) -> Iterator[Entry]:
        """All entries, one after the other, without an index."""
        lines = self.storage.lines() if self.waiting is None else iter(enumerate(self.waiting))
        next(lines, None)
        return _decoded(lines)

    def _read(self, keys: Sequence[int]) -> Iterable[bytes]:
        waiting = self.waiting
        return self.storage.read(keys) if waiting is None else (waiting[key] for key in keys)

    # --- writing

    @contextmanager
    def turn(self) -> Iterator[EntryFields]:
        """What the next entry has in common with every other, with other writers kept out and what they added taken in."""
        with self.storage.locked():
            if self.pull() and not self._crowded:
                self._crowded = True
                self.warn("another process adds to this session; its entries are a branch of their own")
            yield {
                "id": new_entry_id(None if self._whole is None else self._whole.tree),
                "parent_id": self.leaf_id,
                "timestamp": iso_time(now_ms()),
            }

    def add(self, entry: _E) -> _E:
        """Keep an entry, behind the leaf, and stand there. Within :meth:`turn`."""
        line = encode_entry(entry)
        waiting = self.waiting
        if waiting is None:
            (key,) = self.storage.append([line])
        elif isinstance(entry, MessageEntry) and entry.message.role == "user":
            *before, key = self.storage.append([*waiting, line])
            self.history.move(before[1:])
            self.waiting = None
        else:
            key = len(waiting)
            waiting.append(line)
        link = Link(entry.type, entry.id, entry.parent_id)
        if self._tail is None:
            self._leaf = self.history.add(link, key)
        else:
            self._tail.add(link, key)
            self._leaf_key = key
        return entry

    def pull(self) -> list[Entry]:
        """Take in what others have added. The leaf stays."""
        if self.waiting is not None:
            return []
        lines = list(self.storage.pull())
        if self._whole is None:
            return list(_decoded(lines))
        return list(self.load(self._whole.take_in(lines, self.warn))) if lines else []

    def warn(self, text: str, key: int | None = None) -> None:
        """Keep a warning, about the line with this key."""
        if len(self.warnings) > _MOST_WARNINGS:
            return
        warning = SessionWarning(text, None if key is None else self.storage.number(key) + 1)
        if len(self.warnings) == _MOST_WARNINGS:
            warning = SessionWarning("there are more warnings than are shown here")
        if warning not in self.warnings:
            self.warnings.append(warning)


def _decoded(lines: Iterable[KeyedLine]) -> Iterator[Entry]:
    for _, line in lines:
        try:
            yield decode_entry(line)
        except ValueError:
            continue
