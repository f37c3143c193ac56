"""Editing one file: read, match, splice the bytes, replace the file."""

from __future__ import annotations

from pathlib import Path

from cantle.tools.blocking import Check
from cantle.tools.diff import Change, diff_details
from cantle.tools.edit.matching import Matcher
from cantle.tools.regular_files import check_writable, read_all, replace_file
from cantle.tools.text_files import TextFile, decode_file
from cantle_agent.tool import ToolError, ToolResult
from cantle_ai.codec import JsonObject

__all__ = ["edit_bytes", "edit_file"]

LIMIT = 128 * 1_024 * 1_024
"""Bytes; larger files are not edited."""


def edit_file(real: Path, name: str, edits: list[tuple[str, str]], check: Check) -> ToolResult:
    """Replace each first text of `edits` by its second in the file at the real path `real`.

    Raises :class:`ToolError`, and then the file is as it was.
    """
    data, state = read_all(real, name, limit=LIMIT)
    check_writable(real, real.stat(), name)
    check()
    edited, details = edit_bytes(data, edits, name)
    replace_file(real, edited, name, expected=state, check=check)
    count = f"{len(edits)} place{'' if len(edits) == 1 else 's'}"
    return ToolResult.of(f"Changed {count} in {name}.", details=details)


def edit_bytes(data: bytes, edits: list[tuple[str, str]], name: str) -> tuple[bytes, JsonObject]:
    """The bytes of a file after these edits, and what a result's details say of them. Raises :class:`ToolError`."""
    file = _decoded(data, name)
    changes = Matcher(file, name).changes(edits)
    edited = _splice(file, changes, name)
    if edited == data:
        raise ToolError(f"Nothing would change in {name}: the edits cancel each other out.")
    return edited, diff_details(file.shown, changes, name)


def _splice(file: TextFile, changes: list[Change], name: str) -> bytes:
    """The file's bytes with those of each change in place of what it replaces; every other byte stays."""
    edges = file.offsets(position for change in changes for position in (change.start, change.end))
    pieces: list[bytes] = []
    done = 0
    for change, start, end in zip(changes, edges, edges, strict=False):
        pieces += (file.data[done:start], _encoded(change.new, file, name))
        done = end
    pieces.append(file.data[done:])
    return b"".join(pieces)


def _encoded(text: str, file: TextFile, name: str) -> bytes:
    encoding = file.encoding
    try:
        # Wrong bytes that are put back come as lone surrogates, and those only; see Matcher.
        return text.encode(encoding.codec, encoding.errors)
    except UnicodeEncodeError as problem:
        character = text[problem.start]
        raise ToolError(
            f"{name} is {encoding.label}, which has no {character!a} (U+{ord(character):04X}); nothing was "
            "changed. Use characters that it has, or convert the file first."
        ) from None


def _decoded(data: bytes, name: str) -> TextFile:
    try:
        return decode_file(data)
    except UnicodeDecodeError as problem:
        raise ToolError(
            f"{name} begins like {problem.encoding} text, but is none at byte {problem.start}; nothing was changed. "
            "Look at it with bash, for instance with xxd."
        ) from None
