"""A window of lines out of text of any encoding and length, in one pass.

Everything is scanned as bytes that contain ASCII: UTF-16 and UTF-32 are turned into UTF-8 chunk by chunk;
what else it may be, UTF-8 or a one-byte encoding, is known at the end and matters to the window only.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from msgspec import Struct

from cantle.tools.text_files import Encoding, Evidence, decode_body, has_cr_lines, shown
from cantle.tools.truncation import MAX_BYTES, MAX_LINES, Truncation, cut_head, size_text
from cantle_agent.tool import ToolError, ToolResult
from cantle_ai.codec import JsonObject

__all__ = ["Scanned", "Window", "scan_text", "text_result"]


class Window(Struct, frozen=True):
    """Which lines are wanted: from `first`, counted from 1, at most `limit`."""

    first: int
    limit: int | None

    @property
    def lines(self) -> int:
        return MAX_LINES if self.limit is None else min(self.limit, MAX_LINES)


class Scanned(Struct):
    """What a pass over a file found out."""

    encoding: Encoding
    line_end: bytes
    window: bytes = b""
    """The wanted lines, a little more than the byte limit of them at most."""
    lines: int = 0
    """Lines of the whole file."""
    lines_before: int = 0
    bytes_from_window: int = 0
    """Bytes from the window's beginning to the end of the file."""
    first_line_bytes: int = 0
    """Bytes of the window's first line, without its end."""


def scan_text(head: bytes, rest: Iterable[bytes], window: Window, encoding: Encoding | None) -> Scanned:
    """Scan the chunks of a file, of which `head` is the first, for the lines of `window`.

    `encoding` is None when it contains ASCII; then it is found out. Raises :class:`ToolError` for UTF-32 that
    is none.
    """
    chunks = chain((head,), rest)
    line_end = b"\r" if has_cr_lines(head) and (encoding is None or encoding.unit == 1) else b"\n"
    scan = _Scan(window, line_end)
    if encoding is not None:
        for chunk in _as_utf_8(chunks, encoding):
            scan.feed(chunk)
        return scan.result(encoding)
    evidence = Evidence()
    for chunk in chunks:
        evidence.feed(chunk)
        scan.feed(chunk)
    return scan.result(evidence.encoding(head))


def _as_utf_8(chunks: Iterable[bytes], encoding: Encoding) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding.codec)(encoding.errors)
    skipped = len(encoding.bom)
    for chunk in chunks:
        try:
            text = decoder.decode(chunk[skipped:])
        except UnicodeDecodeError:
            raise ToolError(
                f"This begins like {encoding.label} text, but is none further on. "
                "Look at it with bash, for instance with xxd."
            ) from None
        skipped = 0
        yield shown(text).encode() if encoding.unit > 1 else text.encode("utf-8", encoding.errors)
    if decoder.getstate()[0]:
        yield "\ufffd".encode()


class _Scan:
    """The state of a pass: lines seen, and the part of the window that has come by."""

    def __init__(self, window: Window, line_end: bytes) -> None:
        self._window = window
        self._end = line_end
        self._to_skip = window.first - 1
        self._kept: list[bytes] = []
        self._kept_bytes = 0
        self._kept_lines = 0
        self._first_line = 0
        self._first_line_open = True
        self._lines = 0
        self._last = b""
        self._from_window = 0

    def feed(self, chunk: bytes) -> None:
        if not chunk:
            return
        ends = chunk.count(self._end)
        start = 0
        if self._to_skip:
            start = self._skip(chunk, ends)
        self._lines += ends
        self._last = chunk[-1:]
        if start >= len(chunk) and self._to_skip:
            return
        self._from_window += len(chunk) - start
        self._measure_first_line(chunk, start)
        self._keep(chunk, start)

    def _skip(self, chunk: bytes, ends: int) -> int:
        if ends < self._to_skip:
            self._to_skip -= ends
            return len(chunk)
        position = -1
        for _ in range(self._to_skip):
            position = chunk.index(self._end, position + 1)
        self._to_skip = 0
        return position + 1

    def _measure_first_line(self, chunk: bytes, start: int) -> None:
        if self._first_line_open:
            end = chunk.find(self._end, start)
            self._first_line_open = end < 0
            self._first_line += (len(chunk) if end < 0 else end) - start

    def _keep(self, chunk: bytes, start: int) -> None:
        room = MAX_BYTES + 4 - self._kept_bytes
        if room <= 0 or self._kept_lines >= self._window.lines:
            return
        piece = chunk[start : start + room]
        wanted = self._window.lines - self._kept_lines
        if piece.count(self._end) >= wanted:
            position = -1
            for _ in range(wanted):
                position = piece.index(self._end, position + 1)
            piece = piece[: position + 1]
        self._kept.append(piece)
        self._kept_bytes += len(piece)
        self._kept_lines += piece.count(self._end)

    def result(self, encoding: Encoding) -> Scanned:
        return Scanned(
            encoding,
            self._end,
            b"".join(self._kept),
            self._lines + (self._last not in (b"", self._end)),
            self._window.first - 1,
            self._from_window,
            self._first_line,
        )


def text_result(scanned: Scanned, window: Window, path: Path, name: str) -> ToolResult:
    """The result that shows the window, with a notice when there is more."""
    details: JsonObject = {}
    text, encoding = _window_text(scanned)
    if encoding.label != "utf-8":
        details["encoding"] = encoding.label
    if scanned.lines < window.first and window.first > 1:
        lines = f"{scanned.lines:,} line{'' if scanned.lines == 1 else 's'}"
        raise ToolError(f"{name} has {lines}; there is no line {window.first}.")
    end = scanned.line_end.decode()
    kept = _whole_lines(text, end, cut=len(scanned.window) > MAX_BYTES)
    if not kept and text:
        return _long_line(scanned, text, window, path, name, details)
    count = kept.count(end) + (not kept.endswith(end) and bool(kept))
    left = scanned.lines - scanned.lines_before - count
    if left > 0:
        last = scanned.lines_before + count
        kept = kept.removesuffix(end).removesuffix("\r")
        by_limit = window.limit is not None and count >= window.limit
        reason = "" if by_limit or count >= MAX_LINES else f", {size_text(MAX_BYTES)} at a time"
        notice = f"[Lines {window.first}-{last} of {scanned.lines}{reason}; the next ones: offset={last + 1}]"
        if not by_limit:
            details["truncation"] = Truncation(
                by="lines" if count >= MAX_LINES else "bytes",
                total_lines=scanned.lines - scanned.lines_before,
                total_bytes=scanned.bytes_from_window,
                output_lines=count,
                output_bytes=len(kept.encode("utf-8")),
            ).to_json()
        kept = f"{kept}\n\n{notice}"
    elif not kept:
        kept = "[The file is empty.]"
    return ToolResult.of(kept, details=details or None)


def _window_text(scanned: Scanned) -> tuple[str, Encoding]:
    # A character that the byte limit cut in two is not shown: the line it is in isn't either.
    encoding = scanned.encoding
    if encoding.unit > 1 or encoding.bom:
        return shown(scanned.window.decode("utf-8", "surrogateescape")), encoding
    text, taken = decode_body(scanned.window, encoding)
    return shown(text), taken if taken.codec == encoding.codec else encoding


def _whole_lines(text: str, end: str, *, cut: bool) -> str:
    """As many whole lines as the byte limit allows; `cut` says that the last one may not be whole."""
    data = text.encode("utf-8")
    if not cut and len(data) <= MAX_BYTES:
        return text
    # The limit is on what is shown, and the end of the last line is not.
    return data[: data.rfind(end.encode(), 0, MAX_BYTES + 1) + 1].decode("utf-8")


def _long_line(
    scanned: Scanned, text: str, window: Window, path: Path, name: str, details: JsonObject
) -> ToolResult:
    import shlex

    begin = cut_head(text.encode("utf-8"), MAX_BYTES)
    line, after = window.first, f"; line {window.first + 1} follows at offset={window.first + 1}"
    if scanned.lines <= line:
        after = ""
    quoted = shlex.quote(str(path) if name.startswith(("@", "~")) else name)
    if scanned.encoding.unit == 1 and scanned.line_end == b"\n":
        rest = f"sed -n '{line}p' {quoted} | tail -c +{len(begin) + 1} | head -c {MAX_BYTES}"
    else:
        rest = f"a program that reads {scanned.encoding.label}"
    details["truncation"] = Truncation(
        by="bytes",
        total_lines=scanned.lines - scanned.lines_before,
        total_bytes=scanned.bytes_from_window,
        output_lines=1,
        output_bytes=len(begin),
        last_line_partial=True,
        first_line_exceeds_limit=True,
    ).to_json()
    notice = (
        f"[The first {size_text(len(begin))} of line {line}, which has {scanned.first_line_bytes:,} bytes. "
        f"Its next part, with bash: {rest}{after}]"
    )
    return ToolResult.of(f"{begin.decode('utf-8')}\n\n{notice}", details=details)
