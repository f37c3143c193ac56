"""Where the body of an HTTP/1.1 answer ends, and what is in between (RFC 9112, section 6).

`http.client` can do it too, one chunk of the chunked coding at a time. Servers put every event of a stream
into a chunk of its own, so that costs several calls for each; here a block of bytes costs one.
"""

from __future__ import annotations

from typing import Protocol

__all__ = ["Chunked", "Counted", "Framing", "FramingError", "ToTheEnd"]

_LONGEST_LINE = 16 * 1024
"""A chunk's size line, with extensions, or a trailer line. Far above what servers send."""

_LF = 0x0A


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
        place = self._rest_of_chunk(data, out) if self._left else 0
        end = len(data)
        find, append = data.find, out.append
        while place < end and not self.done:
            line_end = find(b"\n", place)
            if line_end < 0:
                self._hold(data[place:])
                break
            size = 0 if self._trailer else _size(data[place:line_end])
            start, stop = line_end + 1, line_end + 1 + size
            if size == 0:
                self.done = self._trailer and line_end - place <= 1
                self._trailer = True
                place = start
            elif stop + 1 < end and data[stop + 1] == _LF:
                append(data[start:stop])
                place = stop + 2
            else:
                self._left = size + 2
                place = start + self._rest_of_chunk(data[start:], out)
        self.clean = not (self.done and place < end)
        return b"".join(out)

    def finish(self) -> bool:
        return self.done

    def _rest_of_chunk(self, data: bytes, out: list[bytes]) -> int:
        """What `data` has of the present chunk. Returns how far that goes."""
        left = self._left
        part = data[: max(0, left - 2)]
        if part:
            out.append(part)
        if left > len(data):
            self._left = left - len(data)
            return len(data)
        close = data[max(0, left - 2) : left]
        if close not in (b"\r\n", b"\n"):
            raise FramingError(f"a chunk ends with {_quote(close)}")
        self._left = 0
        return left

    def _hold(self, line: bytes) -> None:
        if len(line) > _LONGEST_LINE:
            raise FramingError(f"no chunk size, but {_quote(line)}")
        self._held = line


def _size(line: bytes) -> int:
    try:
        size = int(line, 16)
    except ValueError:
        try:
            size = int(line.partition(b";")[0], 16)
        except ValueError:
            raise FramingError(f"no chunk size, but {_quote(line)}") from None
    if size < 0:
        raise FramingError(f"a chunk of negative size {size}")
    return size


def _quote(data: bytes) -> str:
    return ascii(data[:40].decode("utf-8", "replace"))
