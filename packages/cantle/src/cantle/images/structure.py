"""What the bytes of the four formats that models take say without being decoded: size, frames, position, a whole end.

PNG   signature; chunks of length, type, data, checksum: IHDR, acTL if animated, eXIf, PLTE if IHDR says so, IDAT …,
      IEND; those whose type begins with a capital have to be understood
JPEG  FF D8; segments FF type length data, among them APP1 with "Exif"; the frame header (SOF) has the size;
      after SOS comes a scan, in which FF is followed by 00 or a restart marker; FF D9 is the end
GIF   signature, size, flags, colours; blocks: 2C an image, 21 an extension, 3B the end
WebP  "RIFF" length "WEBP"; chunks of type, length, data: VP8 or VP8L, or VP8X with the size, flags and more chunks
"""

from __future__ import annotations

import re
import struct
import zlib
from typing import Final

from msgspec import Struct

from cantle.images.exif import UPRIGHT, orientation_of, turned_sideways
from cantle.images.kinds import GIF, JPEG, PNG, ImageKind

__all__ = ["ImageFacts", "facts_of"]

_MOST_PARTS: Final = 1 << 16
"""Chunks or segments of one image. More are made to waste time."""


class ImageFacts(Struct, frozen=True):
    """Size in pixels as stored; `orientation` as EXIF numbers it."""

    width: int
    height: int
    orientation: int = UPRIGHT
    animated: bool = False
    progressive: bool = False
    """Whether a decoder has to keep the whole JPEG image in memory, however small it is wanted."""

    @property
    def upright_size(self) -> tuple[int, int]:
        """Width and height as the image is meant to be seen."""
        sideways = turned_sideways(self.orientation)
        return (self.height, self.width) if sideways else (self.width, self.height)


def facts_of(kind: ImageKind, data: bytes) -> ImageFacts | None:
    """What the bytes of an accepted kind say. None when they are damaged, or end before the image does."""
    read = {PNG: _png, JPEG: _jpeg, GIF: _gif}.get(kind, _webp)
    try:
        facts = read(data)
    except (struct.error, IndexError):
        return None
    return facts if facts is not None and facts.width and facts.height else None


def _png(data: bytes) -> ImageFacts | None:
    if data[12:16] != b"IHDR":
        return None
    width, height = struct.unpack_from(">II", data, 16)
    has_colours = data[25] != _COLOURS_IN_A_TABLE
    orientation, animated, drawn = UPRIGHT, False, False
    place = 8
    for _ in range(_MOST_PARTS):
        length, kind = struct.unpack_from(">I4s", data, place)
        if kind[:1].isupper() and not _has_right_checksum(data, place, length):
            return None
        if kind == b"IEND":
            return ImageFacts(width, height, orientation, animated) if drawn and has_colours else None
        if kind == b"IDAT":
            drawn = True
        elif kind == b"PLTE":
            has_colours = True
        elif kind == b"acTL":
            animated = struct.unpack_from(">I", data, place + 8)[0] > 1
        elif kind == b"eXIf":
            orientation = orientation_of(data[place + 8 : place + 8 + length])
        place += 12 + length
    return None


_COLOURS_IN_A_TABLE: Final = 3


def _has_right_checksum(data: bytes, place: int, length: int) -> bool:
    # Pillow does not look at that of the image data; others do, and refuse the image.
    end = place + 8 + length
    checksum: int = struct.unpack_from(">I", data, end)[0]
    return zlib.crc32(memoryview(data)[place + 4 : end]) == checksum


_FRAMES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_PROGRESSIVE: Final = frozenset({0xC2, 0xC6, 0xCA, 0xCE})
_ALONE: Final = frozenset({0x01, *range(0xD0, 0xD9)})
"""Markers without data."""
_END, _SCAN = 0xD9, 0xDA
_MOST_SCANS: Final = 64
"""Of one image. Progressive ones have about ten; each is a pass over all of the image, however short it is."""
_AFTER_SCAN: Final = re.compile(rb"\xff[\xc0-\xcf\xd8-\xfe]")


def _jpeg(data: bytes) -> ImageFacts | None:
    orientation, frame, scans = UPRIGHT, None, 0
    place = 2
    for _ in range(_MOST_PARTS):
        if data[place] != 0xFF:
            return None
        marker = data[place + 1]
        if marker == _END:
            if frame is None or not scans:
                return None
            width, height, progressive = frame
            return ImageFacts(width, height, orientation, progressive=progressive)
        if marker == 0xFF or marker in _ALONE:
            place += 1 if marker == 0xFF else 2
            continue
        (length,) = struct.unpack_from(">H", data, place + 2)
        # Other programs put segments of the same kind before this one.
        if marker == 0xE1 and data[place + 4 : place + 10] == b"Exif\0\0":
            orientation = orientation_of(data[place + 4 : place + 2 + length])
        elif marker in _FRAMES:
            height, width = struct.unpack_from(">HH", data, place + 5)
            frame = width, height, marker in _PROGRESSIVE
        place += 2 + length
        if marker == _SCAN:
            scans += 1
            following = _AFTER_SCAN.search(data, place)
            if frame is None or following is None or scans > _MOST_SCANS:
                return None
            place = following.start()
    return None


def _gif(data: bytes) -> ImageFacts | None:
    width, height, flags = struct.unpack_from("<HHB", data, 6)
    place = 13 + _colours(flags)
    frames = 0
    for _ in range(_MOST_PARTS):
        if frames == 2 or place >= len(data):
            break
        block = data[place]
        if block == 0x21:
            end = _after_blocks(data, place + 2)
        elif block == 0x2C and place + 9 < len(data):
            end = _after_blocks(data, place + 11 + _colours(data[place + 9]))
            frames += end is not None
        else:
            break
        if end is None:
            break
        place = end
    return ImageFacts(width, height, animated=frames > 1) if frames else None


def _colours(flags: int) -> int:
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def _after_blocks(data: bytes, place: int) -> int | None:
    """The place after a chain of blocks, each with its length before it, that an empty one ends."""
    while place < len(data):
        if not data[place]:
            return place + 1
        place += 1 + data[place]
    return None


def _webp(data: bytes) -> ImageFacts | None:
    (length,) = struct.unpack_from("<I", data, 4)
    if 8 + length > len(data):
        return None
    form = data[12:16]
    if form == b"VP8X":
        width = int.from_bytes(data[24:27], "little") + 1
        height = int.from_bytes(data[27:30], "little") + 1
        exif = _webp_chunk(data, b"EXIF") if data[20] & 0x08 else b""
        return ImageFacts(width, height, orientation_of(exif), animated=bool(data[20] & 0x02))
    if form == b"VP8L":
        (bits,) = struct.unpack_from("<I", data, 21)
        return ImageFacts((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
    if form == b"VP8 ":
        width, height = struct.unpack_from("<HH", data, 26)
        return ImageFacts(width & 0x3FFF, height & 0x3FFF)
    return None


def _webp_chunk(data: bytes, wanted: bytes) -> bytes:
    place = 12
    for _ in range(_MOST_PARTS):
        if place + 8 > len(data):
            break
        kind, length = struct.unpack_from("<4sI", data, place)
        if kind == wanted:
            return data[place + 8 : place + 8 + length]
        place += 8 + length + (length & 1)
    return b""
