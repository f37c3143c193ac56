"""Ids and times as session files write them.

session id   UUID version 7: 48 bits of Unix milliseconds, then random bits; sorts by age
entry id     8 hexadecimal digits, unique in its file; a whole random UUID if chance is against it, or if not
             all ids of the file are known
time         2026-01-31T23:59:59.123Z
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Container

__all__ = ["check_session_id", "file_stamp", "iso_time", "milliseconds", "new_entry_id", "new_session_id"]

_TRIES = 100
_SESSION_ID = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"


def new_session_id(now: int, random: Callable[[int], bytes] = os.urandom) -> str:
    """A version 7 UUID for the Unix millisecond `now`."""
    return _uuid((now & (1 << 48) - 1).to_bytes(6, "big") + random(10), version=7)


def new_entry_id(taken: Container[str] | None, random: Callable[[int], bytes] = os.urandom) -> str:
    """An id that `taken` does not contain; with None, one that nothing contains."""
    if taken is not None:
        for _ in range(_TRIES):
            short = random(4).hex()
            if short not in taken:
                return short
    return _uuid(random(16), version=4)


def check_session_id(text: str) -> str:
    """`text`, if it can be a session's id, and so part of a file name. Raises ValueError otherwise."""
    if re.fullmatch(_SESSION_ID, text) is None or len(text) > 200:
        raise ValueError(
            f"{text!r} cannot be a session id: use at most 200 letters, digits, '-', '_' and '.', "
            "with a letter or digit at both ends"
        )
    return text


def iso_time(ms: int) -> str:
    """A Unix time in milliseconds as ISO 8601 in UTC, with milliseconds."""
    seconds, rest = divmod(ms, 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{rest:03d}Z"


def file_stamp(iso: str) -> str:
    """An ISO time as it stands in a file name."""
    return iso.replace(":", "-").replace(".", "-")


def milliseconds(iso: str) -> int | None:
    """The Unix milliseconds of an ISO time; None when it is none."""
    from datetime import UTC, datetime

    try:
        moment = datetime.fromisoformat(iso)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def _uuid(data: bytes, *, version: int) -> str:
    """16 bytes as a UUID (RFC 9562, section 4), its version and variant put in."""
    octets = bytearray(data)
    octets[6] = octets[6] & 0x0F | version << 4
    octets[8] = octets[8] & 0x3F | 0x80
    digits = octets.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
