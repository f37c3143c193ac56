"""Removing a file in a way that can be taken back, where the system has a bin."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from msgspec import Struct

from cantle_ai.system_errors import reason_of
from cantle_session.errors import SessionFileError

__all__ = ["Deletion", "delete_file"]


class Deletion(Struct, frozen=True, kw_only=True):
    """What became of a deleted session."""

    location: str
    to_bin: bool
    """Whether it can be taken out of the system's bin again; else it is gone for good."""


_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EIO}
"""A bin that is there and cannot take it now: no reason to remove a session for good."""


def delete_file(path: Path) -> Deletion:
    """Put a file into the bin; where there is none, remove it for good. Raises :class:`SessionFileError`."""
    # A link is removed, not what it leads to, so it is looked at as it is.
    try:
        kind = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise SessionFileError(path, "there is no such file; nothing was deleted") from None
    except OSError as problem:
        raise SessionFileError(
            path, f"could not be looked at: {reason_of(problem)}; nothing was deleted"
        ) from None
    if stat.S_ISDIR(kind):
        raise SessionFileError(path, "it is a folder, not the file of a session; nothing was deleted")
    if _to_bin(path):
        return Deletion(location=str(path), to_bin=True)
    try:
        path.unlink()
    except OSError as problem:
        raise SessionFileError(
            path, f"could not be deleted: {reason_of(problem)}; check the permissions of its folder"
        ) from None
    return Deletion(location=str(path), to_bin=False)


def _to_bin(path: Path) -> bool:
    """Whether the bin took it. What comes where there is none differs from system to system.

    Raises :class:`SessionFileError` when there is one that is full.
    """
    try:
        from send2trash import send2trash
    except ImportError:
        return False
    try:
        send2trash(str(path))
    except Exception as problem:  # noqa: BLE001 - a desktop's own errors come through, such as gio's
        if isinstance(problem, OSError) and problem.errno in _FULL:
            text = f"the bin could not take it: {reason_of(problem)}; nothing was deleted"
            raise SessionFileError(path, text) from None
        return False
    return not os.path.lexists(path)
