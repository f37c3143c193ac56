"""`read` on images: known by their bytes, refused in words."""

import base64
import struct
import zlib

import pytest

from cantle.tools.read.images import MAX_BASE64
from cantle_ai.content import ImageContent
from packages.cantle.tests.tools.harness import Tools, text_of


def png(width: int, height: int, padding: int = 0) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress(b"".join(b"\0" + b"\0" * min(width, 64) for _ in range(min(height, 64))))
    body = (
        chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"teXt", b"\0" * padding) + chunk(b"IEND", b"")
    )
    return b"\x89PNG\r\n\x1a\n" + body


JPEG = bytes.fromhex("ffd8ffe000104a46494600010100000100010000") + bytes.fromhex(
    "ffc0000b080007000501011100" + "ffda0008010100003f00d2ffd9"
)
GIF = b"GIF89a" + struct.pack("<HH", 3, 4) + b"\x80\0\0\0\0\0\xff\xff\xff;"
WEBP = (
    b"RIFF"
    + struct.pack("<I", 30)
    + b"WEBPVP8X"
    + struct.pack("<I", 10)
    + b"\0\0\0\0\x08\0\0\x09\0\0"
    + b"\0" * 8
)


@pytest.mark.parametrize(
    ("data", "mime", "words"),
    [
        (png(6, 5), "image/png", "PNG image, 6x5 pixels"),
        (JPEG, "image/jpeg", "JPEG image, 5x7 pixels"),
        (GIF, "image/gif", "GIF image, 3x4 pixels"),
        (WEBP, "image/webp", "WebP image, 9x10 pixels"),
    ],
)
@pytest.mark.parametrize("name", ["picture.png", "no-extension", "notes.txt"])
@pytest.mark.parity("tools.read-images")
async def test_j01_an_image_is_known_by_its_content(
    tools: Tools, data: bytes, mime: str, words: str, name: str
) -> None:
    (tools.folder / name).write_bytes(data)
    result = await tools.read(name)
    assert words in text_of(result)
    image = result.content[-1]
    assert isinstance(image, ImageContent)
    assert image.mime_type == mime
    assert base64.b64decode(image.data) == data


async def test_j01_text_that_is_called_an_image_is_text(tools: Tools) -> None:
    (tools.folder / "a.png").write_text("not an image\n", encoding="utf-8")
    assert text_of(await tools.read("a.png")) == "not an image\n"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"BM" + b"\x46\0\0\0" + b"\0" * 60, ["BMP", "Convert"]),
        (b"II*\0" + b"\0" * 60, ["TIFF", "Convert"]),
        (b"\0\0\0\x18ftypheic" + b"\0" * 20, ["HEIF", "Convert"]),
        (b"\0\0\0\x18ftypavif" + b"\0" * 20, ["AVIF", "Convert"]),
        (png(9_000, 10), ["9000x10", "smaller"]),
        (png(10, 10, MAX_BASE64 // 4 * 3), ["MB", "smaller"]),
        (b"\x89PNG\r\n\x1a\n" + b"broken", ["damaged"]),
        (b"\xff\xd8\xff\xe0" + b"\0" * 40, ["damaged"]),
        (b"GIF89a", ["damaged"]),
    ],
)
async def test_j02_an_image_that_can_not_be_sent_is_refused_in_words(
    tools: Tools, data: bytes, words: list[str]
) -> None:
    (tools.folder / "a").write_bytes(data)
    failure = await tools.failure("read", path="a")
    assert all(word in failure for word in words), failure


async def test_j02_the_largest_image_is_below_the_limit_in_base64(tools: Tools) -> None:
    overhead = len(png(2, 2))
    (tools.folder / "a").write_bytes(png(2, 2, MAX_BASE64 // 4 * 3 - overhead))
    image = (await tools.read("a")).content[-1]
    assert isinstance(image, ImageContent)
    assert len(image.data) <= MAX_BASE64
