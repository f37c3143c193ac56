"""`@file` on the command line: the text of a file, or an image, for the first prompt."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cantle.errors import UserError
from cantle.images.kinds import ImageKind, identify_image
from cantle.tools.paths import existing_path
from cantle.tools.regular_files import open_regular
from cantle.tools.text_files import HEAD, decode_file, shown
from cantle.tools.truncation import size_text
from cantle_agent.tool import ToolError
from cantle_ai.content import ImageContent
from cantle_ai.system_errors import reason_of

__all__ = ["read_attachment", "text_of"]

LIMIT = 1 << 20
"""Bytes of text. More fills the window of nearly every model; an agent can read a file piece by piece instead."""

_LET_IT_READ = "Name it without the @, and the agent reads what it needs."


def read_attachment(name: str, cwd: Path) -> tuple[Path, str | ImageContent]:
    """The file's full path and its text, or the image it holds. Empty files have empty text.

    Raises UserError when it is missing, cannot be read, is too large or holds neither.
    """
    try:
        path = existing_path(cwd, name)
    except ToolError as error:
        raise UserError(str(error), "A prompt that begins with @ comes after --.") from None
    said = f"@{name}"
    try:
        with open_regular(path, said) as (descriptor, found), open(descriptor, "rb", closefd=False) as file:
            head = file.read(HEAD)
            image = identify_image(head)
            if image is not None:
                return path, _image(image, said, found.st_size, lambda: head + file.read())
            data = head + file.read(LIMIT + 1 - len(head))
    except ToolError as error:
        raise UserError(str(error)) from None
    except OSError as error:
        raise UserError(f"{said} cannot be read: {reason_of(error)}.", "Check the file.") from None
    if len(data) > LIMIT:
        size = size_text(max(found.st_size, len(data)))
        raise UserError(
            f"{said} has {size}; a prompt takes at most {size_text(LIMIT)} of a file.", _LET_IT_READ
        )
    text = text_of(data)
    if text is None:
        raise UserError(f"{said} is binary data, which a prompt cannot hold.", _LET_IT_READ)
    return path, text


def _image(kind: ImageKind, said: str, size: int, load: Callable[[], bytes]) -> ImageContent:
    from cantle.images.attachment import image_block
    from cantle.images.errors import UnusableImageError

    try:
        return image_block(kind, size, load)[0]
    except UnusableImageError as problem:
        raise UserError(f"{said} {problem.reason}.", problem.advice) from None


def text_of(data: bytes) -> str | None:
    """The text in `data`, whatever its encoding, wrong bytes as U+FFFD; None when it is binary."""
    try:
        text = decode_file(data).text
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else shown(text)
