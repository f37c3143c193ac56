"""One branch of a session as the lines of a session of its own.

The lines on the way from the root to an entry are taken as they are, ids and times included. Where the file was
not sound (a parent that is missing, a line that is spoilt in front of its entry), the line says what the tree
made of it. Labels may be set on other branches: those that the way itself does not give to its entries follow at
its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cantle_ai.codec import decode_object, encode_json
from cantle_session.entries import LabelEntry
from cantle_session.lines import decode_entry, encode_entry, sound_line
from cantle_session.stamps import new_entry_id

if TYPE_CHECKING:
    from cantle_session.session import Session

__all__ = ["branch_lines"]


def branch_lines(session: Session, leaf_id: str | None = None, *, before: bool = False) -> Iterator[bytes]:
    """The lines of the branch that ends at an entry, by default where the session stands, without a header.

    With `before`, the entry itself is not among them. Raises UnknownEntryError when there is no such entry.
    """
    nothing = leaf_id is None and session.leaf_id is None
    lines = () if nothing else session.lines(leaf_id)
    return _branch(session, _without_last(lines) if before else lines)


def _branch(session: Session, lines: Iterable[bytes]) -> Iterator[bytes]:
    ids: set[str] = set()
    labels: dict[str, str | None] = {}
    last: str | None = None
    for found in filter(None, map(sound_line, lines)):
        link, line = found
        yield line if link.parent_id == last else _behind(line, last)
        last = link.id
        ids.add(last)
        if link.type == "label" and isinstance(label := decode_entry(line), LabelEntry):
            labels[label.target_id] = label.label
    for entry in _labels_elsewhere(session, ids, labels):
        moved = replace(entry, id=new_entry_id(ids), parent_id=last)
        yield encode_entry(moved)
        last = moved.id
        ids.add(last)


def _without_last(lines: Iterable[bytes]) -> Iterator[bytes]:
    held: bytes | None = None
    for line in lines:
        if held is not None:
            yield held
        held = line


def _behind(line: bytes, parent_id: str | None) -> bytes:
    return encode_json({**decode_object(line), "parentId": parent_id})


def _labels_elsewhere(session: Session, ids: set[str], here: dict[str, str | None]) -> list[LabelEntry]:
    """The label entries that count for these entries in the whole session and say something else than `here` does."""
    latest = {
        entry.target_id: entry
        for entry in session.walk(whole=True, kind="label")
        if isinstance(entry, LabelEntry)
    }
    return [
        entry
        for target, entry in latest.items()
        if target in ids and (entry.label or None) != (here.get(target) or None)
    ]
