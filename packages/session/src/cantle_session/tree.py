"""The tree that a session's entries form, as an index: no entry is held, only where it is and what leads to it.

Entries have positions in the order in which they were added. A parent is looked up among the entries before
it first, so an id that occurs twice cannot close a circle; a parent that comes later is found by
:meth:`Tree.settle`, which also cuts the circles that such files can hold. All of it takes time in step with
the entries, however deep a branch is.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from sys import intern

__all__ = ["ROOT", "Tree"]

ROOT = -1
"""The parent of an entry without one."""


class Tree:
    """Positions, ids, kinds and parents of entries. `id in tree` says whether an id is taken."""

    __slots__ = ("_children", "_forward", "_parents", "_positions", "ids", "kinds")

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.kinds: list[str] = []
        self._parents = array("q")
        self._positions: dict[str, int] = {}
        self._forward: list[tuple[int, str]] = []
        self._children: dict[int, list[int]] | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def __contains__(self, entry_id: object) -> bool:
        return entry_id in self._positions

    def position(self, entry_id: str) -> int | None:
        """Where the entry with this id is; the last one if several have it."""
        return self._positions.get(entry_id)

    def parent(self, position: int) -> int:
        """The position of the parent, or :data:`ROOT`."""
        return self._parents[position]

    def add(self, entry_id: str, parent_id: str | None, kind: str) -> int:
        """Add an entry and give its position. An unknown parent waits for :meth:`settle`."""
        position = len(self.ids)
        parent = ROOT if parent_id is None else self._positions.get(parent_id)
        if parent is None:
            self._forward.append((position, parent_id or ""))
            parent = ROOT
        self._parents.append(parent)
        self.ids.append(entry_id)
        self.kinds.append(intern(kind))
        self._positions[entry_id] = position
        if self._children is not None:
            self._children.setdefault(parent, []).append(position)
        return position

    def settle(self) -> list[tuple[int, str]]:
        """Find the parents that came late. What has none, or would close a circle, is a root: (position, why)."""
        if not self._forward:
            return []
        waiting, self._forward = self._forward, []
        self._children = None
        problems, linked = [], []
        for position, parent_id in waiting:
            parent = self._positions.get(parent_id)
            if parent is None:
                problems.append((position, f"its parent {parent_id!r} is missing"))
            else:
                self._parents[position] = parent
                linked.append(position)
        for position in self._circles(linked):
            self._parents[position] = ROOT
            problems.append((position, "its parents lead in a circle"))
        return sorted(problems)

    def path(self, leaf: int) -> list[int]:
        """The positions from the root down to `leaf`; none for :data:`ROOT`."""
        found = []
        parents = self._parents
        while leaf != ROOT:
            found.append(leaf)
            leaf = parents[leaf]
        found.reverse()
        return found

    def children(self, position: int) -> list[int]:
        """The positions of what follows an entry, or of the roots for :data:`ROOT`, in order."""
        if self._children is None:
            self._children = {}
            for child, parent in enumerate(self._parents):
                self._children.setdefault(parent, []).append(child)
        return list(self._children.get(position, ()))

    def common_ancestor(self, first: int, second: int) -> int:
        """The deepest entry on both paths; :data:`ROOT` where there is none."""
        on_path = set(self.path(first))
        while second != ROOT and second not in on_path:
            second = self._parents[second]
        return second

    def _circles(self, starts: list[int]) -> Iterator[int]:
        """One entry of each circle, the one whose parent comes after it."""
        seen = bytearray(len(self.ids))
        for start in starts:
            trail, node = [], start
            while node != ROOT and not seen[node]:
                seen[node] = 1
                trail.append(node)
                node = self._parents[node]
            if node != ROOT and seen[node] == 1:
                circle = trail[trail.index(node) :]
                yield next(at for at in circle if self._parents[at] >= at)
            for at in trail:
                seen[at] = 2
