"""`@file` on the command line: the text of a file, or an image, for the first prompt."""

from __future__ import annotations

from pathlib import Path

from cantle.errors import UserError
from cantle.tools.paths import existing_path
from cantle.tools.read.images import identify_image, image_result
from cantle.tools.regular_files import open_regular
from cantle.tools.text_files import HEAD, decode_file, shown
from cantle.tools.truncation import size_text
from cantle_agent.tool import ToolError
from cantle_ai.content import ImageContent

__all__ = ["read_attachment"]

LIMIT = 10_000_000
"""Bytes. A larger file fills any model's window; an agent can read it piece by piece instead."""


def read_attachment(name: str, cwd: Path) -> tuple[Path, str | ImageContent]:
    """The file's full path and its text, or the image it holds. Empty files have empty text.

    Raises UserError when it is missing, cannot be read, is too large or holds neither.
    """
    try:
        path = existing_path(cwd, name)
        with open_regular(path, name) as (descriptor, found):
            if found.st_size > LIMIT:
                raise ToolError(
                    f"{name} has {size_text(found.st_size)}, too much for a prompt. Name it without the @."
                )
            with open(descriptor, "rb", closefd=False) as file:
                data = file.read()
        image = identify_image(data[:HEAD])
        if image is not None:
            result = image_result(image, name, len(data), lambda: data)
            return path, next(block for block in result.content if isinstance(block, ImageContent))
    except ToolError as error:
        raise UserError(str(error)) from None
    except OSError as error:
        raise UserError(f"{name} cannot be read: {error.strerror}.") from None
    try:
        text = decode_file(data).text
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise UserError(f"{name} is binary data, which a prompt cannot hold.", "Name it without the @.")
    return path, shown(text)
