"""One branch of a session as the lines of a session of its own.

The lines on the way from the root to an entry are taken as they are, ids and times included. Where the file was
not sound (a parent that is missing, a line that is spoilt in front of its entry), the line says what the tree
made of it. Labels are set on any branch, so those of the entries on the way follow at the end, where the way
itself does not set them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cantle_session.entries import Entry, LabelEntry, UnknownEntry
from cantle_session.lines import encode_entry
from cantle_session.stamps import new_entry_id

if TYPE_CHECKING:
    from cantle_session.session import Session

__all__ = ["branch_lines"]


def branch_lines(session: Session, leaf: str | None) -> Iterator[bytes]:
    """The lines of the branch that ends at the entry `leaf`, without a header; none for None.

    Raises KeyError when there is no such entry.
    """
    entries = session.entries()
    path = _path(entries, leaf)
    last: str | None = None
    for entry in path:
        yield encode_entry(_behind(entry, last))
        last = entry.id
    taken = {entry.id for entry in path}
    for label in _labels(entries, path):
        moved = replace(label, id=new_entry_id(taken), parent_id=last)
        taken.add(moved.id)
        yield encode_entry(moved)
        last = moved.id


def _path(entries: Sequence[Entry], leaf: str | None) -> list[Entry]:
    by_id = {entry.id: entry for entry in entries}
    found: list[Entry] = []
    seen: set[str] = set()
    entry = None if leaf is None else by_id[leaf]
    while entry is not None and entry.id not in seen:
        found.append(entry)
        seen.add(entry.id)
        entry = None if entry.parent_id is None else by_id.get(entry.parent_id)
    return found[::-1]


def _behind(entry: Entry, parent_id: str | None) -> Entry:
    if entry.parent_id == parent_id:
        return entry
    if isinstance(entry, UnknownEntry):
        return UnknownEntry({**entry.raw, "parentId": parent_id})
    return replace(entry, parent_id=parent_id)


def _labels(entries: Sequence[Entry], path: Sequence[Entry]) -> list[LabelEntry]:
    """The label entries that say something else than the path does about its entries."""
    on_path = {entry.id for entry in path}
    here = {entry.target_id: entry for entry in path if isinstance(entry, LabelEntry)}
    everywhere = {
        entry.target_id: entry
        for entry in entries
        if isinstance(entry, LabelEntry) and entry.target_id in on_path
    }
    return [
        entry
        for target, entry in everywhere.items()
        if (entry.label or None) != ((here[target].label or None) if target in here else None)
    ]
