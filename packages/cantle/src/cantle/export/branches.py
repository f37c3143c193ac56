"""The tree of a session laid out for reading: one chain of entries, and where it forks, the other ways on.

    chain   entry ── entry ── fork ── entry ── entry ── fork ── …
                                ├ way: chain
                                └ way: chain

The first chain goes to the leaf. In every other one, the way with most entries is the one that goes on in the
chain; so however a session branches, a chain lies in no more than log2(entries) + 1 others, which keeps the page
within the depth that browsers build. Entries that only keep books (a label, a name, a choice of model) with
nothing after them are no way of their own: they stand where they were added.

Time and memory are in step with the entries; nothing here recurses along a branch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct, field

from cantle_session.entries import Entry, MessageEntry
from cantle_session.errors import UnknownEntryError
from cantle_session.tree import ROOT, Tree

__all__ = ["Chain", "Fork", "Way", "branches", "lay_out"]

_BOOKKEEPING = frozenset(
    {"model_change", "thinking_level_change", "session_info", "custom", "label", "usage", "context_edit"}
)


class Chain(Struct):
    """Positions of entries, each after its parent, with forks between them."""

    items: list[int | Fork] = field(default_factory=list)


class Way(Struct):
    """One way on from a fork, which begins at the entry `first`; `chain` is None for the one that goes on in place."""

    number: int
    first: int
    messages: int
    chain: Chain | None = None


class Fork(Struct):
    """Several ways on, in the order in which they began. `main` goes on in the chain; None where the session stands."""

    number: int
    ways: list[Way]
    main: Way | None


class _Growth(Struct):
    """Of each entry's subtree: its entries, its messages, whether it is more than bookkeeping."""

    entries: list[int]
    messages: list[int]
    matters: list[bool]


def lay_out(entries: Sequence[Entry], leaf_id: str | None) -> Chain:
    """The tree of these entries, which are in the order in which they were written, with `leaf_id` at the first chain's end.

    Raises UnknownEntryError when there is no such entry.
    """
    tree = _tree(entries)
    children, roots = _children(tree)
    growth = _growth(entries, children, roots)
    leaf = ROOT if leaf_id is None else tree.position(leaf_id)
    if leaf is None:
        raise UnknownEntryError(leaf_id)
    path = frozenset(tree.path(leaf))
    first = Chain()
    waiting: list[tuple[Chain, list[int]]] = [(first, roots)]
    forks = 0
    while waiting:
        chain, follow = waiting.pop()
        last = ROOT
        while follow:
            ways, notes = _sorted_out(follow, growth, path)
            chain.items += (note for root in notes for note in _preorder(root, children))
            stands = bool(path) and last == leaf
            main = None if stands else _main(ways, growth, path)
            if len(ways) > 1 or (ways and stands):
                forks += 1
                fork = _fork(forks, ways, main, growth)
                chain.items.append(fork)
                waiting += ((way.chain, [way.first]) for way in fork.ways if way.chain is not None)
            if main is None:
                break
            chain.items.append(main)
            last, follow = main, children[main]
    return first


def branches(chain: Chain) -> int:
    """In how many ends the tree below `chain` comes out."""
    count, waiting = 1, [chain]
    while waiting:
        for item in waiting.pop().items:
            if isinstance(item, Fork):
                others = [way.chain for way in item.ways if way.chain is not None]
                count += len(others)
                waiting += others
    return count


def _tree(entries: Sequence[Entry]) -> Tree:
    tree = Tree()
    for entry in entries:
        tree.add(entry.id, entry.parent_id, entry.type)
    tree.settle()
    return tree


def _children(tree: Tree) -> tuple[list[list[int]], list[int]]:
    children: list[list[int]] = [[] for _ in range(len(tree))]
    roots: list[int] = []
    for position in range(len(tree)):
        parent = tree.parent(position)
        (roots if parent == ROOT else children[parent]).append(position)
    return children, roots


def _growth(entries: Sequence[Entry], children: list[list[int]], roots: list[int]) -> _Growth:
    order: list[int] = []
    waiting = list(roots)
    while waiting:
        position = waiting.pop()
        order.append(position)
        waiting += children[position]
    growth = _Growth([1] * len(entries), [0] * len(entries), [False] * len(entries))
    for position in reversed(order):
        entry = entries[position]
        spoken = isinstance(entry, MessageEntry) and entry.message.role in {"user", "assistant"}
        below = children[position]
        growth.entries[position] += sum(growth.entries[child] for child in below)
        growth.messages[position] = spoken + sum(growth.messages[child] for child in below)
        growth.matters[position] = entry.type not in _BOOKKEEPING or any(
            growth.matters[child] for child in below
        )
    return growth


def _sorted_out(follow: list[int], growth: _Growth, path: frozenset[int]) -> tuple[list[int], list[int]]:
    """Which of the entries that follow are ways on, and which begin bookkeeping."""
    if len(follow) == 1:
        return follow, []
    ways = [position for position in follow if growth.matters[position] or position in path]
    if not ways:
        return follow[-1:], follow[:-1]
    return ways, [position for position in follow if not (growth.matters[position] or position in path)]


def _main(ways: list[int], growth: _Growth, path: frozenset[int]) -> int | None:
    for position in ways:
        if position in path:
            return position
    return max(ways, key=lambda position: (growth.entries[position], position), default=None)


def _fork(number: int, ways: list[int], main: int | None, growth: _Growth) -> Fork:
    made = [
        Way(count, position, growth.messages[position], None if position == main else Chain())
        for count, position in enumerate(ways, 1)
    ]
    return Fork(number, made, next((way for way in made if way.first == main), None))


def _preorder(root: int, children: list[list[int]]) -> Iterator[int]:
    waiting = [root]
    while waiting:
        position = waiting.pop()
        yield position
        waiting += reversed(children[position])
