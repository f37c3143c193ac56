"""The output of a command: all of it in a file when it is long, its end in memory, its text for a model.

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

from cantle.tools.truncation import MAX_BYTES, MAX_LINES, Truncation, count_lines, cut_tail, size_text
from cantle_ai.system_errors import reason_of

__all__ = ["CommandOutput", "Tail", "plain_text"]

_KEPT = 4 * MAX_BYTES
"""Bytes of the end that stay in memory at least, twice as many at most: terminal sequences take room."""

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


class Tail(Struct, frozen=True):
    """The end of an output, and what is missing before it."""

    text: str
    truncation: Truncation | None

    def notice(self, path: Path | None) -> str:
        """Tells a model what it sees, of how much, and where the rest is."""
        cut = self.truncation
        if cut is None:
            return ""
        where = f" All of it: {path}" if path is not None else ""
        if not cut.output_bytes:
            return f"[{size_text(cut.total_bytes)} of output, without text at its end.{where}]"
        if cut.last_line_partial:
            return f"[The last {size_text(cut.output_bytes)} of line {cut.total_lines}.{where}]"
        first = cut.total_lines - cut.output_lines + 1
        return f"[Lines {first}-{cut.total_lines} of {cut.total_lines}, {size_text(cut.total_bytes)} in all.{where}]"


class CommandOutput:
    """Takes bytes from the thread that reads them, and shows their end to any other."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._lock = Lock()
        self._kept = bytearray()
        self._bytes = 0
        self._ends = 0
        self._descriptor: int | None = None
        self.path: Path | None = None
        """The file with all of the output; None while it is short."""
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
            elif self.path is None and self.failure is None and self._is_long():
                self._open()
                self._write(self._kept)
            if len(self._kept) > 2 * _KEPT:
                del self._kept[: len(self._kept) - _KEPT]

    def tail(self) -> Tail:
        """The end of the output as text, within the limits of a result."""
        with self._lock:
            kept, total_bytes, ends = bytes(self._kept), self._bytes, self._ends
        whole = len(kept) == total_bytes
        text = plain_text(kept.decode("utf-8", "replace"))
        data = text.encode("utf-8")
        total_lines = ends + (not kept.endswith(b"\n") and bool(kept))
        if whole and len(data) <= MAX_BYTES and total_lines <= MAX_LINES:
            return Tail(text, None)
        shown, by = _last_lines(data, whole)
        partial = not shown
        if partial:
            shown = cut_tail(data, MAX_BYTES)
        truncation = Truncation(
            by=by,
            total_lines=total_lines,
            total_bytes=total_bytes,
            output_lines=count_lines(shown),
            output_bytes=len(shown),
            last_line_partial=partial,
        )
        return Tail(shown.decode("utf-8"), truncation)

    def finish(self) -> Tail:
        """The end of the complete output. Afterwards the file is there exactly if something is missing in it."""
        tail = self.tail()
        with self._lock:
            if tail.truncation is None:
                self._close()
                if self.path is not None:
                    self.path.unlink(missing_ok=True)
                    self.path = None
            elif self.path is None and self.failure is None:
                # Wrong bytes have made it longer than it came.
                self._open()
                self._write(self._kept)
            self._close()
        return tail

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

        folder = self._folder or Path(tempfile.gettempdir())
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


def _last_lines(data: bytes, whole: bool) -> tuple[bytes, Literal["lines", "bytes"]]:
    """The last whole lines within the limits, empty when not one fits, and which limit it was."""
    low = len(data) - MAX_BYTES
    start = 0
    if low > 0:
        # A line that begins right at the limit is whole.
        start = data.find(b"\n", low - 1) + 1
    elif not whole:
        start = data.find(b"\n") + 1
    if start == 0 and (low > 0 or not whole):
        return b"", "bytes"
    position = len(data) - data.endswith(b"\n")
    for _ in range(MAX_LINES):
        position = data.rfind(b"\n", start, position)
        if position < 0:
            return data[start:], "bytes"
    return data[position + 1 :], "lines"
