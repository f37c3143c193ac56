"""The entries that a storage keeps, as an index: where each is and what it follows. None is decoded unasked."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from cantle_session.entries import Entry, UnknownEntry
from cantle_session.lines import Link, decode_entry, link_of, sound_part
from cantle_session.projection import PathView
from cantle_session.tree import Tree

if TYPE_CHECKING:
    from cantle_session.storage.port import KeyedLine

__all__ = ["History", "Reader", "Warn", "decoded"]

Reader: TypeAlias = Callable[[Sequence[int]], Iterable[bytes]]
"""Gives the lines with these keys."""
Warn: TypeAlias = Callable[[str, int], None]
"""Takes what is wrong with a line, and its key."""


class History:
    """All entries of a session. An entry's position is its place in the order in which they were kept."""

    __slots__ = ("_keys", "tree")

    def __init__(self) -> None:
        self.tree = Tree()
        self._keys = array("Q")

    def __len__(self) -> int:
        return len(self._keys)

    def take_in(self, lines: Iterable[KeyedLine], warn: Warn) -> range:
        """Give each line behind the header its place in the tree; the positions of those that are entries."""
        before = len(self)
        for key, line in lines:
            link = link_of(line) or _rescued(key, line, warn)
            if link is None:
                continue
            if link.type == "session":
                warn("is a second header; it was left as it was", key)
                continue
            if link.id in self.tree:
                warn(f"has the id of an earlier entry, {link.id!r}", key)
            self.add(link, key)
        for position, problem in self.tree.settle():
            warn(f"{problem}, so it begins a branch", self._keys[position])
        return range(before, len(self))

    def add(self, link: Link, key: int) -> int:
        """Add the entry of one line; gives its position."""
        self._keys.append(key)
        return self.tree.add(link.id, link.parent_id, link.type)

    def move(self, keys: Sequence[int]) -> None:
        """The lines have other keys now."""
        self._keys = array("Q", keys)

    def at(self, key: int) -> int:
        """The position of the entry whose line has this key."""
        return bisect_left(self._keys, key)

    def keys(self, positions: Iterable[int]) -> list[int]:
        """The keys of the lines that the entries at these positions are in."""
        return [self._keys[position] for position in positions]

    def load(self, positions: Sequence[int], read: Reader, warn: Warn) -> Iterator[Entry]:
        """The entries at these positions."""
        keys = self.keys(positions)
        for position, line in zip(positions, read(keys), strict=True):
            link = Link(self.tree.kinds[position], self.tree.ids[position])
            yield decoded(line, link, self._keys[position], warn)

    def path_view(self, leaf: int, read: Reader, warn: Warn) -> PathView:
        """The path that ends at a position."""
        positions = self.tree.path(leaf)
        kinds, ids = self.tree.kinds, self.tree.ids
        return PathView(
            [kinds[position] for position in positions],
            [ids[position] for position in positions],
            lambda indexes: self.load([positions[index] for index in indexes], read, warn),
        )


def _rescued(key: int, line: bytes, warn: Warn) -> Link | None:
    """The place of what is still sound of a spoilt line."""
    part = sound_part(line)
    what = "is not a session entry" if part is None else "is spoilt in front of its last entry"
    warn(f"{what}; it was left as it was", key)
    return None if part is None else link_of(part)


def decoded(line: bytes, link: Link, key: int, warn: Warn) -> Entry:
    """The entry of a line that was one when it was read first."""
    try:
        return decode_entry(line)
    except ValueError:
        warn("can no longer be read; its entry is left out", key)
        return UnknownEntry({"type": link.type, "id": link.id})
