"""Where sessions lie: one folder for each working directory, one file for each session.

    <sessions root>/--home-ann-project--/2026-01-31T23-59-59-123Z_<session id>.jsonl

The folder's name is the absolute path without its first separator, with `/`, `\\` and `:` as `-`, between
`--` and `--`: the reference's way, so both find each other's sessions. Different paths can share a folder
(`/a/b` and `/a:b`); the header of each file says which directory it belongs to. A name too long for a file
system is cut and ends in a digest of the whole.

    location of a store                 of a session in it
    /home/ann/sessions                  /home/ann/sessions/2026-…_0197a3d2-….jsonl
    sqlite:/home/ann/sessions.db        sqlite:/home/ann/sessions.db#0197a3d2-…
    postgresql://ann@db.example/notes   postgresql://ann@db.example/notes#0197a3d2-…

Behind the last `#` of a database's location is the id of a session. A relative path after `sqlite:` counts from
the working directory, and `~` at its beginning is the home folder.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TypeGuard

from cantle_session.stamps import file_stamp

__all__ = ["absolute_directory", "is_database", "make_folder", "session_file_name", "session_folder"]

_LONGEST_NAME = 255
"""Bytes in a file name, on every common file system."""
_LONGEST_STAMP = 40
_SEPARATORS = str.maketrans("/\\:", "---")


def absolute_directory(cwd: str | os.PathLike[str]) -> str:
    """`cwd` as a session's header records it: absolute and normal, links as they are."""
    path = os.path.abspath(cwd)  # noqa: PTH100 - resolving would follow links
    return path[1:] if os.sep == "/" and path.startswith("//") else path


def session_folder(cwd: str | os.PathLike[str], sessions_root: str | os.PathLike[str]) -> Path:
    """The folder for the sessions of the working directory `cwd`. Nothing is made."""
    path = absolute_directory(cwd)
    inner = path[1:] if path.startswith(("/", "\\")) else path
    name = f"--{inner.translate(_SEPARATORS)}--"
    encoded = os.fsencode(name)
    if len(encoded) > _LONGEST_NAME:
        from hashlib import sha256

        digest = sha256(encoded).hexdigest()[:16]
        kept = encoded[: _LONGEST_NAME - len(digest) - 3].decode("utf-8", "ignore")
        name = f"{kept}-{digest}--"
    return Path(sessions_root) / name


def session_file_name(timestamp: str, session_id: str) -> str:
    """The name of a session's file, from its header's time and id.

    A header that somebody else wrote can say anything for a time: what has no place in a name becomes `-`.
    """
    stamp = re.sub(r"[^0-9A-Za-z-]", "-", file_stamp(timestamp))[:_LONGEST_STAMP]
    return f"{stamp}_{session_id}.jsonl"


def is_database(location: str | os.PathLike[str]) -> TypeGuard[str]:
    """Whether a location names a database, or a session in one; else it is a path."""
    return isinstance(location, str) and location.startswith(("sqlite:", "postgresql://", "postgres://"))


def make_folder(folder: Path) -> None:
    """The folder and what is missing above it, for the user's eyes only. Raises OSError."""
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for path in reversed(missing):
        path.mkdir(mode=0o700, exist_ok=True)
