"""Server-sent events: the WHATWG framing (HTML standard, 9.2.6), as bytes arrive.

    [event: <name> LF] (data: <line> LF)+ [id: …] [retry: …] LF          LF may be CR or CRLF
    : a comment

An event is handed on at its blank line. Other than a browser does, what stands at the end of the stream
without one is an event too: servers cut off the last line end of their last event.
"""

from __future__ import annotations

from msgspec import Struct

__all__ = ["ServerSentEvent", "SseError", "SseParser"]

_LONGEST_EVENT = 64 * 1024 * 1024
"""More than any API sends in one event; a stream without line ends must not fill the memory."""
_BOM = b"\xef\xbb\xbf"


class SseError(ValueError):
    """An event grew beyond any use."""


class ServerSentEvent(Struct, frozen=True, gc=False):
    """One event. `event` is None when it has no name; `data` is its lines, joined with LF."""

    event: str | None
    data: bytes


class SseParser:
    """Takes blocks of bytes, cut anywhere, and gives the events that they complete."""

    __slots__ = ("_after_cr", "_begun", "_data", "_event", "_limit", "_pending", "_size", "_tail")

    def __init__(self, *, limit: int = _LONGEST_EVENT) -> None:
        """`limit` is the size of an event, in bytes, beyond which `feed` raises :class:`SseError`."""
        self._limit = limit
        self._tail: list[bytes] = []  # pieces of the line that has not ended
        self._size = 0  # bytes of the event that has not ended
        self._data: list[bytes] = []
        self._event: str | None = None
        self._pending = False  # whether the present event has had a line
        self._after_cr = False
        self._begun = False

    def feed(self, block: bytes) -> list[ServerSentEvent]:
        """The events that end in `block`."""
        if not self._begun or self._after_cr or b"\r" in block:
            block = self._plain(block)
        if b"\n" not in block:
            self._keep(block)
            return []
        if self._tail:
            block, self._tail = b"".join([*self._tail, block]), []
        events: list[ServerSentEvent] = []
        if self._pending:
            head, blank, block = (b"\n" + block).partition(b"\n\n")
            self._lines(head[1:].split(b"\n") if blank else head[1:].split(b"\n")[:-1])
            if not blank:
                self._keep(head[head.rfind(b"\n") + 1 :])
                return events
            self._dispatch(events)
        end = block.rfind(b"\n\n")
        if end >= 0:
            self._whole(block[:end], events)
            block = block[end + 2 :]
            self._size = 0
        *lines, rest = block.split(b"\n")
        self._lines(lines)
        self._keep(rest)
        return events

    def finish(self) -> list[ServerSentEvent]:
        """The stream has ended: the event that had not."""
        events: list[ServerSentEvent] = []
        rest, self._tail = b"".join(self._tail), []
        self._line(rest)
        self._dispatch(events)
        return events

    def _whole(self, text: bytes, events: list[ServerSentEvent]) -> None:
        """Events that are complete, of which most are one line of data, or a name and one."""
        append = events.append
        for part in text.split(b"\n\n"):
            if part[:6] == b"data: " and b"\n" not in part:
                append(ServerSentEvent(None, part[6:]))
                continue
            name, _, data = part.partition(b"\ndata: ")
            if name[:7] == b"event: " and data and b"\n" not in data and b"\n" not in name:
                append(ServerSentEvent(name[7:].decode("utf-8", "replace"), data))
            else:
                self._split(part, events)

    def _split(self, part: bytes, events: list[ServerSentEvent]) -> None:
        # A third line end in a row makes an empty line at the start of the next part.
        for line in part.split(b"\n"):
            if line:
                self._line(line)
            else:
                self._dispatch(events)
        self._dispatch(events)

    def _lines(self, lines: list[bytes]) -> None:
        for line in lines:
            self._line(line)

    def _line(self, line: bytes) -> None:
        if not line:
            return
        self._pending = True
        self._size += len(line)
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._event = value.decode("utf-8", "replace")

    def _dispatch(self, events: list[ServerSentEvent]) -> None:
        if self._data:
            events.append(ServerSentEvent(self._event, b"\n".join(self._data)))
            self._data = []
        self._event = None
        self._pending = False
        self._size = 0

    def _keep(self, rest: bytes) -> None:
        if rest:
            self._tail.append(rest)
            self._size += len(rest)
            if self._size > self._limit:
                raise SseError(f"an event of more than {self._limit} bytes")

    def _plain(self, block: bytes) -> bytes:
        """The block with LF for every line end, and without a byte order mark at the very beginning."""
        if self._after_cr and block:
            block = block.removeprefix(b"\n")
            self._after_cr = False
        if not self._begun:
            block = b"".join([*self._tail, block])
            self._tail = []
            if block != _BOM[: len(block)]:
                self._begun = True
                block = block.removeprefix(_BOM)
            else:
                self._begun = len(block) == len(_BOM)
                block = b"" if self._begun else block
        if b"\r" in block:
            self._after_cr = block.endswith(b"\r")
            block = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return block
