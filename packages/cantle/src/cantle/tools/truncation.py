"""How much text a tool gives at most, and how a result says that there is more.

The `truncation` object in a result's details has the reference's fields, except that it does not repeat
the text itself:

    truncated, truncatedBy: "lines" | "bytes", totalLines, totalBytes, outputLines, outputBytes,
    lastLinePartial, firstLineExceedsLimit, maxLines, maxBytes

and, where the beginning is shown as well as the end, `headLines`, which count in `outputLines`. Bytes are
those of the text in UTF-8.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from cantle_ai.codec import JsonObject

__all__ = ["MAX_BYTES", "MAX_LINES", "Truncation", "count_lines", "cut_head", "cut_tail", "size_text"]

MAX_LINES = 2_000
MAX_BYTES = 51_200
"""50 KB. Both limits are the reference's."""


class Truncation(Struct, frozen=True, kw_only=True):
    """What was left of a text, and of how much."""

    by: Literal["lines", "bytes"]
    total_lines: int
    total_bytes: int
    output_lines: int
    output_bytes: int
    head_lines: int = 0
    last_line_partial: bool = False
    first_line_exceeds_limit: bool = False

    def to_json(self) -> JsonObject:
        raw: JsonObject = {
            "truncated": True,
            "truncatedBy": self.by,
            "totalLines": self.total_lines,
            "totalBytes": self.total_bytes,
            "outputLines": self.output_lines,
            "outputBytes": self.output_bytes,
            "lastLinePartial": self.last_line_partial,
            "firstLineExceedsLimit": self.first_line_exceeds_limit,
            "maxLines": MAX_LINES,
            "maxBytes": MAX_BYTES,
        }
        if self.head_lines:
            raw["headLines"] = self.head_lines
        return raw


def count_lines(data: bytes) -> int:
    """Lines of a text; what follows the last line end counts when there is something."""
    return data.count(b"\n") + (not data.endswith(b"\n") and bool(data))


def cut_head(data: bytes, limit: int) -> bytes:
    """The first bytes of UTF-8 text, at most `limit`, no character cut in two."""
    if len(data) <= limit:
        return data
    end = limit
    while end > 0 and data[end] & 0xC0 == 0x80:
        end -= 1
    return data[:end]


def cut_tail(data: bytes, limit: int) -> bytes:
    """The last bytes of UTF-8 text, at most `limit`, no character cut in two."""
    if len(data) <= limit:
        return data
    start = len(data) - limit
    while start < len(data) and data[start] & 0xC0 == 0x80:
        start += 1
    return data[start:]


def size_text(count: int) -> str:
    """A number of bytes for a reader: `999 bytes`, `12.3 KB`, `4.5 MB`."""
    if count < 1_024:
        return f"{count} byte{'' if count == 1 else 's'}"
    if count < 1_024 * 1_024:
        return f"{count / 1_024:.1f} KB"
    return f"{count / (1_024 * 1_024):.1f} MB"
