"""Writing one file."""

from __future__ import annotations

from pathlib import Path

from cantle.tools.blocking import Check
from cantle.tools.regular_files import FileState, check_writable, open_regular, replace_file
from cantle.tools.text_files import sniff
from cantle.tools.truncation import count_lines, size_text
from cantle_agent.tool import ToolError, ToolResult
from cantle_ai.codec import JsonObject
from cantle_ai.system_errors import reason_of

__all__ = ["encode_content", "write_file"]


def encode_content(content: str) -> bytes:
    """The content in UTF-8. Raises :class:`ToolError` for text that has no form in it."""
    try:
        return content.encode("utf-8")
    except UnicodeEncodeError as problem:
        raise ToolError(
            f"content holds half of a surrogate pair (U+{ord(content[problem.start]):04X}) at character "
            f"{problem.start + 1}, which no file can hold as text; nothing was written."
        ) from None


def write_file(real: Path, name: str, data: bytes, check: Check) -> ToolResult:
    """Make `data` the content of the file at the real path `real`. Raises :class:`ToolError`."""
    check()
    try:
        found = real.stat()
    except (FileNotFoundError, NotADirectoryError):
        found = None
    except OSError as problem:
        raise ToolError(f"{name} can't be written: {reason_of(problem)}.") from None
    before = None
    if found is None:
        _make_folder(real.parent, name)
    else:
        check_writable(real, found, name)
        before = _marked_encoding(real, name, data)
    expected = None if found is None else FileState.of(found)
    replace_file(real, data, name, expected=expected, check=check)
    lines = count_lines(data)
    amount = f"{lines} line{'' if lines == 1 else 's'}, {size_text(len(data))}"
    details: JsonObject = {"created": found is None, "bytes": len(data), "lines": lines}
    text = f"{'Created' if found is None else 'Rewrote'} {name} ({amount})."
    if before is not None:
        details["previousEncoding"] = before
        text += f" It was {before} before and is plain UTF-8 now."
    return ToolResult.of(text, details=details)


def _make_folder(folder: Path, name: str) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        part = next(parent for parent in (folder, *folder.parents) if parent.exists())
        raise ToolError(f"{name} can't be written: {part} is a file, not a folder.") from None
    except OSError as problem:
        raise ToolError(
            f"{name} can't be written: its folder can't be made ({reason_of(problem)})."
        ) from None


def _marked_encoding(real: Path, name: str, data: bytes) -> str | None:
    """The encoding that the old file's mark shows, when the new content has not the same mark."""
    try:
        with open_regular(real, name) as (descriptor, _):
            import os

            old = sniff(os.read(descriptor, 4_096))
    except ToolError:
        # May be written, not read: nothing is known of it.
        return None
    if old is None or (old.codec == "utf-8" and data.startswith(old.bom)):
        return None
    return "UTF-8 with a byte order mark" if old.unit == 1 else old.codec.upper()
