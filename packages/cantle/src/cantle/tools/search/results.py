"""What a search shows: lines within the limit of a result, names that can be told apart, and notices."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from cantle.tools.search.walk import Unreadable
from cantle.tools.truncation import MAX_BYTES, Truncation, size_text
from cantle_agent.tool import ToolError, ToolResult
from cantle_ai.codec import JsonObject

__all__ = ["Listing", "folder_at", "shown_name"]

_NAMED = 5
"""How many things that could not be read are named."""
_ODD = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029]")


def shown_name(path: bytes) -> str:
    """A path for a model: as it is, or as bash writes it, `$'a\\nb'`, where it holds what no line shows."""
    text = path.decode("utf-8", "surrogateescape")
    if _ODD.search(text) is None:
        return text
    return "$'" + _ODD.sub(_escaped, text.replace("\\", "\\\\").replace("'", "\\'")) + "'"


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    named = {0x09: "\\t", 0x0A: "\\n", 0x0D: "\\r", 0x1B: "\\e"}.get(code)
    return named or (f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}")


def folder_at(path: Path, name: str) -> str:
    """The real path of the folder that a model calls `name`. Raises :class:`ToolError` for anything else."""
    if not path.is_dir():
        raise ToolError(f"{name} is not a folder.")
    return str(path.resolve())


class Listing:
    """Lines that are gathered until no more fit into a result."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._bytes = 0
        self.full = False
        """Whether a line did not fit; it and all after it are left out."""
        self.notices: list[str] = []
        self.details: JsonObject = {}

    def add(self, line: str) -> bool:
        """Take a line; false when it does not fit."""
        size = len(line.encode("utf-8", "replace")) + bool(self._lines)
        if self.full or self._bytes + size > MAX_BYTES:
            self.full = True
            return False
        self._lines.append(line)
        self._bytes += size
        return True

    def note_limit(self, what: str, detail: str, limit: int, *, advice: str) -> None:
        """Say that there are more than `limit` of them, or than fit."""
        if self.full:
            self.notices.append(f"The first {size_text(MAX_BYTES)}; there are more {what}. {advice}")
            self.details["truncation"] = Truncation(
                by="bytes",
                total_lines=len(self._lines) + 1,
                total_bytes=self._bytes + 1,
                output_lines=len(self._lines),
                output_bytes=self._bytes,
            ).to_json()
        else:
            self.notices.append(f"The first {limit:,}; there are more {what}. {advice}")
            self.details[detail] = limit

    def note_unreadable(self, unreadable: Sequence[Unreadable]) -> None:
        """Name what could not be looked into."""
        if not unreadable:
            return
        named = [f"{shown_name(each.path)} ({each.reason})" for each in unreadable[:_NAMED]]
        more = f" and {len(unreadable) - _NAMED:,} more" if len(unreadable) > _NAMED else ""
        self.notices.append(f"Could not be read: {', '.join(named)}{more}.")

    def result(self, nothing: str) -> ToolResult:
        """What was gathered, or `nothing`, with the notices behind it."""
        text = "\n".join(self._lines) if self._lines else nothing
        if self.notices:
            text = f"{text}\n\n[{' '.join(self.notices)}]"
        return ToolResult.of(text, details=self.details or None)
