"""The output of a command: all of it in a file when it is long, both its ends in memory, its text for a model.

Bytes are counted and kept as they come, so gigabytes cost little and memory is bounded. They become text
only when someone looks: wrong UTF-8 as U+FFFD, without terminal sequences and control characters.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from threading import Lock
from typing import Literal

from msgspec import Struct

from cantle.tools.truncation import (
    MAX_BYTES,
    MAX_LINES,
    Truncation,
    count_lines,
    cut_head,
    cut_tail,
    size_text,
)
from cantle_ai.system_errors import reason_of

__all__ = ["HEAD_BYTES", "HEAD_LINES", "CommandOutput", "Excerpt", "plain_text"]

_KEPT = 4 * MAX_BYTES
"""Bytes of the end that stay in memory at least, twice as many at most: terminal sequences take room."""
HEAD_LINES = 200
HEAD_BYTES = 10_240
"""What is shown of the beginning when something is left out. It counts in the limits of a result."""
_KEPT_FIRST = 4 * HEAD_BYTES
"""Bytes of the beginning that stay in memory."""
_LF = "\n"

_SEQUENCE = re.compile(
    r"""
      (?: \x1b \[ | \x9b ) [0-?]* [ -/]* [@-~]?         # CSI: colours, cursor; may be cut short
    | (?: \x1b [\]PX^_] | [\x90\x98\x9d-\x9f] )         # OSC, DCS, SOS, PM, APC: titles, links, images
      [^\x07\x1b\x9c\n]* (?: \x07 | \x1b \\ | \x9c )?
    | \x1b [ -/]* [0-~]?                                # all others
    """,
    re.VERBOSE,
)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def plain_text(text: str) -> str:
    """Text without terminal sequences and control characters; tabs, CR and LF stay."""
    if _CONTROL.search(text) is None:
        return text
    return _CONTROL.sub("", _SEQUENCE.sub("", text))


class Excerpt(Struct, frozen=True):
    """The beginning and the end of an output, and what is missing between them."""

    head: str
    """Whole lines, or the beginning of the first one; empty when it was not asked for, or nothing is missing."""
    tail: str
    """Whole lines, or the end of the last one."""
    truncation: Truncation | None

    def text(self) -> str:
        """Both, with a line between them that says what is left out."""
        cut = self.truncation
        if not self.head or cut is None:
            return self.tail
        missing = cut.total_lines - cut.output_lines
        what = "the rest of it"
        if self._head_is_whole and not cut.last_line_partial and self.tail:
            what = f"{missing} line{'' if missing == 1 else 's'}"
        return f"{self.head}{'' if self._head_is_whole else _LF}[… {what} left out …]\n{self.tail}"

    def notice(self, path: Path | None) -> str:
        """Tells a model what it sees, of how much, and where the rest is."""
        cut = self.truncation
        if cut is None:
            return ""
        where = f" All of it: {path}" if path is not None else ""
        total = size_text(cut.total_bytes)
        if not self.head and not self.tail:
            return f"[{total} of output, without text at its end.{where}]"
        shown = " and ".join(part for part in (self._head_part(), self._tail_part(cut)) if part)
        end = "" if self.tail else " There is no text at its end."
        lines = f"{cut.total_lines} line{'' if cut.total_lines == 1 else 's'}"
        return f"[Shown: {shown}, of {lines} and {total} in all.{end}{where}]"

    @property
    def _head_is_whole(self) -> bool:
        return self.head.endswith(_LF)

    def _head_part(self) -> str:
        if not self.head:
            return ""
        if not self._head_is_whole:
            return f"the first {size_text(len(self.head.encode()))} of line 1"
        lines = self.head.count(_LF)
        return "line 1" if lines == 1 else f"lines 1-{lines}"

    def _tail_part(self, cut: Truncation) -> str:
        if not self.tail:
            return ""
        last = cut.total_lines
        if cut.last_line_partial:
            return f"the last {size_text(len(self.tail.encode()))} of line {last}"
        first = last - count_lines(self.tail.encode()) + 1
        return f"line {last}" if first == last else f"lines {first}-{last}"


class CommandOutput:
    """Takes bytes from the thread that reads them, and shows their end to any other."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._lock = Lock()
        self._first = b""
        self._kept = bytearray()
        self._bytes = 0
        self._ends = 0
        self._descriptor: int | None = None
        self.path: Path | None = None
        """The file with all of the output; None while it is short, or when it could not be kept whole."""
        self.failure: str | None = None
        """Why the file is not complete."""

    @property
    def size(self) -> int:
        """Bytes that have come."""
        return self._bytes

    def feed(self, data: bytes) -> None:
        """Take what came next."""
        with self._lock:
            self._bytes += len(data)
            self._ends += data.count(b"\n")
            self._kept += data
            if self._descriptor is not None:
                self._write(data)
            elif self.failure is None and self._is_long():
                self._open()
                self._write(self._kept)
            if len(self._kept) > 2 * _KEPT:
                if not self._first:
                    self._first = bytes(self._kept[:_KEPT_FIRST])
                del self._kept[: len(self._kept) - _KEPT]

    def tail(self) -> Excerpt:
        """The end of the output as text, within the limits of a result."""
        return self._excerpt(with_head=False)

    def _excerpt(self, *, with_head: bool) -> Excerpt:
        with self._lock:
            first, kept, total_bytes, ends = self._first, bytes(self._kept), self._bytes, self._ends
        whole = len(kept) == total_bytes
        text = plain_text(kept.decode("utf-8", "replace"))
        data = text.encode("utf-8")
        total_lines = ends + (not kept.endswith(b"\n") and bool(kept))
        if whole and len(data) <= MAX_BYTES and total_lines <= MAX_LINES:
            return Excerpt("", text, None)
        head = _head(data if whole else _beginning(first)) if with_head else b""
        if whole:
            data = data[len(head) :]
        starts_a_line = whole and (not head or head.endswith(b"\n"))
        lines, size = MAX_LINES - count_lines(head), MAX_BYTES - len(head)
        tail, by = _last_lines(data, starts_a_line, lines, size)
        partial = not tail
        if partial:
            tail = cut_tail(data, size)
        truncation = Truncation(
            by=by,
            total_lines=total_lines,
            total_bytes=total_bytes,
            output_lines=min(count_lines(head) + count_lines(tail), total_lines),
            output_bytes=len(head) + len(tail),
            head_lines=count_lines(head),
            last_line_partial=partial and bool(tail),
        )
        return Excerpt(head.decode("utf-8"), tail.decode("utf-8"), truncation)

    def finish(self) -> Excerpt:
        """What is shown of the complete output. Afterwards the file is there exactly if something is missing in it."""
        excerpt = self._excerpt(with_head=True)
        with self._lock:
            if excerpt.truncation is None:
                self._close()
                if self.path is not None:
                    self.path.unlink(missing_ok=True)
                    self.path = None
            elif self.path is None and self.failure is None:
                # Wrong bytes have made it longer than it came.
                self._open()
                self._write(self._kept)
            self._close()
        return excerpt

    def close(self) -> None:
        """No more comes, or is wanted."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _is_long(self) -> bool:
        return self._bytes > MAX_BYTES or self._ends > MAX_LINES

    def _open(self) -> None:
        import tempfile

        try:
            folder = self._folder or Path(tempfile.gettempdir())
        except FileNotFoundError:
            self.failure = "there is no folder for temporary files that can be written to. Set TMPDIR to one"
            return
        path = folder / f"cantle-bash-{os.urandom(8).hex()}.log"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(path, flags, 0o600)
        except OSError as problem:
            self.failure = f"{folder}: {reason_of(problem)}"
        else:
            self.path = path

    def _write(self, data: bytes | bytearray) -> None:
        if self._descriptor is None:
            return
        try:
            view = memoryview(data)
            while view:
                written = os.write(self._descriptor, view)
                view = view[written:]
        except OSError as problem:
            self.failure = f"{self.path}: {reason_of(problem)}"
            self._close()
            # A part of it that calls itself the whole would mislead, and takes room where there is none.
            if self.path is not None:
                self.path.unlink(missing_ok=True)
                self.path = None


def _beginning(first: bytes) -> bytes:
    """The text of an output's first bytes, without a character or a sequence that goes on after them."""
    from codecs import getincrementaldecoder

    return plain_text(getincrementaldecoder("utf-8")("replace").decode(first)).encode("utf-8")


def _head(data: bytes) -> bytes:
    """The first whole lines within the limits of a head; the first one's beginning when it is longer."""
    end = data.rfind(b"\n", 0, HEAD_BYTES) + 1
    if end == 0:
        return cut_head(data, HEAD_BYTES)
    position = -1
    for _ in range(HEAD_LINES):
        position = data.find(b"\n", position + 1, end)
        if position < 0:
            return data[:end]
    return data[: position + 1]


def _last_lines(
    data: bytes, starts_a_line: bool, max_lines: int, max_bytes: int
) -> tuple[bytes, Literal["lines", "bytes"]]:
    """The last whole lines within the limits, empty when not one fits, and which limit it was."""
    low = len(data) - max_bytes
    start = 0
    if low > 0:
        # A line that begins right at the limit is whole.
        start = data.find(b"\n", low - 1) + 1
    elif not starts_a_line:
        start = data.find(b"\n") + 1
    if start == 0 and (low > 0 or not starts_a_line):
        return b"", "bytes"
    position = len(data) - data.endswith(b"\n")
    for _ in range(max_lines):
        position = data.rfind(b"\n", start, position)
        if position < 0:
            return data[start:], "bytes"
    return data[position + 1 :], "lines"
