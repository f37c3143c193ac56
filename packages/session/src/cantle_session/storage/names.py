"""Giving a session a name without taking in what it holds: one more line behind its last entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cantle_ai.messages import now_ms
from cantle_session.entries import SessionInfoEntry
from cantle_session.errors import SessionFileError
from cantle_session.lines import encode_entry, link_of
from cantle_session.stamps import iso_time, new_entry_id

if TYPE_CHECKING:
    from cantle_session.storage.port import Storage

__all__ = ["append_name"]


def append_name(storage: Storage, name: str) -> None:
    """Name the session, on one line; an empty name takes the name away."""
    with storage.locked():
        for _ in storage.pull():
            pass
        entry = SessionInfoEntry(
            id=new_entry_id(None),
            parent_id=_last_id(storage),
            timestamp=iso_time(now_ms()),
            name=" ".join(name.split()),
        )
        storage.append([encode_entry(entry)])


def _last_id(storage: Storage) -> str | None:
    """The entry at the end of the session; None where only the header is there. Raises for what is no session."""
    headed = False
    for _, line in storage.backwards():
        link = link_of(line)
        if link is not None and link.type != "session":
            return link.id
        headed = headed or link is not None
    if headed:
        return None
    raise SessionFileError(storage.path or storage.location, "it is no session; nothing was written")
