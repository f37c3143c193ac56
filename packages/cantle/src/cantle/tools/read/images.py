"""Images by what their bytes say, whatever the file is called.

PNG    89 "PNG" 0D 0A 1A 0A, then IHDR with width and height
JPEG   FF D8 FF, segments; the frame header (SOF) has height and width
GIF    "GIF87a" or "GIF89a", width and height, little endian
WebP   "RIFF" size "WEBP", then VP8, VP8L or VP8X with the size
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from msgspec import Struct

from cantle.tools.truncation import size_text
from cantle_agent.tool import ToolError, ToolResult
from cantle_ai.content import ImageContent, TextContent

__all__ = ["ImageKind", "identify_image", "image_result", "image_size"]

MAX_BASE64 = 4_718_592
"""4.5 MB: the strictest vendors take 5 MB of base64 an image, and a request has other parts."""
MAX_SIDE = 8_000
"""Pixels; the strictest vendors refuse wider or higher images."""


class ImageKind(Struct, frozen=True):
    """A format: its name, its media type, and whether models take it."""

    name: str
    mime_type: str
    accepted: bool = True


PNG = ImageKind("PNG", "image/png")
JPEG = ImageKind("JPEG", "image/jpeg")
GIF = ImageKind("GIF", "image/gif")
WEBP = ImageKind("WebP", "image/webp")
BMP = ImageKind("BMP", "image/bmp", accepted=False)
TIFF = ImageKind("TIFF", "image/tiff", accepted=False)
ICON = ImageKind("icon", "image/vnd.microsoft.icon", accepted=False)
HEIF = ImageKind("HEIF", "image/heif", accepted=False)
AVIF = ImageKind("AVIF", "image/avif", accepted=False)
JPEG_XL = ImageKind("JPEG XL", "image/jxl", accepted=False)


def identify_image(head: bytes) -> ImageKind | None:
    """The image format that a file's first bytes show, None for anything else."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return PNG
    if head.startswith(b"\xff\xd8\xff"):
        return JPEG
    if head.startswith((b"GIF87a", b"GIF89a")):
        return GIF
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return WEBP
    if head.startswith(b"BM") and len(head) >= 26 and head[6:10] == b"\0\0\0\0":
        return BMP
    if head.startswith((b"II*\0", b"MM\0*")):
        return TIFF
    if head.startswith(b"\0\0\1\0") and len(head) >= 22 and head[9] == 0:
        return ICON
    if head.startswith(b"\0\0\0\x0cJXL \r\n\x87\n"):
        return JPEG_XL
    if head[4:8] == b"ftyp":
        return {b"avif": AVIF, b"avis": AVIF}.get(head[8:12]) or (
            HEIF if head[8:12] in (b"heic", b"heix", b"hevc", b"mif1", b"msf1") else None
        )
    return None


def image_size(kind: ImageKind, data: bytes) -> tuple[int, int] | None:
    """Width and height in pixels, None when the data does not have them where it should."""
    try:
        if kind is PNG:
            size = struct.unpack_from(">II", data, 16) if data[12:16] == b"IHDR" else None
        elif kind is GIF:
            size = struct.unpack_from("<HH", data, 6)
        elif kind is WEBP:
            size = _webp_size(data)
        else:
            size = _jpeg_size(data)
    except struct.error:
        return None
    return None if size is None or not all(size) else (size[0], size[1])


def image_result(kind: ImageKind, name: str, size: int, load: Callable[[], bytes]) -> ToolResult:
    """The result that shows an image. `load` gives its bytes; it is called for one that may be sent only.

    Raises :class:`ToolError` for a format or size that models don't take, and for damaged data.
    """
    if not kind.accepted:
        raise ToolError(
            f"{name} is a {kind.name} image ({size_text(size)}), which models can't be shown. "
            "Convert it to PNG first, for instance with ImageMagick."
        )
    if (size + 2) // 3 * 4 > MAX_BASE64:
        raise ToolError(
            f"{name} is a {kind.name} image of {size_text(size)}; at most {size_text(MAX_BASE64 // 4 * 3)} "
            "can be shown. Make a smaller copy of it and read that."
        )
    import base64

    data = load()
    pixels = image_size(kind, data)
    if pixels is None:
        raise ToolError(f"{name} begins like a {kind.name} image, but is damaged or incomplete.")
    if max(pixels) > MAX_SIDE:
        raise ToolError(
            f"{name} is a {kind.name} image of {pixels[0]}x{pixels[1]} pixels; at most {MAX_SIDE} a side "
            "can be shown. Make a smaller copy of it and read that."
        )
    text = f"[{kind.name} image, {pixels[0]}x{pixels[1]} pixels, {size_text(len(data))}]"
    image = ImageContent(base64.b64encode(data).decode("ascii"), kind.mime_type)
    return ToolResult(content=(TextContent(text), image))


_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    position = 2
    while position + 9 <= len(data) and data[position] == 0xFF:
        marker = data[position + 1]
        if marker in _FRAMES:
            height, width = struct.unpack_from(">HH", data, position + 5)
            return width, height
        if marker == 0xFF:
            position += 1
            continue
        position += 2 + struct.unpack_from(">H", data, position + 2)[0]
    return None


def _webp_size(data: bytes) -> tuple[int, int] | None:
    form = data[12:16]
    if len(data) < 30:
        return None
    if form == b"VP8 ":
        width, height = struct.unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    if form == b"VP8L":
        bits = struct.unpack_from("<I", data, 21)[0]
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if form == b"VP8X":
        return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
    return None
