"""The lines of a session file: which entry a line is, and where it stands in the tree.

A place in the tree is found without decoding what the line says, since most of a long history is never
asked for; the rest of the line is still checked to be JSON, so a torn line is known when it is read.
"""

from __future__ import annotations

import re

import msgspec
from msgspec import Struct

from cantle_ai.codec import decode_object, encode_json, unknown_fields
from cantle_ai.messages import encode_message
from cantle_session.entries import VERSION, Entry, MessageEntry, SessionHeader, entry_from_json

__all__ = [
    "Link",
    "decode_entry",
    "decode_header",
    "encode_entry",
    "encode_header",
    "link_of",
    "sound_line",
    "sound_part",
]


class Link(Struct, gc=False, rename="camel"):
    """What the tree needs of a line."""

    type: str = ""
    id: str = ""
    parent_id: str | None = None


_decode_link = msgspec.json.Decoder(Link).decode
_ENTRY_HEAD = rb'\{"type":"[^"\\]+","id":"[^"\\]+","parentId":'
_EFFORT = 4
"""How often as many bytes as a spoilt line has are looked at to find its sound part."""
_BOM = b"\xef\xbb\xbf"


def link_of(line: bytes) -> Link | None:
    """The place of a line in the tree; None when it is not a JSON object with `type` and, but for a header, `id`."""
    try:
        link = _decode_link(line)
    except msgspec.MsgspecError:
        return _slow_link(line)
    except RecursionError:
        return None
    return link if link.type and link.id else None


def _slow_link(line: bytes) -> Link | None:
    """For what `msgspec` refuses and others write: see :mod:`cantle_ai.codec`."""
    try:
        raw = decode_object(line)
    except ValueError:
        return None
    match raw:
        case {"type": str(kind), "id": str(entry_id)} if kind and entry_id:
            parent_id = raw.get("parentId")
            return Link(kind, entry_id, parent_id) if isinstance(parent_id, str | None) else None
    return None


def sound_part(line: bytes) -> bytes | None:
    """The entry at the end of a spoilt line: behind a block of NULs, or glued to a line that was torn off.

    None when there is none. No part of a sound line can be taken for one: it would not end where the line ends.
    """
    starts = [match.start() for match in re.compile(_ENTRY_HEAD).finditer(line, 1)]
    left = _EFFORT * len(line)
    for start in reversed(starts):
        left -= len(line) - start
        if left < 0:
            break
        part = line[start:]
        if link_of(part) is not None:
            return part
    return None


def sound_line(line: bytes) -> tuple[Link, bytes] | None:
    """What a line is of the tree, and the line without what is spoilt in front of it; None when it is no entry."""
    link = link_of(line)
    if link is not None:
        return link, line
    part = sound_part(line)
    link = None if part is None else link_of(part)
    return None if part is None or link is None else (link, part)


def encode_header(header: SessionHeader) -> bytes:
    """The header's line, without its end."""
    return encode_json(header.to_json())


def decode_header(line: bytes) -> SessionHeader | None:
    """The header that a line is; None when it is something else."""
    try:
        raw = decode_object(line.removeprefix(_BOM))
    except ValueError:
        return None
    match raw:
        case {"type": "session", "id": str(session_id)}:
            version, parent = raw.get("version", 1), raw.get("parentSession")
            cwd, timestamp = raw.get("cwd"), raw.get("timestamp")
            known = type(version) is int
            return SessionHeader(
                id=session_id,
                timestamp=timestamp if isinstance(timestamp, str) else "",
                cwd=cwd if isinstance(cwd, str) else "",
                version=version if type(version) is int else VERSION,
                parent_session=parent if isinstance(parent, str) else None,
                extra=unknown_fields(raw, _HEADER_KEYS if known else _HEADER_KEYS - {"version"}),
            )
    return None


def encode_entry(entry: Entry) -> bytes:
    """The entry's line, without its end. A message is not encoded again.

    Raises TypeError when `data`, `details` or another free field holds what JSON has no form for.
    """
    if isinstance(entry, MessageEntry) and entry.extra is None:
        head = {"type": "message", "id": entry.id, "parentId": entry.parent_id, "timestamp": entry.timestamp}
        return b'%b,"message":%b}' % (encode_json(head)[:-1], encode_message(entry.message))
    return encode_json(entry.to_json())


def decode_entry(line: bytes) -> Entry:
    """The entry of a line, or of its sound part. Raises ValueError when it has none."""
    try:
        return entry_from_json(decode_object(line))
    except ValueError:
        part = sound_part(line)
        if part is None:
            raise
        return entry_from_json(decode_object(part))


_HEADER_KEYS = frozenset({"type", "version", "id", "timestamp", "cwd", "parentSession"})
