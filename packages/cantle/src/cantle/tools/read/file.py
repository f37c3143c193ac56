"""Reading one file: text, an image, or a clear word on why it is neither."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from cantle.images.kinds import ImageKind, identify_image
from cantle.tools.blocking import Check
from cantle.tools.paths import existing_path
from cantle.tools.read.text import Window, scan_text, text_result
from cantle.tools.regular_files import open_regular
from cantle.tools.text_files import HEAD, sniff
from cantle.tools.truncation import size_text
from cantle_agent.tool import ToolError, ToolResult
from cantle_ai.content import TextContent
from cantle_ai.system_errors import reason_of

__all__ = ["read_file"]

_CHUNK = 1 << 18


def read_file(cwd: Path, name: str, first: int, limit: int | None, check: Check) -> ToolResult:
    """Lines of the file that a model calls `name`, from line `first`, or the image that it holds.

    Memory does not grow with the file. `check` is called once for each piece. Raises :class:`ToolError`.
    """
    path = existing_path(cwd, name)
    with open_regular(path, name) as (descriptor, found):
        try:
            return _read(descriptor, found.st_size, path, name, Window(first, limit), check)
        except OSError as problem:
            raise ToolError(f"{name} can't be read: {reason_of(problem)}.") from None


def _read(descriptor: int, size: int, path: Path, name: str, window: Window, check: Check) -> ToolResult:
    head = b"".join(_chunks(descriptor, HEAD, check))
    image = identify_image(head)
    if image is not None:
        return _image(image, name, size, lambda: head + b"".join(_chunks(descriptor, size, check)))
    encoding = sniff(head)
    if encoding is None and b"\0" in head:
        raise _binary(head, size, name)
    rest = _chunks(descriptor, None, check)
    scanned = scan_text(head, rest, window, encoding)
    if b"\0" in scanned.window:
        raise _binary(head, size, name)
    return text_result(scanned, window, path, name)


def _chunks(descriptor: int, size: int | None, check: Check) -> Iterator[bytes]:
    left = size
    while left is None or left > 0:
        check()
        chunk = os.read(descriptor, _CHUNK if left is None else min(left, _CHUNK))
        if not chunk:
            return
        yield chunk
        if left is not None:
            left -= len(chunk)


def _image(kind: ImageKind, name: str, size: int, load: Callable[[], bytes]) -> ToolResult:
    """The result that shows an image; how it is made to fit a model is not decided here."""
    from cantle.images.attachment import image_block
    from cantle.images.errors import UnusableImageError

    try:
        block, pixels = image_block(kind, size, load)
    except UnusableImageError as problem:
        raise ToolError(f"{name} {problem}") from None
    measured = "" if pixels is None else f"{pixels[0]}x{pixels[1]} pixels, "
    return ToolResult(content=(TextContent(f"[{kind.name} image, {measured}{size_text(size)}]"), block))


_KINDS = (
    (b"%PDF-", "a PDF document", "pdftotext"),
    (b"PK\x03\x04", "a ZIP archive or office document", "unzip -l"),
    (b"\x1f\x8b", "gzip-compressed data", "zcat"),
    (b"\xfd7zXZ\0", "xz-compressed data", "xzcat"),
    (b"\x28\xb5\x2f\xfd", "zstd-compressed data", "zstdcat"),
    (b"BZh", "bzip2-compressed data", "bzcat"),
    (b"SQLite format 3\0", "an SQLite database", "sqlite3"),
    (b"\x7fELF", "a compiled program or library", "strings"),
    (b"MZ", "a Windows program or library", "strings"),
)


def _binary(head: bytes, size: int, name: str) -> ToolError:
    kind, program = next(
        ((kind, program) for magic, kind, program in _KINDS if head.startswith(magic)),
        ("binary data", "file, xxd or strings"),
    )
    return ToolError(
        f"{name} is {kind} ({size_text(size)}), not text or an image that can be shown. "
        f"Look into it with bash, for instance with {program}."
    )
