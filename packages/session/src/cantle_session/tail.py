"""The end of a long session: its lines from the last one back to what the latest compaction keeps.

What a compaction hides need not be read to go on, so a session of any length opens in the time that its end
takes. Anything out of the ordinary on the way back (a spoilt line, a parent that comes later, no compaction)
gives no tail, and the whole is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from msgspec import Struct

from cantle_ai.codec import encode_json
from cantle_session.entries import CompactionEntry, Entry, ThinkingLevelChangeEntry
from cantle_session.history import Reader, Warn, decoded
from cantle_session.lines import Link, decode_entry, link_of
from cantle_session.projection import PathView

if TYPE_CHECKING:
    from cantle_session.storage.port import Storage

__all__ = ["LARGE", "Tail", "older_thinking_level", "read_tail"]

LARGE = 1 << 20
"""Bytes from which on a session is not read whole to go on."""
_FAR = 500
"""Lines on the way back, from which on it is worth knowing whether there is a compaction at all."""
_HEAD = 16
"""Lines at the beginning, among which is what a session starts with."""


class Tail(Struct):
    """The last part of the active path, oldest first. It grows with what is appended."""

    links: list[Link]
    keys: list[int]
    ids: set[str]

    def add(self, link: Link, key: int) -> None:
        self.links.append(link)
        self.keys.append(key)
        self.ids.add(link.id)

    def path_view(self, read: Reader, warn: Warn) -> PathView:
        """The path from where the tail begins."""

        def load(indexes: Sequence[int]) -> Iterator[Entry]:
            keys = [self.keys[index] for index in indexes]
            for index, line in zip(indexes, read(keys), strict=True):
                yield decoded(line, self.links[index], self.keys[index], warn)

        return PathView([link.type for link in self.links], [link.id for link in self.links], load)


def read_tail(storage: Storage) -> Tail | None:
    """The tail of a session; None when it must be read whole."""
    links: list[Link] = []
    keys: list[int] = []
    wanted = kept = None
    for seen, (key, line) in enumerate(storage.backwards()):
        if seen == _FAR and kept is None and not _has_compaction(storage):
            return None
        link = link_of(line)
        if link is None or link.type == "session":
            return None
        if links and link.id != wanted:
            continue  # of another branch
        links.append(link)
        keys.append(key)
        wanted = link.parent_id
        if link.type == "compaction" and kept is None:
            kept = _kept_by(line)
        if link.id == kept:
            links.reverse()
            keys.reverse()
            ids = {link.id for link in links}
            return Tail(links, keys, ids) if len(ids) == len(links) else None
        if wanted is None:
            return None
    return None


def _has_compaction(storage: Storage) -> bool:
    """Looked for by its name in no time, where the way back to none takes as long as reading all."""
    return next(storage.containing(b'"compaction"'), None) is not None


def _kept_by(line: bytes) -> str | None:
    try:
        entry = decode_entry(line)
    except ValueError:
        return None
    return entry.first_kept_entry_id if isinstance(entry, CompactionEntry) else None


def older_thinking_level(storage: Storage, read_whole: Callable[[], str | None]) -> str | None:
    """The thinking level on a path whose tail does not say it.

    Chosen at the start, it is found by looking for its name; chosen later, its branch must be known.
    """
    for _, line in storage.containing(b'"thinking_level_change"'):
        try:
            entry = decode_entry(line)
        except ValueError:
            continue
        if isinstance(entry, ThinkingLevelChangeEntry):
            return entry.thinking_level if _on_every_path(storage, entry.id) else read_whole()
    return None


def _on_every_path(storage: Storage, entry_id: str) -> bool:
    """Whether an entry at the beginning is in front of all others, but for those that lead to it. If in doubt, not."""
    leading: list[str | None] = [None]
    for _, line in islice(storage.lines(), 1, _HEAD):
        link = link_of(line)
        if link is None or link.parent_id != leading[-1]:
            return False
        if link.id == entry_id:
            return all(_followed_once(storage, each) for each in leading)
        leading.append(link.id)
    return False


def _followed_once(storage: Storage, entry_id: str | None) -> bool:
    followers = storage.containing(b'"parentId":' + encode_json(entry_id))
    return len(list(islice(followers, 2))) == 1
