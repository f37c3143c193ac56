"""Regular files only: read without ever waiting for a pipe or a device, replaced whole or not at all.

New bytes go to a file beside the old one, which then takes its place. Mode bits, and owner, group and
extended attributes as far as the system allows, are carried over. So a reader sees the old file or the
new one, and a crash leaves one of them. What follows:

- Symbolic links stay: callers resolve them first, and the file at their end is replaced.
- Hard links part: the other names keep the old file. Package managers link one stored copy into many
  projects, and writing through such a link would change all of them.
- Where the folder takes no new file, or the file is a mount point, it is written in place, and the old
  bytes are put back if that fails. Nothing else can be done there.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from cantle.tools.blocking import Check
from cantle.tools.paths import kind_name
from cantle_agent.tool import ToolError
from cantle_ai.system_errors import reason_of

if TYPE_CHECKING:
    from cantle_ai.new_files import NewFile

__all__ = ["FileState", "check_writable", "open_regular", "read_all", "replace_file"]

_NEW_MODE = 0o666


class FileState(Struct, frozen=True):
    """What tells one state of a file from another."""

    device: int
    inode: int
    size: int
    modified_ns: int

    @classmethod
    def of(cls, found: os.stat_result) -> FileState:
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


@contextmanager
def open_regular(path: Path, name: str) -> Iterator[tuple[int, os.stat_result]]:
    """A descriptor to read the regular file at `path` from, and what it is.

    Raises :class:`ToolError`, in terms of `name`, for anything else and for what may not be read.
    """
    flags = (
        os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOCTTY", 0)
    )
    try:
        # Looked at first as well: opening some devices has effects.
        _refuse_irregular(path.stat(), name)
        descriptor = os.open(path, flags)
    except OSError as problem:
        raise ToolError(f"{name} can't be read: {reason_of(problem)}.") from None
    try:
        found = os.fstat(descriptor)
        _refuse_irregular(found, name)
        yield descriptor, found
    finally:
        os.close(descriptor)


def read_all(path: Path, name: str, *, limit: int) -> tuple[bytes, FileState]:
    """All bytes of a regular file, and the state they belong to. Raises :class:`ToolError`, also above `limit`."""
    with open_regular(path, name) as (descriptor, found):
        if found.st_size > limit:
            raise ToolError(
                f"{name} has {found.st_size:,} bytes; files above {limit:,} can't be edited here. "
                "Change it with bash, for instance with sed."
            )
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(found.st_size + 1)
        if len(data) != found.st_size or FileState.of(os.fstat(descriptor)) != FileState.of(found):
            raise ToolError(f"{name} is being written by someone else; read it again.")
        return data, FileState.of(found)


def check_writable(path: Path, found: os.stat_result, name: str) -> None:
    """Raise :class:`ToolError` when the existing file may not be changed. A file that nobody may write counts,
    whoever runs this: its owner said so.
    """
    _refuse_irregular(found, name)
    if not os.access(path, os.W_OK) or not found.st_mode & 0o222:
        raise ToolError(
            f"{name} is read-only (mode {stat.S_IMODE(found.st_mode):04o}); nothing was changed. "
            "If it is meant to be changed, make it writable first."
        )


def replace_file(path: Path, data: bytes, name: str, *, expected: FileState | None, check: Check) -> None:
    """Make `data` the content of the file at `path`, a real path whose folder exists.

    `expected` is the state that it must still be in, None that it must not exist. `check` is called right
    before the file changes. Raises :class:`ToolError`, and then the file is as it was.
    """
    from cantle_ai.new_files import new_file

    old = _stat(path)
    if old is not None:
        check_writable(path, old, name)
    try:
        with new_file(path.parent, _NEW_MODE if old is None else 0o600) as fresh:
            fresh.write(data)
            if old is not None:
                _carry_over(path, fresh.descriptor, old)
                # Else a crash may leave neither the old bytes nor the new.
                os.fsync(fresh.descriptor)
            _commit(path, fresh, name, expected, check)
    except OSError as problem:
        if old is None or not _needs_place(problem):
            raise ToolError(f"{name} can't be written: {reason_of(problem)}.") from None
        _write_in_place(path, data, name, expected, check)


def _carry_over(path: Path, descriptor: int, old: os.stat_result) -> None:
    if sys.platform == "linux":
        try:
            for key in os.listxattr(path):
                os.setxattr(descriptor, key, os.getxattr(path, key))
        except OSError:
            pass
    if hasattr(os, "fchown"):
        mine = os.fstat(descriptor)
        if (mine.st_uid, mine.st_gid) != (old.st_uid, old.st_gid):
            for owner, group in ((old.st_uid, old.st_gid), (-1, old.st_gid)):
                try:
                    os.fchown(descriptor, owner, group)
                    break
                except OSError:
                    continue
    if hasattr(os, "fchmod"):
        os.fchmod(descriptor, stat.S_IMODE(old.st_mode))


def _commit(path: Path, fresh: NewFile, name: str, expected: FileState | None, check: Check) -> None:
    check()
    _require_state(path, name, expected)
    if expected is not None:
        fresh.replace(path)
        return
    try:
        fresh.become(path)
    except FileExistsError:
        raise _changed(name) from None


def _write_in_place(path: Path, data: bytes, name: str, expected: FileState | None, check: Check) -> None:
    before, state = read_all(path, name, limit=1 << 40)
    if expected is not None and state != expected:
        raise _changed(name)
    check()
    try:
        with path.open("r+b") as file:
            try:
                _overwrite(file.fileno(), data)
            except OSError:
                _overwrite(file.fileno(), before)
                raise
    except OSError as problem:
        raise ToolError(f"{name} can't be written: {reason_of(problem)}.") from None


def _overwrite(descriptor: int, data: bytes) -> None:
    os.lseek(descriptor, 0, os.SEEK_SET)
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
    os.ftruncate(descriptor, len(data))
    os.fsync(descriptor)


def _require_state(path: Path, name: str, expected: FileState | None) -> None:
    found = _stat(path)
    if (None if found is None else FileState.of(found)) != expected:
        raise _changed(name)


def _changed(name: str) -> ToolError:
    return ToolError(
        f"{name} has been changed by someone else meanwhile; nothing was written. Read it again."
    )


def _needs_place(problem: OSError) -> bool:
    import errno

    return problem.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY, errno.EXDEV)


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _refuse_irregular(found: os.stat_result, name: str) -> None:
    if not stat.S_ISREG(found.st_mode):
        advice = " List it with bash: ls." if stat.S_ISDIR(found.st_mode) else ""
        raise ToolError(f"{name} is {kind_name(found.st_mode)}, not a file.{advice}")
