"""AWS's event stream, the binary framing of streamed answers (`application/vnd.amazon.eventstream`).

    | total length: 4 | length of the headers: 4 | CRC-32 of these 8 bytes: 4 |
    | headers | payload | CRC-32 of all before: 4 |                                  numbers are big-endian
    header: | length of the name: 1 | name | type: 1 | value |

Three kinds of messages, told apart by the header `:message-type`: an `event` and an `exception` have a name
(`:event-type`, `:exception-type`) and JSON as their payload; an `error` has `:error-code` and `:error-message`, and
is handed on as an event :data:`ERROR` of that JSON.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from zlib import crc32

from cantle_ai.codec import wire_json
from cantle_ai.sse import ServerSentEvent, SseError

__all__ = ["ERROR", "EventStreamParser"]

ERROR = ":error"
"""The name of an event that stands for a failure below the service: `{"code", "message"}`."""

_PRELUDE = struct.Struct(">III")
_CRC = struct.Struct(">I")
_LONGEST_MESSAGE = 24 * 1024 * 1024
_LONGEST_HEADERS = 128 * 1024
"""The limits of AWS's own parsers."""
_FIXED_SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""Bytes of a header's value by its type; types 6 (bytes) and 7 (text) have a length of 2 bytes in front."""
_TEXT = 7
_KEPT = 64
"""Header blocks that are remembered: a stream has a handful, which repeat in every message."""


class EventStreamParser:
    """Takes blocks of bytes, cut anywhere, and gives the events that they complete.

    Both checksums are checked. Raises :class:`SseError` for bytes that are no such message.
    """

    __slots__ = ("_buffer", "_headers", "_wanted")

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._wanted = _PRELUDE.size
        self._headers: dict[bytes, dict[str, str]] = {}

    def feed(self, block: bytes) -> list[ServerSentEvent]:
        """The events that end in `block`."""
        buffer = self._buffer
        buffer += block
        if len(buffer) < self._wanted:
            return []
        data = bytes(buffer)
        events: list[ServerSentEvent] = []
        place = 0
        while len(data) - place >= _PRELUDE.size:
            end = place + _length(data, place)
            if end > len(data):
                self._wanted = end - place
                break
            events.append(self._event(data, place, end))
            place = end
        else:
            self._wanted = _PRELUDE.size
        del buffer[:place]
        return events

    def finish(self) -> list[ServerSentEvent]:
        """The stream has ended. Half a message is none."""
        return []

    def _event(self, data: bytes, start: int, end: int) -> ServerSentEvent:
        if crc32(data[start : end - 4]) != _CRC.unpack_from(data, end - 4)[0]:
            raise SseError("a message of an event stream is damaged: its checksum is wrong")
        after = start + 12 + int.from_bytes(data[start + 4 : start + 8])
        block = data[start + 12 : after]
        headers = self._headers.get(block)
        if headers is None:
            headers = dict(_headers(block))
            if len(self._headers) < _KEPT:
                self._headers[block] = headers
        match headers.get(":message-type", "event"):
            case "event":
                return ServerSentEvent(headers.get(":event-type"), data[after : end - 4])
            case "exception":
                return ServerSentEvent(headers.get(":exception-type", ERROR), data[after : end - 4])
            case _:
                code, message = headers.get(":error-code"), headers.get(":error-message")
                return ServerSentEvent(ERROR, wire_json({"code": code, "message": message}))


def _length(data: bytes, place: int) -> int:
    """The length of the message that begins at `place`, whose prelude is there."""
    total, headers, checksum = _PRELUDE.unpack_from(data, place)
    if crc32(data[place : place + 8]) != checksum:
        raise SseError("what came is no event stream of AWS: the checksum of a message's head is wrong")
    if total > _LONGEST_MESSAGE or headers > _LONGEST_HEADERS or headers + 16 > total:
        raise SseError(f"a message of {total} bytes with {headers} bytes of headers is not possible")
    return int(total)


def _headers(block: bytes) -> Iterator[tuple[str, str]]:
    """The headers that are text. The others are stepped over."""
    place = 0
    try:
        while place < len(block):
            size = block[place]
            name = block[place + 1 : place + 1 + size].decode()
            kind = block[place + 1 + size]
            place += size + 2
            if kind in _FIXED_SIZES:
                place += _FIXED_SIZES[kind]
                continue
            if kind not in (6, _TEXT):
                raise SseError(f"a header of an event stream has the type {kind}, which does not exist")
            length = int.from_bytes(block[place : place + 2])
            place += 2 + length
            if kind == _TEXT:
                yield name, block[place - length : place].decode()
    except (IndexError, UnicodeDecodeError):
        raise SseError("the headers of a message of an event stream cannot be read") from None
    if place != len(block):
        raise SseError("the headers of a message of an event stream end in the middle of one")
