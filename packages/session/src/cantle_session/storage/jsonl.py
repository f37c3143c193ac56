"""A session in a file of lines, which only grows.

What is promised, and how:

- A line that was kept survives the death of the process: it was handed to the system in one `O_APPEND` write.
  It survives a power cut once the session was closed, which is when the file is synchronised; doing that for
  every line would cost more than the line.
- A line that could not be written whole is taken back, so disk and memory agree. If others wrote meanwhile,
  the torn line stays and the next one starts on a line of its own.
- What others write is never overwritten: before each write the lines that they added are taken in.
"""

from __future__ import annotations

import os
import stat
import sys
from array import array
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from cantle_ai.system_errors import reason_of
from cantle_session.errors import SessionFileError
from cantle_session.storage.locks import LockTimeout, announce_presence, turn

if TYPE_CHECKING:
    from cantle_session.storage.port import Storage

__all__ = ["JsonlStorage", "file_problem"]

_BLOCK = 1 << 20
_READ_WAIT = 0.5
"""Seconds to wait for the end of a write before reading; whoever only reads need not wait longer."""
_BINARY = getattr(os, "O_BINARY", 0)
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)
_FOLDER_MODE, _FILE_MODE = 0o700, 0o600


class JsonlStorage:
    """The lines of one file: one that is there (:meth:`open`), or that the first line brings about (:meth:`create`)."""

    __slots__ = (
        "_backlog",
        "_closed",
        "_end",
        "_path",
        "_quiet_size",
        "_reader",
        "_shared",
        "_sizes",
        "_starts",
        "_unfinished",
        "_unsynced",
        "_writer",
    )

    def __init__(self, path: Path) -> None:
        self._path = path
        self._reader: _Descriptor | None = None
        self._writer: _Descriptor | None = None
        self._starts = array("Q")
        self._sizes = array("Q")
        self._end = 0
        self._unfinished = False
        self._unsynced = False
        self._shared = False
        self._closed = False
        self._quiet_size: int | None = None
        self._backlog: list[tuple[int, bytes]] = []

    @classmethod
    def create(cls, path: Path) -> JsonlStorage:
        """A file that does not exist before the first :meth:`append`, which fails if there is one by then."""
        return cls(path)

    @classmethod
    def open(cls, path: Path, *, in_turn: bool = False) -> JsonlStorage:
        """An existing file. `in_turn` if the caller has the turn to write. Raises :class:`SessionFileError`."""
        storage = cls(path)
        storage._open_reader()
        if not in_turn:
            # A size taken in turn lies at the end of a write, not in the middle of one.
            with suppress(LockTimeout), turn(path, wait=_READ_WAIT):
                storage._quiet_size = storage._size()
        return storage

    @property
    def path(self) -> Path:
        return self._path

    def pull(self) -> Iterator[tuple[int, bytes]]:
        if self._reader is None:
            return iter(())
        size = self._quiet_size or self._size()
        self._quiet_size = None
        if size < self._end:
            raise SessionFileError(self._path, "another program has cut it shorter; open the session again")
        return self._news(size)

    def read(self, numbers: Sequence[int]) -> Iterator[bytes]:
        starts, sizes, at = self._starts, self._sizes, 0
        while at < len(numbers):
            # Lines that follow one another are read together.
            first, start = at, starts[numbers[at]]
            stop = start + sizes[numbers[at]]
            at += 1
            while at < len(numbers) and numbers[at] == numbers[at - 1] + 1 and stop - start < _BLOCK:
                stop = starts[numbers[at]] + sizes[numbers[at]]
                at += 1
            block = self._read_at(start, stop - start)
            for number in numbers[first:at]:
                offset = starts[number] - start
                yield block[offset : offset + sizes[number]]

    def locked(self) -> AbstractContextManager[None]:
        return nullcontext() if self._reader is None else self._turn()

    def append(self, lines: Sequence[bytes]) -> int:
        data = b"".join([line + b"\n" for line in lines])
        if self._reader is None:
            self._create(data)
            start = 0
        else:
            start = self._extend(data)
        number = len(self._starts)
        for line in lines:
            self._starts.append(start)
            self._sizes.append(len(line))
            start += len(line) + 1
        self._end, self._unfinished = start, False
        return number

    def check_in_place(self) -> None:
        """Raise unless the file that is open is still the one at its path."""
        try:
            there, here = self._path.stat(), os.fstat(self._fd)
        except OSError as problem:
            raise file_problem(self._path, "is not there any more, so nothing was written", problem) from None
        if (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino):
            text = (
                "another program has put a different file in its place, so nothing was written; open it again"
            )
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

    def _open_reader(self) -> None:
        try:
            reader = _Descriptor(os.open(self._path, os.O_RDONLY | _BINARY | _NONBLOCK))
        except OSError as problem:
            raise file_problem(self._path, "could not be opened", problem) from None
        if not stat.S_ISREG(os.fstat(reader.fd).st_mode):
            raise SessionFileError(self._path, "it is not a file; give the path of a session file")
        self._reader = reader
        self._shared = announce_presence(reader.fd)

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

    def _news(self, stop: int) -> Iterator[tuple[int, bytes]]:
        backlog, self._backlog = self._backlog, []
        yield from backlog
        yield from self._scan(stop)

    def _scan(self, stop: int) -> Iterator[tuple[int, bytes]]:
        """The lines from the known end to `stop`, taken into the index."""
        starts, sizes = self._starts, self._sizes
        if self._unfinished and self._end < stop and self._read_at(self._end, 1) == b"\n":
            self._end += 1
            self._unfinished = False
        for line, finished in self._split(self._end, stop):
            number, start = len(starts), self._end
            starts.append(start)
            sizes.append(len(line))
            self._end = start + len(line) + finished
            self._unfinished = not finished
            if line and not line.isspace():
                yield number, line

    def _split(self, offset: int, stop: int) -> Iterator[tuple[bytes, bool]]:
        """The lines between two offsets, and whether each has its line end. One block is in memory, or one line."""
        parts: list[bytes] = []
        while offset < stop and (block := self._read_at(offset, min(_BLOCK, stop - offset))):
            offset += len(block)
            first, *others = block.split(b"\n")
            parts.append(first)
            if others:
                yield b"".join(parts), True
                parts = [others.pop()]
                for line in others:
                    yield line, True
        if rest := b"".join(parts):
            yield rest, False

    # --- writing

    @contextmanager
    def _turn(self) -> Iterator[None]:
        try:
            with turn(self._path):
                yield
        except LockTimeout:
            raise SessionFileError(
                self._path, "another process keeps its folder locked; nothing was written, try again"
            ) from None

    def _create(self, data: bytes) -> None:
        if self._closed:
            raise self._is_closed()
        try:
            _make_folder(self._path.parent)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | _BINARY
            writer = _Descriptor(os.open(self._path, flags, _FILE_MODE))
        except FileExistsError:
            raise SessionFileError(
                self._path, "there is a file of this name already; it was left alone"
            ) from None
        except OSError as problem:
            raise file_problem(self._path, "could not be made", problem) from None
        try:
            self._write(writer.fd, data)
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
        lead = b"\n" if self._unfinished else b""
        self._write(self._writer.fd, lead + data)
        start = os.lseek(self._writer.fd, 0, os.SEEK_CUR) - len(data)
        if start - len(lead) > self._end:
            # Somebody who does not wait for a turn was faster.
            self._backlog += self._scan(start - len(lead))
        return start

    def _open_writer(self) -> _Descriptor:
        try:
            return _Descriptor(os.open(self._path, os.O_WRONLY | os.O_APPEND | _BINARY))
        except OSError as problem:
            raise file_problem(self._path, "could not be opened for writing", problem) from None

    def _write(self, fd: int, data: bytes) -> None:
        """One write; the rest of it if the system took a part. Takes back what it wrote when that fails."""
        written = 0
        try:
            while written < len(data):
                written += os.write(fd, memoryview(data)[written:])
                if written < len(data) and os.fstat(fd).st_size != self._end + written:
                    raise OSError(0, "another program wrote to it in the middle of a line")
        except OSError as problem:
            if written and os.fstat(fd).st_size == self._end + written:
                with suppress(OSError):
                    os.ftruncate(fd, self._end)
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


def _make_folder(folder: Path) -> None:
    """The folder and what is missing above it, for the user's eyes only."""
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for path in reversed(missing):
        path.mkdir(mode=_FOLDER_MODE, exist_ok=True)


if TYPE_CHECKING:
    _: type[Storage] = JsonlStorage
