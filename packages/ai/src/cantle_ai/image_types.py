"""The kinds of images that models take, known by their first bytes: not by a name, nor by what somebody says.

PNG    89 "PNG" 0D 0A 1A 0A
JPEG   FF D8 FF
GIF    "GIF87a" or "GIF89a"
WebP   "RIFF", four bytes of length, "WEBP"
"""

from __future__ import annotations

import binascii
from typing import Final

__all__ = ["base64_image_type", "image_type"]

_ALPHABET: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def image_type(head: bytes) -> str | None:
    """The media type of an image that begins with `head`; None for what no model takes. 12 bytes are enough."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    return None


def base64_image_type(data: str) -> str | None:
    """:func:`image_type` of base64 data; None also when they are no base64, in the strict sense of providers."""
    kind = image_type(_decoded(data[:16]))
    return kind if kind is not None and _is_base64(data) else None


def _decoded(data: str) -> bytes:
    try:
        return binascii.a2b_base64(data)
    except ValueError:
        return b""


def _is_base64(data: str) -> bool:
    # Half the time that decoding takes, and nothing is kept of it.
    if len(data) % 4 or not data.isascii():
        return False
    body = data.encode("ascii").rstrip(b"=")
    return len(data) - len(body) <= 2 and not body.translate(None, _ALPHABET)
