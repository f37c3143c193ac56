"""Image formats, known by what their bytes say, whatever a file is called.

The four that models take are told by :mod:`cantle_ai.image_types`. The others:

BMP        "BM", length, four zero bytes
TIFF       "II" 2A 00 or "MM" 00 2A, "II" 2B 00 or "MM" 00 2B for large ones
icon       00 00 01 00, count, then a directory whose entries have a zero byte
JPEG 2000  a signature box "jP  ", or a bare code stream FF 4F FF 51
JPEG XL    a signature box "JXL ", or a bare code stream FF 0A
AVIF, HEIF a box "ftyp" whose brands name them
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from cantle_ai.image_types import image_type

__all__ = ["BMP", "GIF", "HEAD", "JPEG", "PNG", "WEBP", "ImageKind", "identify_image"]

HEAD: Final = 64
"""How many of the first bytes are looked at."""


class ImageKind(Struct, frozen=True):
    """A format: its name, its media type, whether models take it, and the part of Pillow that reads it."""

    name: str
    mime_type: str
    accepted: bool = False
    decoder: tuple[str, str] | None = None

    @property
    def described(self) -> str:
        """Such as `an AVIF image`."""
        return f"{'an' if self.name[0] in 'AEIOUaeiou' else 'a'} {self.name} image"


PNG = ImageKind("PNG", "image/png", True, ("PngImagePlugin", "PngImageFile"))
JPEG = ImageKind("JPEG", "image/jpeg", True, ("JpegImagePlugin", "JpegImageFile"))
GIF = ImageKind("GIF", "image/gif", True, ("GifImagePlugin", "GifImageFile"))
WEBP = ImageKind("WebP", "image/webp", True, ("WebPImagePlugin", "WebPImageFile"))
BMP = ImageKind("BMP", "image/bmp", decoder=("BmpImagePlugin", "BmpImageFile"))
TIFF = ImageKind("TIFF", "image/tiff", decoder=("TiffImagePlugin", "TiffImageFile"))
ICON = ImageKind("icon", "image/vnd.microsoft.icon", decoder=("IcoImagePlugin", "IcoImageFile"))
AVIF = ImageKind("AVIF", "image/avif", decoder=("AvifImagePlugin", "AvifImageFile"))
JPEG_2000 = ImageKind("JPEG 2000", "image/jp2", decoder=("Jpeg2KImagePlugin", "Jpeg2KImageFile"))
HEIF = ImageKind("HEIF", "image/heif")
JPEG_XL = ImageKind("JPEG XL", "image/jxl")

_ACCEPTED: Final = {kind.mime_type: kind for kind in (PNG, JPEG, GIF, WEBP)}
_AVIF_BRANDS: Final = frozenset({b"avif", b"avis"})
_HEIF_BRANDS: Final = frozenset({b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"})


def identify_image(head: bytes) -> ImageKind | None:
    """The image format that the first :data:`HEAD` bytes show, None for anything else."""
    accepted = image_type(head)
    if accepted is not None:
        kind = _ACCEPTED[accepted]
        # A text may begin like these two. Their images have zero bytes in the header.
        return None if kind in (GIF, WEBP) and b"\0" not in head else kind
    if head.startswith(b"BM"):
        return BMP if len(head) >= 26 and head[6:10] == b"\0\0\0\0" else None
    if head.startswith((b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")):
        return TIFF
    if head.startswith(b"\0\0\1\0"):
        return ICON if len(head) >= 22 and head[4:6] != b"\0\0" and head[9] == 0 else None
    if head.startswith((b"\0\0\0\x0cjP  \r\n\x87\n", b"\xff\x4f\xff\x51")):
        return JPEG_2000
    if head.startswith((b"\0\0\0\x0cJXL \r\n\x87\n", b"\xff\x0a")):
        return JPEG_XL
    return _by_brand(head) if head[4:8] == b"ftyp" else None


def _by_brand(head: bytes) -> ImageKind | None:
    """The format of a box file. Its first brand may be a general one; the compatible ones say more."""
    end = min(int.from_bytes(head[:4], "big"), len(head))
    brands = {head[8:12], *(head[place : place + 4] for place in range(16, end - 3, 4))}
    if brands & _AVIF_BRANDS:
        return AVIF
    return HEIF if brands & _HEIF_BRANDS else None
