"""Files by the bytes of their names: a name that is not UTF-8 is one as well."""

from __future__ import annotations

import os
import stat

__all__ = ["joined", "open_file", "read_head"]


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
        head = os.read(descriptor, size)
        while head and len(head) < size and (more := os.read(descriptor, size - len(head))):
            head += more
        return head
    finally:
        os.close(descriptor)
