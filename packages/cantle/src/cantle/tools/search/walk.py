"""The walk through a folder that every search makes.

Entries come in one order on every machine: each folder's by the bytes of their names, what a folder holds
right behind it. Ignored entries and `.git` are left out, other hidden ones are not. Symbolic links are entries
and never followed, so there is no loop. A folder is read when its turn comes, so a search that has enough has
read no more than it needed; what is held is the entries of the folders that are open.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from typing import Literal, TypeAlias

from msgspec import Struct

from cantle.tools.blocking import Check
from cantle.tools.search.ignore import Rules, rules_above, rules_below
from cantle.tools.search.raw_files import joined
from cantle_ai.system_errors import reason_of

__all__ = ["Entry", "Unreadable", "walk"]

Kind: TypeAlias = Literal["file", "folder", "link", "other"]


class Entry(Struct, frozen=True):
    """Something that the walk came by."""

    path: bytes
    """From the search folder, with slashes on every system."""
    kind: Kind

    @property
    def marked(self) -> bytes:
        """The path as globs and ignore rules take it: NUL stands behind a folder's."""
        return self.path + b"\0" if self.kind == "folder" else self.path


class Unreadable(Struct, frozen=True):
    """A folder or file that could not be looked into."""

    path: bytes
    reason: str


def walk(root: str, unreadable: list[Unreadable], check: Check) -> Iterator[Entry]:
    """What is below the folder `root`, a real path. Folders that can't be read are added to `unreadable`.

    `check` is called for every folder; it raises to end the walk.
    """
    top = os.fsencode(root).replace(os.sep.encode(), b"/")
    opened = [_opened(top, b"", rules_above(top), unreadable, check)]
    while opened:
        entries, rules, path = opened[-1]
        entry = next(entries, None)
        if entry is None:
            opened.pop()
            continue
        yield entry
        if entry.kind == "folder":
            name = entry.path[len(path) :]
            below = rules.inside(name)
            opened.append(_opened(top, entry.path + b"/", below, unreadable, check))


_Opened: TypeAlias = tuple[Iterator[Entry], Rules, bytes]


def _opened(top: bytes, path: bytes, rules: Rules, unreadable: list[Unreadable], check: Check) -> _Opened:
    check()
    folder = joined(top, path)
    found: list[tuple[bytes, Kind]] = []
    try:
        with os.scandir(folder) as entries:
            found = [(entry.name, _kind(entry)) for entry in entries]
    except OSError as problem:
        unreadable.append(Unreadable(path.removesuffix(b"/") or b".", reason_of(problem)))
    rules = rules_below(rules, folder, {name for name, _ in found})
    found.sort()
    ignores = rules.ignores
    kept = (
        Entry(path + name, kind)
        for name, kind in found
        if name != b".git" and not (rules.sources and ignores(name, kind == "folder"))
    )
    return kept, rules, path


def _kind(entry: os.DirEntry[bytes]) -> Kind:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "link" if sys.platform == "win32" and _is_junction(entry) else "folder"
    return "file" if entry.is_file(follow_symlinks=False) else "other"


def _is_junction(entry: os.DirEntry[bytes]) -> bool:
    attributes: int = getattr(entry.stat(follow_symlinks=False), "st_file_attributes", 0)
    return bool(attributes & stat.FILE_ATTRIBUTE_REPARSE_POINT)
