"""The rule for images in a request: known types, real base64, and data that are what they say."""

from __future__ import annotations

import base64
import binascii
import re

from cantle_ai.testing.server.refusal import Path, Refusal

__all__ = ["check_image", "check_image_url"]

_MAGIC = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a"),
    "image/webp": re.compile(rb"RIFF....WEBP", re.DOTALL),
}


_DATA_URL = re.compile(r"data:([a-z0-9.+-]+/[a-z0-9.+-]+);base64,(.*)", re.DOTALL)


def check_image_url(url: str, path: Path) -> None:
    """Refuse a URL that is neither an https address nor holds an image that a vendor could read."""
    if url.startswith("https://"):
        return
    found = _DATA_URL.fullmatch(url)
    if found is None:
        raise Refusal("image", f"{path} is neither https nor a base64 data URL: {url[:40]!r}")
    check_image(found[1], found[2], path)


def check_image(mime_type: str, encoded: str, path: Path) -> None:
    """Refuse an image that a vendor could not read."""
    if mime_type not in _MAGIC:
        raise Refusal("image", f"{path} has the type {mime_type}: it must be {', '.join(_MAGIC)}")
    try:
        data = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Refusal("image", f"{path} is not valid base64: {error}") from None
    if _MAGIC[mime_type].match(data) is None:
        raise Refusal("image", f"{path} says {mime_type}, but its data begin with {data[:8]!r}")
