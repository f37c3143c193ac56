"""Where the body of an HTTP/1.1 answer ends, and what is in between (RFC 9112, section 6).

`http.client` can do it too, one chunk of the chunked coding at a time. Servers put every event of a stream
into a chunk of its own, so that costs several calls for each; here a block of bytes costs one.
"""

from __future__ import annotations

from typing import Protocol

__all__ = ["Chunked", "Counted", "Framing", "FramingError", "ToTheEnd"]

_LONGEST_LINE = 16 * 1024
"""A chunk's size line, with extensions, or a trailer line. Far above what servers send."""


class FramingError(ValueError):
    """The bytes are not the coding that the head announced."""


class Framing(Protocol):
    """Takes what came from the connection and gives what belongs to the body."""

    done: bool
    """Whether the body is complete."""
    clean: bool
    """Whether nothing came after its end: the connection may carry another request."""

    def feed(self, data: bytes) -> bytes: ...
    def finish(self) -> bool:
        """The connection was closed. Whether the body was complete."""
        ...


class ToTheEnd:
    """A body that ends with the connection."""

    __slots__ = ("clean", "done")

    def __init__(self) -> None:
        self.done = False
        self.clean = False

    def feed(self, data: bytes) -> bytes:
        return data

    def finish(self) -> bool:
        self.done = True
        return True


class Counted:
    """A body of a length that was announced."""

    __slots__ = ("_left", "clean", "done")

    def __init__(self, length: int) -> None:
        self._left = length
        self.done = length == 0
        self.clean = True

    def feed(self, data: bytes) -> bytes:
        body = data[: self._left]
        self._left -= len(body)
        self.done = self._left == 0
        self.clean = len(body) == len(data)
        return body

    def finish(self) -> bool:
        return self.done


class Chunked:
    """The chunked transfer coding. Parts of a chunk are handed on as they come; trailers are skipped."""

    __slots__ = ("_held", "_left", "_trailer", "clean", "done")

    def __init__(self) -> None:
        self._held = b""
        self._left = 0  # bytes of the present chunk still to come, its closing line end included
        self._trailer = False
        self.done = False
        self.clean = True

    def feed(self, data: bytes) -> bytes:
        """Raises :class:`FramingError`."""
        if self._held:
            data, self._held = self._held + data, b""
        out: list[bytes] = []
        place, end = 0, len(data)
        while place < end and not self.done:
            if self._left:
                place = self._chunk(data, place, out)
                continue
            line_end = data.find(b"\n", place)
            if line_end < 0:
                self._held = data[place:]
                if len(self._held) > _LONGEST_LINE:
                    raise FramingError(f"no chunk size, but {_quote(self._held)}")
                break
            line = data[place:line_end]
            place = line_end + 1
            self._line(line)
        if self.done and place < end:
            self.clean = False
        return out[0] if len(out) == 1 else b"".join(out)

    def finish(self) -> bool:
        return self.done

    def _chunk(self, data: bytes, place: int, out: list[bytes]) -> int:
        stop = place + self._left
        part = data[place : max(place, stop - 2)]
        if part:
            out.append(part)
        if stop > len(data):
            self._left = stop - len(data)
            return len(data)
        # A chunk that ended in an earlier block has left only its line end to look at.
        close = data[max(place, stop - 2) : stop]
        if close not in (b"\r\n", b"\n"):
            raise FramingError(f"a chunk ends with {_quote(close)}")
        self._left = 0
        return stop

    def _line(self, line: bytes) -> None:
        if self._trailer:
            self.done = line in (b"", b"\r")
            return
        try:
            size = int(line.partition(b";")[0], 16)
        except ValueError:
            raise FramingError(f"no chunk size, but {_quote(line)}") from None
        if size < 0:
            raise FramingError(f"a chunk of negative size {size}")
        self._trailer = size == 0
        self._left = size + 2 if size else 0


def _quote(data: bytes) -> str:
    return ascii(data[:40].decode("utf-8", "replace"))
