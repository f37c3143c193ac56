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
_SHORTEST = 16
"""Bytes of a message that says nothing: two lengths, two checksums."""
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

    Checksums are checked. Raises :class:`SseError` for bytes that are no such message, after the events before them.
    """

    __slots__ = ("_buffer", "_damage", "_known", "_wanted")

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._wanted = _SHORTEST
        self._damage: SseError | None = None
        """Found behind events that were handed on first."""
        self._known: dict[bytes, tuple[str | None, bytes | None]] = {}

    def feed(self, block: bytes) -> list[ServerSentEvent]:
        """The events that end in `block`."""
        if self._damage is not None:
            raise self._damage
        self._buffer += block
        events: list[ServerSentEvent] = []
        if len(self._buffer) >= self._wanted:
            try:
                self._take(events)
            except SseError as damage:
                if not events:
                    raise
                self._damage = damage
        return events

    def finish(self) -> list[ServerSentEvent]:
        """The stream has ended. Half a message is none."""
        if self._damage is not None:
            raise self._damage
        return []

    def _take(self, events: list[ServerSentEvent]) -> None:
        """Move the whole messages from the buffer to `events`."""
        data = bytes(self._buffer)
        place, size = 0, len(data)
        while size - place >= _SHORTEST:
            total = int.from_bytes(data[place : place + 4])
            end = place + total
            # The checksum of a whole message covers its head; that of the head is for a length to wait for.
            if (
                end > size
                or total < _SHORTEST
                or crc32(data[place : end - 4]) != int.from_bytes(data[end - 4 : end])
            ):
                _check_head(data, place)
                if end > size:
                    break
                raise SseError("a message of an event stream is damaged: its checksum is wrong")
            events.append(self._event(data, place, end))
            place = end
        left = size - place
        self._wanted = int.from_bytes(data[place : place + 4]) if left >= _SHORTEST else _SHORTEST
        del self._buffer[:place]

    def _event(self, data: bytes, start: int, end: int) -> ServerSentEvent:
        after = start + 12 + int.from_bytes(data[start + 4 : start + 8])
        block = data[start + 12 : after]
        known = self._known.get(block)
        if known is None:
            known = _name(dict(_headers(block, end - start)))
            if len(self._known) < _KEPT:
                self._known[block] = known
        name, said = known
        return ServerSentEvent(name, data[after : end - 4] if said is None else said)


def _name(headers: dict[str, str]) -> tuple[str | None, bytes | None]:
    """An event's name, and its data where they are not the payload."""
    match headers.get(":message-type", "event"):
        case "event":
            return headers.get(":event-type"), None
        case "exception":
            return headers.get(":exception-type", ERROR), None
        case _:
            said = {"code": headers.get(":error-code"), "message": headers.get(":error-message")}
            return ERROR, wire_json(said)


def _check_head(data: bytes, place: int) -> None:
    """Refuse a head that is none: its length is not to be waited for."""
    total, headers, checksum = _PRELUDE.unpack_from(data, place)
    if crc32(data[place : place + 8]) != checksum:
        raise SseError("what came is no event stream of AWS: the checksum of a message's head is wrong")
    if not headers + _SHORTEST <= total <= _LONGEST_MESSAGE or headers > _LONGEST_HEADERS:
        raise SseError(f"a message of {total} bytes with {headers} bytes of headers is not possible")


def _headers(block: bytes, size: int) -> Iterator[tuple[str, str]]:
    """The headers that are text, of a message of `size` bytes. The others are stepped over."""
    if len(block) > min(_LONGEST_HEADERS, size - _SHORTEST):
        raise SseError("the headers of a message of an event stream are longer than it")
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
