"""How large an image may be, for a model and at all.

A model's own limits stand in its entry, as the reference writes them:

    "inputLimits": {"images": {"resize": {"maxWidth", "maxHeight", "maxBytes", "jpegQuality"}}}
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from cantle_ai.codec import Json, JsonObject
from cantle_ai.model import Model

__all__ = ["MAX_PIXELS", "MAX_SIDE", "MAX_SOURCE", "ImageLimits", "limits_of"]

MAX_SIDE: Final = 8_000
"""Pixels; the strictest vendors refuse wider or higher images. It counts where nothing is shrunk."""

MAX_SOURCE: Final = 64 << 20
"""Bytes of an image before anything is done with it."""

MAX_PIXELS: Final = 50_000_000
"""Of what has to be decoded at once: 200 MB at four bytes each; decoders of WebP and JPEG 2000 take several times that.

JPEG is decoded smaller, up to eight times a side."""


class ImageLimits(Struct, frozen=True, kw_only=True):
    """What an image is shrunk to. The defaults are the reference's."""

    max_width: int = 2000
    max_height: int = 2000
    max_bytes: int = 4_718_592
    """Of base64, as it is sent: 4.5 MB. The strictest vendors take 5 MB, and a request has other parts."""
    jpeg_quality: int = 80
    shrink: bool = True
    """Whether size may change. Otherwise :data:`MAX_SIDE` and `max_bytes` decide whether it is shown at all."""

    def allow_size(self, size: tuple[int, int]) -> bool:
        """Whether an image of `size` pixels may stay as it is."""
        width, height = size
        if not self.shrink:
            return max(size) <= MAX_SIDE
        return width <= self.max_width and height <= self.max_height

    def allow_bytes(self, count: int) -> bool:
        """Whether that many bytes are few enough in base64."""
        return (count + 2) // 3 * 4 <= self.max_bytes


def limits_of(model: Model, *, shrink: bool = True) -> ImageLimits:
    """The limits of `model`; what its entry does not say, or says in a way that makes no sense, is the default."""
    given = _part(_part(model.input_limits, "images"), "resize")
    default = ImageLimits()
    return ImageLimits(
        max_width=_count(given, "maxWidth", default.max_width),
        max_height=_count(given, "maxHeight", default.max_height),
        max_bytes=_count(given, "maxBytes", default.max_bytes),
        jpeg_quality=min(_count(given, "jpegQuality", default.jpeg_quality), 95),
        shrink=shrink,
    )


def _part(given: JsonObject, name: str) -> JsonObject:
    part = given.get(name)
    return part if isinstance(part, dict) else {}


def _count(given: JsonObject, name: str, default: int) -> int:
    value: Json = given.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else default
