"""Small pictures for tests, made without Pillow; and what Pillow makes, for tests that have it."""

import base64
import io
import struct
import zlib
from typing import Any

from cantle_ai.content import ImageContent


def png_chunk(kind: bytes, data: bytes = b"") -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int, *chunks: bytes) -> bytes:
    """A black PNG image, with more chunks before its data."""
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress((b"\0" + b"\0" * width) * height)
    parts = [png_chunk(b"IHDR", header), *chunks, png_chunk(b"IDAT", rows), png_chunk(b"IEND")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


PNG = png(8, 6)


def claiming(width: int, height: int) -> bytes:
    """A PNG image that says that it has another size."""
    header = struct.pack(">II", width, height) + PNG[24:29]
    return PNG[:8] + png_chunk(b"IHDR", header) + PNG[33:]


# 8x6 pixels: red at the top left, blue at the bottom right, else white; the first is grey.
GREY_JPEG = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABsSFBcUERsXFhceHBsgKEIrKCUlKFE6PTBCYFVlZF9VXVtqeJmBanGQc1tdhbWGkJ6jq62rZ4C8"
    "ybqmx5moq6T/wAALCAAGAAgBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAAA//EAB8QAAIBAgcAAAAAAAAAAAAAAAEREgATAgMEBRQhUf/aAAgB"
    "AQAAPwB9fmHYIcQDHfcrvaikkvTX/9k="
)
JPEG = GREY_JPEG
GIF = base64.b64decode(
    "R0lGODdhCAAGAIEAAP////8AAAAA/wAAACwAAAAACAAGAAAIGgADCAwAoCCAgQQNIjTIEICAhwIYQoxocGJAADs="
)
ANIMATED_GIF = base64.b64decode(
    "R0lGODdhBAAEAIAAAAAAAAAAACwAAAAABAAEAAAICQABCBxIsCCAgAAh+QQBAAAEACwAAAAABAAEAIEhISFeXl6hoaHe3t4IEAABCAQQoGAAAQgF"
    "DFg4ICAAOw=="
)
WEBP = base64.b64decode("UklGRigAAABXRUJQVlA4TBsAAAAvB0ABABcw//O///MfLAWBAGHSpE0TEf0POwYA")
LOSSY_WEBP = base64.b64decode(
    "UklGRjwAAABXRUJQVlA4IDAAAADQAQCdASoIAAYADMDOJbACdAD0h/tsAADLOfMTuouEDGUeoYOfFVMIRWUD+xvkkAA="
)

EVERY_KIND = {
    "image/png": PNG,
    "image/jpeg": JPEG,
    "image/gif": GIF,
    "image/webp": WEBP,
}


def exif(orientation: int, order: str = "<") -> bytes:
    """EXIF data that say nothing but how the image lies."""
    mark = b"II*\0" if order == "<" else b"MM\0*"
    entry = struct.pack(f"{order}HHIHH", 0x0112, 3, 1, orientation, 0)
    return mark + struct.pack(f"{order}IH", 8, 1) + entry + bytes(4)


def jpeg_segment(marker: int, data: bytes) -> bytes:
    return bytes([0xFF, marker]) + struct.pack(">H", len(data) + 2) + data


def with_segments(jpeg: bytes, *segments: bytes) -> bytes:
    """A JPEG image with more segments at its beginning."""
    return jpeg[:2] + b"".join(segments) + jpeg[2:]


def lying(jpeg: bytes, orientation: int) -> bytes:
    """A JPEG image that is to be turned."""
    return with_segments(jpeg, jpeg_segment(0xE1, b"Exif\0\0" + exif(orientation)))


def block(data: bytes, mime_type: str = "image/png") -> ImageContent:
    return ImageContent(base64.b64encode(data).decode(), mime_type)


# --- with Pillow


def drawn(width: int, height: int, mode: str = "RGB", colour: Any = "white") -> Any:
    """A Pillow image of one colour, with a red quarter at the top left."""
    from PIL import Image

    image = Image.new("RGB", (width, height), colour)
    image.paste("red", (0, 0, width // 2, height // 2))
    return image if mode == "RGB" else image.convert(mode)


def noise(width: int, height: int, mode: str = "RGB") -> Any:
    from random import Random

    from PIL import Image

    return Image.frombytes(mode, (width, height), Random(7).randbytes(width * height * len(mode)))


def encoded(image: Any, format: str, **options: Any) -> bytes:
    target = io.BytesIO()
    image.save(target, format, **options)
    return target.getvalue()


def shown(data: bytes) -> Any:
    """What is seen of an image: decoded, in colours."""
    from PIL import Image

    with Image.open(io.BytesIO(data)) as image:
        return image.convert("RGB")


def is_red(image: Any, x: int, y: int) -> bool:
    red, green, blue = image.getpixel((x, y))
    return red > 200 and green < 90 and blue < 90
