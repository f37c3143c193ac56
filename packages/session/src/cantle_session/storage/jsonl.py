"""A session in a file of lines, which only grows. The key of a line is its offset.

What is promised, and how:

- A line that was kept survives the death of the process: it was handed to the system in one `O_APPEND` write.
  It survives a power cut once the session was closed, which is when the file is synchronised; doing that for
  every line would cost more than the line.
- A line that could not be written whole is taken back, so disk and memory agree. If others wrote meanwhile,
  the torn line stays and the next one starts on a line of its own.
- What others write is never overwritten: before each write the lines that they added are taken in.
- Nothing is held of a line but its offset, and that only by who asked for it.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from cantle_ai.system_errors import reason_of
from cantle_session.errors import SessionFileError
from cantle_session.folders import make_folder
from cantle_session.storage.locks import LockTimeout, announce_presence, turn

if TYPE_CHECKING:
    from cantle_session.storage.port import KeyedLine, Storage

__all__ = ["JsonlStorage", "file_problem"]

_BLOCK = 1 << 20
_TAIL_BLOCK = 1 << 18
_GUESS = 1 << 14
"""Bytes to read for a line of unknown length."""
_LOOK_EVERY = 0.02
"""Seconds between two looks at a file that is followed. A look is one system call."""
_CHECK_EVERY = 0.5
"""Seconds after which a file that is followed and did not grow may be another one by now, or none."""
_READ_WAIT = 0.5
"""Seconds to wait for the end of a write before reading; whoever only reads need not wait longer."""
_BINARY = getattr(os, "O_BINARY", 0)
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)
_FILE_MODE = 0o600


class JsonlStorage:
    """The lines of one file: one that is there (:meth:`open`), or that the first line brings about (:meth:`create`)."""

    __slots__ = (
        "_backlog",
        "_closed",
        "_counted",
        "_end",
        "_in_turn",
        "_path",
        "_reader",
        "_shared",
        "_unsynced",
        "_writer",
    )

    def __init__(self, path: Path) -> None:
        self._path = path
        self._reader: _Descriptor | None = None
        self._writer: _Descriptor | None = None
        self._end = 0
        self._in_turn = False
        self._unsynced = False
        self._shared = False
        self._closed = False
        self._backlog: list[KeyedLine] = []
        self._counted = (0, 0)
        """A key and its number, from which the next is counted."""

    @classmethod
    def create(cls, path: Path) -> JsonlStorage:
        """A file that does not exist before the first :meth:`append`, which fails if there is one by then."""
        return cls(path)

    @classmethod
    def open(cls, path: Path, *, in_turn: bool = False, reading: bool = False) -> JsonlStorage:
        """An existing file. `in_turn` if the caller has the turn to write, `reading` if it never will: then others
        are not told that it is there. Raises :class:`SessionFileError`.
        """
        storage = cls(path)
        storage._open_reader(unseen=reading)
        try:
            # A size taken in turn lies at the end of a write, not in the middle of one.
            with nullcontext() if in_turn else turn(path, wait=_READ_WAIT):
                storage._end = storage._size()
        except LockTimeout:
            storage._end = storage._whole(storage._size())
        return storage

    @property
    def path(self) -> Path:
        return self._path

    @property
    def location(self) -> str:
        return str(self._path)

    def lines(self) -> Iterator[KeyedLine]:
        return iter(()) if self._reader is None else self._split(0, self._end)

    def backwards(self) -> Iterator[KeyedLine]:
        return iter(()) if self._reader is None else self._split_backwards(self._end)

    def containing(self, text: bytes) -> Iterator[KeyedLine]:
        # Blocks overlap, so that none cuts the text in two.
        stop, seen = self._end, self._end
        while stop > 0:
            start = max(0, stop - _BLOCK)
            block = self._read_at(start, min(stop + len(text) - 1, self._end) - start)
            at = len(block)
            while (at := block.rfind(text, 0, at)) >= 0:
                if start + at < seen:
                    seen, line = self._line_around(start + at)
                    yield seen, line
            stop = start

    def pull(self) -> Iterator[KeyedLine]:
        if self._reader is None:
            return iter(())
        size = self._size()
        if size < self._end:
            raise SessionFileError(self._path, "another program has cut it shorter; open the session again")
        # In turn, a line without its end is one that was torn; else it may still be being written.
        return self._news(size if self._in_turn else self._whole(size))

    def read(self, keys: Sequence[int]) -> Iterator[bytes]:
        at = 0
        while at < len(keys):
            first, at = at, at + 1
            # Lines that lie close behind one another are read together.
            while at < len(keys) and keys[at - 1] < keys[at] < keys[first] + _BLOCK:
                at += 1
            yield from self._read_run(keys[first:at])

    def number(self, key: int) -> int:
        start, number = self._counted if self._counted[0] <= key else (0, 0)
        for at in range(start, key, _BLOCK):
            number += self._read_at(at, min(_BLOCK, key - at)).count(b"\n")
        self._counted = key, number
        return number

    def size(self) -> int:
        return self._end

    def locked(self) -> AbstractContextManager[None]:
        return nullcontext() if self._reader is None else self._turn()

    def append(self, lines: Sequence[bytes]) -> Sequence[int]:
        data = b"".join([line + b"\n" for line in lines])
        if self._reader is None:
            self._create(data)
            start = 0
        else:
            start = self._extend(data)
        keys = []
        for line in lines:
            keys.append(start)
            start += len(line) + 1
        self._end = start
        return keys

    def wait(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        check = time.monotonic() + _CHECK_EVERY
        while (self._size() if self._reader is not None else 0) <= self._end:
            now = time.monotonic()
            if now >= check and self._reader is not None:
                self.check_in_place("no more of it can be seen")
                check = now + _CHECK_EVERY
            if now >= deadline:
                return False
            time.sleep(min(deadline - now, _LOOK_EVERY))
        return True

    def check_in_place(self, so: str = "nothing was written") -> None:
        """Raise unless the file that is open is still the one at its path; `so` is what comes of it."""
        try:
            there, here = self._path.stat(), os.fstat(self._fd)
        except OSError as problem:
            raise file_problem(self._path, f"is not there any more, so {so}", problem) from None
        if (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino):
            text = f"another program has put a different file in its place, so {so}; open it again"
            raise SessionFileError(self._path, text)

    def shared(self) -> bool:
        return self._shared

    def close(self) -> None:
        self._closed = True
        writer, self._writer = self._writer, None
        reader, self._reader = self._reader, None
        try:
            if writer is not None and self._unsynced:
                os.fsync(writer.fd)
                self._unsynced = False
        except OSError as problem:
            raise file_problem(self._path, "could not be written to the disk", problem) from None
        finally:
            for descriptor in (writer, reader):
                if descriptor is not None:
                    descriptor.close()

    # --- reading

    def _open_reader(self, *, unseen: bool = False) -> None:
        try:
            reader = _Descriptor(os.open(self._path, os.O_RDONLY | _BINARY | _NONBLOCK))
        except OSError as problem:
            raise file_problem(self._path, "could not be opened", problem) from None
        if not stat.S_ISREG(os.fstat(reader.fd).st_mode):
            raise SessionFileError(self._path, "it is not a file; give the path of a session file")
        self._reader = reader
        self._shared = not unseen and announce_presence(reader.fd)

    def _size(self) -> int:
        return os.fstat(self._fd).st_size

    @property
    def _fd(self) -> int:
        if self._reader is None:
            raise self._is_closed()
        return self._reader.fd

    def _is_closed(self) -> SessionFileError:
        return SessionFileError(self._path, "the session is closed; open it again")

    def _read_at(self, offset: int, size: int) -> bytes:
        try:
            if sys.platform == "win32":
                os.lseek(self._fd, offset, os.SEEK_SET)
                return os.read(self._fd, size)
            else:
                return os.pread(self._fd, size, offset)
        except OSError as problem:
            raise file_problem(self._path, "could not be read", problem) from None

    def _whole(self, size: int) -> int:
        """Where the last line that has its end stops, within `size` bytes; not before what is known already."""
        stop = size
        while stop > self._end:
            start = max(self._end, stop - _TAIL_BLOCK)
            found = self._read_at(start, stop - start).rfind(b"\n")
            if found >= 0:
                return start + found + 1
            stop = start
        return self._end

    def _news(self, stop: int) -> Iterator[KeyedLine]:
        backlog, self._backlog = self._backlog, []
        yield from backlog
        start, self._end = self._end, stop
        yield from self._split(start, stop)

    def _read_run(self, keys: Sequence[int]) -> Iterator[bytes]:
        start = keys[0]
        block = self._read_at(start, keys[-1] - start + _GUESS)
        while block.find(b"\n", keys[-1] - start) < 0 and (
            more := self._more(start + len(block), len(block))
        ):
            block += more
        for key in keys:
            stop = block.find(b"\n", key - start)
            yield block[key - start : stop if stop >= 0 else len(block)]

    def _more(self, offset: int, size: int) -> bytes:
        return self._read_at(offset, max(0, min(size, self._end - offset)))

    def _line_around(self, offset: int) -> KeyedLine:
        """The line that the byte at `offset` belongs to."""
        start = offset
        while start > 0:
            low = max(0, start - _GUESS)
            found = self._read_at(low, start - low).rfind(b"\n")
            if found >= 0:
                start = low + found + 1
                break
            start = low
        (line,) = self._read_run([start])
        return start, line

    def _split(self, offset: int, stop: int) -> Iterator[KeyedLine]:
        """The lines between two offsets. One block is in memory, or one line."""
        parts: list[bytes] = []
        start, size = offset, _GUESS  # who asks for the first line alone has not read a block
        while offset < stop and (block := self._read_at(offset, min(size, stop - offset))):
            offset += len(block)
            size = min(4 * size, _BLOCK)
            first, *others = block.split(b"\n")
            parts.append(first)
            if others:
                for line in (b"".join(parts), *others[:-1]):
                    if line and not line.isspace():
                        yield start, line
                    start += len(line) + 1
                parts = [others[-1]]
        rest = b"".join(parts)
        if rest and not rest.isspace():
            yield start, rest

    def _split_backwards(self, stop: int) -> Iterator[KeyedLine]:
        """The lines up to an offset, the last one first."""
        parts: list[bytes] = []  # of the line whose beginning is not read yet, the last part first
        end = stop
        while end > 0:
            start = max(0, end - _TAIL_BLOCK)
            block = self._read_at(start, end - start)
            first, *others = block.split(b"\n")
            at = end
            for line in reversed(others):
                at -= len(line)
                parts.append(line)
                whole = b"".join(reversed(parts)) if len(parts) > 1 else line
                if whole and not whole.isspace():
                    yield at, whole
                parts = []
                at -= 1
            parts.append(first)
            end = start
        whole = b"".join(reversed(parts))
        if whole and not whole.isspace():
            yield 0, whole

    # --- writing

    @contextmanager
    def _turn(self) -> Iterator[None]:
        try:
            with turn(self._path):
                self._in_turn = True
                try:
                    yield
                finally:
                    self._in_turn = False
        except LockTimeout:
            raise SessionFileError(
                self._path, "another process keeps its folder locked; nothing was written, try again"
            ) from None

    def _create(self, data: bytes) -> None:
        if self._closed:
            raise self._is_closed()
        try:
            make_folder(self._path.parent)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | _BINARY
            writer = _Descriptor(os.open(self._path, flags, _FILE_MODE))
        except FileExistsError:
            raise SessionFileError(
                self._path, "there is a file of this name already; it was left alone"
            ) from None
        except OSError as problem:
            raise file_problem(self._path, "could not be made", problem) from None
        try:
            self._write(writer.fd, data, 0)
            self._open_reader()
        except SessionFileError:
            writer.close()
            with suppress(OSError):
                self._path.unlink()
            raise
        self._writer = writer

    def _extend(self, data: bytes) -> int:
        """Write behind what is there; gives the offset of the first line."""
        self.check_in_place()
        if self._writer is None:
            self._writer = self._open_writer()
        size = self._size()
        lead = b"\n" if size and self._read_at(size - 1, 1) != b"\n" else b""
        self._write(self._writer.fd, lead + data, size)
        start = os.lseek(self._writer.fd, 0, os.SEEK_CUR) - len(data)
        if start - len(lead) > self._end:
            # Somebody who does not wait for a turn was faster.
            self._backlog += self._split(self._end, start)
        return start

    def _open_writer(self) -> _Descriptor:
        try:
            return _Descriptor(os.open(self._path, os.O_WRONLY | os.O_APPEND | _BINARY))
        except OSError as problem:
            raise file_problem(self._path, "could not be opened for writing", problem) from None

    def _write(self, fd: int, data: bytes, size: int) -> None:
        """One write behind `size` bytes; the rest of it if the system took a part. Takes back what it wrote when
        that fails.
        """
        written = 0
        try:
            while written < len(data):
                written += os.write(fd, memoryview(data)[written:])
                if written < len(data) and os.fstat(fd).st_size != size + written:
                    raise OSError(0, "another program wrote to it in the middle of a line")
        except OSError as problem:
            if written and os.fstat(fd).st_size == size + written:
                with suppress(OSError):
                    os.ftruncate(fd, size)
            raise file_problem(self._path, "could not be written", problem) from None
        self._unsynced = True


class _Descriptor:
    """A file descriptor that is closed when it is forgotten."""

    __slots__ = ("fd",)

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def close(self) -> None:
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    __del__ = close


def file_problem(path: Path, what: str, problem: OSError) -> SessionFileError:
    """The error for a failed system call, in words."""
    return SessionFileError(path, f"{what}: {reason_of(problem)}")


if TYPE_CHECKING:
    _: type[Storage] = JsonlStorage
