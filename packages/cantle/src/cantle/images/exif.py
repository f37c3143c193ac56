"""How an image lies, as its EXIF data say.

EXIF data are a TIFF file: "II" or "MM" for the byte order, 42, the offset of a directory; the directory has a
count and entries of twelve bytes: tag, type, count, value. Tag 0x0112 is the orientation.
"""

from __future__ import annotations

import struct
from typing import Final

__all__ = ["UPRIGHT", "orientation_of", "turned_sideways"]

UPRIGHT: Final = 1
_ORIENTATION: Final = 0x0112
_SHORT: Final = 3
_PREFIX: Final = b"Exif\0\0"


def orientation_of(exif: bytes) -> int:
    """1 to 8 as EXIF numbers them; :data:`UPRIGHT` where the data say nothing or make no sense."""
    data = exif.removeprefix(_PREFIX)
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(data[:4])
    if order is None:
        return UPRIGHT
    try:
        (directory,) = struct.unpack_from(f"{order}I", data, 4)
        (count,) = struct.unpack_from(f"{order}H", data, directory)
        for place in range(count):
            tag, kind, _, value = struct.unpack_from(f"{order}HHIH", data, directory + 2 + 12 * place)
            if tag == _ORIENTATION:
                return value if kind == _SHORT and 1 <= value <= 8 else UPRIGHT
    except struct.error:
        pass
    return UPRIGHT


def turned_sideways(orientation: int) -> bool:
    """Whether width and height change places when the image is put upright."""
    return orientation >= 5
