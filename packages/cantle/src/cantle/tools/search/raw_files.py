"""Files by the bytes of their names: a name that is not UTF-8 is one as well."""

from __future__ import annotations

import os
import stat

__all__ = ["joined", "open_file", "read_head", "read_up_to", "size_of"]


def joined(folder: bytes, *names: bytes) -> bytes:
    """The path of an entry of `folder`; with slashes, which every system takes."""
    return b"/".join((folder.rstrip(b"/"), *names))


def open_file(path: bytes) -> int:
    """A descriptor to read from, without ever waiting for a pipe or a device. Raises OSError."""
    flags = os.O_RDONLY
    for name in ("O_NONBLOCK", "O_BINARY", "O_NOCTTY"):
        flags |= getattr(os, name, 0)
    return os.open(path, flags)


def read_head(path: bytes, size: int) -> bytes:
    """At most `size` bytes of a regular file's beginning; none of anything else. Raises OSError."""
    descriptor = open_file(path)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return b""
        return read_up_to(descriptor, size)
    finally:
        os.close(descriptor)


def read_up_to(descriptor: int, size: int) -> bytes:
    """The next `size` bytes; fewer only at the end. Raises OSError."""
    data = b""
    while len(data) < size and (more := os.read(descriptor, size - len(data))):
        data += more
    return data


def size_of(path: bytes) -> int:
    """The bytes of a file; 0 of one that can't be looked at."""
    try:
        return os.stat(path).st_size  # noqa: PTH116 - Path takes no bytes
    except OSError:
        return 0
