"""A sound copy of a session file that is not, beside it.

What opening such a file has to guess is written down in the copy:

a line that is torn, foreign or NUL         left out; where an entry is glued to it, the entry stays
a second header                             left out
a header behind other lines, or none        put first, or made anew
an id that occurs again                     a new id, also where it is named further on
a missing parent                            the entry in front, where spoilt lines lie between, as the parent was
                                            probably there; else none: the entry begins a branch
parents that lead in a circle               cut where it closes
version 1 or 2                              version 3

All other lines are the same, byte for byte. The copy has an id of its own and names the file in `parentSession`,
so both can lie in one folder. A file without such problems is not copied.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from cantle_ai.codec import JsonObject, decode_object, encode_json
from cantle_ai.messages import now_ms
from cantle_session.entries import VERSION, SessionHeader
from cantle_session.errors import SessionFileError
from cantle_session.folders import absolute_directory, session_file_name
from cantle_session.kept import SessionWarning
from cantle_session.lines import decode_header, encode_header, link_of, sound_line
from cantle_session.stamps import iso_time, new_entry_id, new_session_id
from cantle_session.storage.jsonl import JsonlStorage
from cantle_session.tree import ROOT, Tree
from cantle_session.whole_files import write_whole

if TYPE_CHECKING:
    from cantle_session.storage.port import KeyedLine

__all__ = ["Repair", "repair_session"]

_REFERENCES = ("targetId", "firstKeptEntryId", "fromId")
_MOST_PROBLEMS = 1000


class Repair(Struct, frozen=True, kw_only=True):
    """What came of looking at a file: `problems`, each with its line and what was done, and the sound `copy`.

    Without problems there is no copy.
    """

    file: Path
    problems: list[SessionWarning]
    copy: Path | None = None
    id: str
    """The session's; that of the copy, where there is one."""
    entries: int
    """How many entries there are."""


def repair_session(file: str | os.PathLike[str], *, cwd: str | os.PathLike[str] | None = None) -> Repair:
    """Look at a session file, and write what is sound of it into a new one beside it. The file stays as it is.

    `cwd` is the working directory of the copy, needed only where no line is a header. Raises
    :class:`~cantle_session.errors.SessionFileError` when nothing in the file is a session, or it cannot be read, or
    the copy cannot be written; then there is none.
    """
    path = Path(file).absolute()
    storage = JsonlStorage.open(path, reading=True)
    try:
        problems: list[_Problem] = []
        header_key, header = _header(storage, path, problems, cwd)
        lines = _Lines(storage, header_key)
        if header.version < VERSION:
            lines = _UpgradedLines(storage, header_key, header)
            problems.append((header_key, f"says version {header.version}; the copy is of version {VERSION}"))
        found = _Found(lines, problems)
        if not problems:
            return Repair(file=path, problems=[], id=header.id, entries=len(found.tree))
        header = replace(header.current(), id=new_session_id(now_ms()), parent_session=str(path))
        copy = path.with_name(session_file_name(header.timestamp, header.id))
        try:
            write_whole(copy, chain([encode_header(header)], found.sound_lines()))
        except ValueError:
            raise SessionFileError(path, "another program has changed it meanwhile; try again") from None
        told = _with_line_numbers(problems, storage)
        return Repair(file=path, problems=told, copy=copy, id=header.id, entries=len(found.tree))
    finally:
        storage.close()


_Problem: TypeAlias = tuple[int, str]
"""The key of a line, and what is wrong with it."""


def _header(
    storage: JsonlStorage, path: Path, problems: list[_Problem], cwd: str | os.PathLike[str] | None
) -> tuple[int, SessionHeader]:
    """The first header in the file, with its key; where there is none, one made for its first entry, and -1."""
    entry: JsonObject | None = None
    for number, (key, line) in enumerate(storage.lines()):
        header = decode_header(line)
        if header is not None:
            if number:
                problems.append((key, "is the header, which belongs first; it is first in the copy"))
            if header.odd_version is not None:
                problems.append(
                    (key, f"says version {header.odd_version}, which is none; the copy says {VERSION}")
                )
            return key, header
        if entry is None and link_of(line) is not None:
            entry = decode_object(line)
    if entry is None:
        raise SessionFileError(path, "no line in it is a session's; it was left as it is")
    if cwd is None:
        text = "no line in it is a header; say which working directory the session belongs to"
        raise SessionFileError(path, text)
    problems.append((0, "is not the header of a session; the copy has a new one"))
    timestamp = entry.get("timestamp")
    return -1, SessionHeader(
        id="",
        timestamp=timestamp if isinstance(timestamp, str) else iso_time(now_ms()),
        cwd=absolute_directory(cwd),
    )


class _Lines:
    """The lines of a file behind its header."""

    def __init__(self, storage: JsonlStorage, header_key: int) -> None:
        self._storage = storage
        self._header_key = header_key

    def __iter__(self) -> Iterator[KeyedLine]:
        return ((key, line) for key, line in self._storage.lines() if key != self._header_key)

    def read(self, keys: Sequence[int]) -> Iterator[bytes]:
        return self._storage.read(keys)


class _UpgradedLines(_Lines):
    """The lines of an older file, as they are in a file of the current version."""

    def __init__(self, storage: JsonlStorage, header_key: int, header: SessionHeader) -> None:
        super().__init__(storage, header_key)
        from cantle_session.storage.legacy import upgraded

        old = list(super().__iter__())
        lines = islice(upgraded(header, old), 1, None)
        self._kept = {key: line for (key, _), line in zip(old, lines, strict=True)}

    def __iter__(self) -> Iterator[KeyedLine]:
        return iter(self._kept.items())

    def read(self, keys: Sequence[int]) -> Iterator[bytes]:
        return (self._kept[key] for key in keys)


class _Found:
    """The sound entries of a file: where they are, and how they hang together."""

    def __init__(self, lines: _Lines, problems: list[_Problem]) -> None:
        self.tree = Tree()
        self._lines = lines
        self._keys = array("Q")
        self._repeated: set[int] = set()
        """Positions of entries whose id an earlier one has."""
        behind_gap = self._take_in(problems)
        cut = self.tree.settle()
        forward = any(self.tree.parent(at) > at for at in range(len(self.tree))) if cut else False
        self._follows: dict[int, int] = {}
        for position, problem in cut:
            # Where parents come later, the entry in front may itself lie behind this one.
            lost = position in behind_gap and behind_gap[position] not in self.tree
            follows = lost and not forward
            if follows:
                self._follows[position] = position - 1
            what = "it follows the entry in front of it now" if follows else "it begins a branch now"
            problems.append((self._keys[position], f"{problem}; {what}"))

    def sound_lines(self) -> Iterator[bytes]:
        """The lines of the copy, without its header."""
        tree, ids = self.tree, self._new_ids()
        renamed: dict[str, str] = {}
        for position, line in enumerate(self._lines.read(self._keys)):
            if position in self._repeated:
                renamed[tree.ids[position]] = ids[position]
            parent = self._follows.get(position, tree.parent(position))
            yield _sound(line, ids[position], None if parent == ROOT else ids[parent], renamed)

    def _new_ids(self) -> list[str]:
        """The ids of all entries, those that occur again anew."""
        ids = list(self.tree.ids)
        taken = set(ids)
        for position in self._repeated:
            ids[position] = new_entry_id(taken)
            taken.add(ids[position])
        return ids

    def _take_in(self, problems: list[_Problem]) -> dict[int, str | None]:
        """Give each entry its place. The positions of those that have spoilt lines in front of them, and their parents."""
        behind_gap: dict[int, str | None] = {}
        gap = False
        for key, line in self._lines:
            found = sound_line(line)
            if found is None or found[1] is not line:
                what = "is not a session entry; it is not in the copy"
                if found is not None:
                    what = "is spoilt in front of its last entry; that entry is in the copy"
                problems.append((key, what))
                gap = True
            if found is None:
                continue
            link, _ = found
            if link.type == "session":
                problems.append((key, "is a second header; it is not in the copy"))
                continue
            if link.id in self.tree:
                problems.append(
                    (key, f"has the id of an earlier entry, {link.id!r}; it has another in the copy")
                )
                self._repeated.add(len(self.tree))
            if gap and len(self.tree):
                behind_gap[len(self.tree)] = link.parent_id
            gap = False
            self.tree.add(link.id, link.parent_id, link.type)
            self._keys.append(key)
        return behind_gap


def _sound(line: bytes, entry_id: str, parent_id: str | None, renamed: dict[str, str]) -> bytes:
    """The line of an entry that has this id and parent, unchanged if it says so."""
    found = sound_line(line)
    if found is None:
        raise ValueError("the line was an entry before")
    link, line = found
    if link.id == entry_id and link.parent_id == parent_id and not renamed:
        return line
    raw = decode_object(line)
    changed: JsonObject = {**raw, "id": entry_id, "parentId": parent_id}
    for name in _REFERENCES:
        target = raw.get(name)
        if isinstance(target, str) and target in renamed:
            changed[name] = renamed[target]
    return line if changed == raw else encode_json(changed)


def _with_line_numbers(problems: list[_Problem], storage: JsonlStorage) -> list[SessionWarning]:
    """The problems in the order of their lines, so that one walk through the file counts them."""
    found = sorted(problems)[:_MOST_PROBLEMS]
    told = [SessionWarning(text, storage.number(key) + 1) for key, text in found]
    if len(problems) > _MOST_PROBLEMS:
        told.append(SessionWarning(f"there are {len(problems) - _MOST_PROBLEMS} more problems"))
    return told
