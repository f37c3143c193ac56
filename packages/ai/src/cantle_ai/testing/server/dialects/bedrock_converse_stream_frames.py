"""Messages of AWS's event stream, written by its description ("Event stream encoding" of AWS's SDK specifications)."""

from __future__ import annotations

import json
from binascii import crc32
from collections.abc import Mapping

__all__ = ["event", "exception", "frame", "opened", "resealed"]


def frame(headers: Mapping[str, str], payload: bytes) -> bytes:
    """One message. All headers are texts."""
    return resealed(b"".join(_header(name, value) for name, value in headers.items()), payload)


def resealed(block: bytes, payload: bytes) -> bytes:
    """One message, its headers as they stand in another."""
    prelude = (16 + len(block) + len(payload)).to_bytes(4, "big") + len(block).to_bytes(4, "big")
    message = prelude + crc32(prelude).to_bytes(4, "big") + block + payload
    return message + crc32(message).to_bytes(4, "big")


def event(name: str, fields: object) -> bytes:
    """An event of the service."""
    return _json({":event-type": name, ":content-type": "application/json", ":message-type": "event"}, fields)


def exception(name: str, fields: object) -> bytes:
    """A failure of the service; nothing follows it."""
    headers = {":exception-type": name, ":content-type": "application/json", ":message-type": "exception"}
    return _json(headers, fields)


def opened(message: bytes) -> tuple[bytes, bytes]:
    """The headers of a whole message as they are, and its payload."""
    size = int.from_bytes(message[4:8], "big")
    return message[12 : 12 + size], message[12 + size : -4]


def _json(headers: Mapping[str, str], fields: object) -> bytes:
    return frame(headers, json.dumps(fields, separators=(",", ":")).encode())


def _header(name: str, value: str) -> bytes:
    key, text = name.encode(), value.encode()
    return bytes([len(key)]) + key + b"\x07" + len(text).to_bytes(2, "big") + text
