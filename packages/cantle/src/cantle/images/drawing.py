"""Draws an image anew, so that a model can be shown it: decoded, small enough, upright, as PNG or JPEG."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from cantle.images.errors import UnusableImageError
from cantle.images.exif import UPRIGHT, orientation_of, turned_sideways
from cantle.images.kinds import AVIF, JPEG, PNG, ImageKind
from cantle.images.limits import MAX_PIXELS, MAX_SIDE, ImageLimits
from cantle.images.pillow import Check, Picture, blank, lanczos, opened, saved, turned
from cantle.images.structure import ImageFacts

__all__ = ["Drawing", "draw", "require_sound"]

_LOSSY: Final = (JPEG, AVIF)
"""Kinds of which a PNG image would always be larger."""
_QUALITIES: Final = (60, 40)
"""Of JPEG, after the one that is wished for."""
_STEP: Final = 0.75
_STEPS: Final = 12


class Drawing(Struct, frozen=True):
    """An image drawn anew. Sizes are those of the upright image."""

    data: bytes
    mime_type: str
    size: tuple[int, int]
    original_size: tuple[int, int]
    turned: bool
    first_of_several: bool


def require_sound(kind: ImageKind, data: bytes, check: Check) -> None:
    """Raise :class:`UnusableImageError` unless all of the image can be decoded."""
    with opened(kind, data, check) as (picture, _):
        _require_room(kind, picture)
        picture.load()


def draw(
    kind: ImageKind, data: bytes, facts: ImageFacts | None, limits: ImageLimits, check: Check
) -> Drawing:
    """The image in `data` within `limits`. `facts` are None for the kinds that no model takes.

    Raises :class:`UnusableImageError` for data that can't be decoded, and for what can't be made to fit.
    """
    with opened(kind, data, check) as (picture, still_wanted):
        stored = picture.size
        several = facts.animated if facts is not None else bool(getattr(picture, "is_animated", False))
        orientation = _orientation(kind, picture) if facts is None else facts.orientation
        sideways = turned_sideways(orientation)
        target = _fitting((stored[1], stored[0]) if sideways else stored, kind, limits)
        lying = (target[1], target[0]) if sideways else target
        if kind is JPEG:
            # The decoder leaves out detail by itself, eight times on each side at most.
            picture.draft(None, (lying[0] * 2, lying[1] * 2))
        _require_room(kind, picture)
        picture.load()
        still_wanted()
        plain = _plain(picture) if picture.size == lying else _resized(picture, lying, still_wanted)
        plain = turned(_without_idle_transparency(plain), orientation)
        # Encoders would write along what it was stored with: comments, and the profile of other colours.
        plain.info.clear()
        still_wanted()
        encoded = _encoded(plain, limits, lossless=kind not in _LOSSY, check=still_wanted)
    if encoded is None:
        raise UnusableImageError(
            f"is {kind.described} that stays above {limits.max_bytes:,} bytes of base64 however it is encoded",
            _SHRINK_OFF if not limits.shrink else "Make a smaller copy of it.",
        )
    made, mime_type, size = encoded
    original = (stored[1], stored[0]) if sideways else stored
    return Drawing(made, mime_type, size, original, orientation != UPRIGHT, several)


_SHRINK_OFF: Final = "Make a smaller copy of it, or turn the setting images.autoResize on."


def _orientation(kind: ImageKind, picture: Picture) -> int:
    """How an image lies of a kind that has to be converted. Pillow turns TIFF images by itself."""
    exif = picture.info.get("exif") if kind is AVIF else None
    return orientation_of(exif) if isinstance(exif, bytes) else UPRIGHT


def _fitting(size: tuple[int, int], kind: ImageKind, limits: ImageLimits) -> tuple[int, int]:
    """The size to draw an upright image of `size` in."""
    if limits.allow_size(size):
        return size
    if not limits.shrink:
        raise UnusableImageError(
            f"is {kind.described} of {size[0]}x{size[1]} pixels; at most {MAX_SIDE} a side can be shown",
            _SHRINK_OFF,
        )
    width, height = size
    scale = min(limits.max_width / width, limits.max_height / height)
    return _scaled(size, scale)


def _scaled(size: tuple[int, int], scale: float) -> tuple[int, int]:
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))


def _require_room(kind: ImageKind, picture: Picture) -> None:
    """Raise :class:`UnusableImageError` for an image that would fill the memory."""
    width, height = picture.size
    if width * height > MAX_PIXELS:
        raise UnusableImageError(
            f"is {kind.described} of {width}x{height} pixels, too many to decode here",
            "Make a smaller copy of it.",
        )


def _resized(picture: Picture, size: tuple[int, int], check: Check) -> Picture:
    """The picture plain and in `size`. It is done in strips: converted, large ones would fill the memory twice."""
    if picture.mode in ("I", "F"):
        picture = _plain(picture)  # what is black and what white shows in all of it only
    width, height = picture.size
    scale = height / size[1]
    rows = max(1, int(_STRIP / width / scale))
    around = _LANCZOS_REACH * max(scale, 1.0) + 1
    made: Picture | None = None
    for top in range(0, size[1], rows):
        check()
        count = min(rows, size[1] - top)
        above, below = top * scale, min((top + count) * scale, height)
        first, last = max(0, int(above - around)), min(height, int(below + around) + 1)
        strip = _plain(picture.crop((0, first, width, last)))
        box = (0.0, above - first, float(width), below - first)
        strip = strip.resize((size[0], count), lanczos(), box)
        made = made or blank(strip.mode, size)
        made.paste(strip, (0, top))
    assert made is not None
    return made


_STRIP: Final = 4_000_000
"""Pixels, about."""
_LANCZOS_REACH: Final = 3
"""Pixels of the result on each side, that have a share in one."""


def _without_idle_transparency(picture: Picture) -> Picture:
    if picture.mode == "RGBA" and picture.getextrema()[-1][0] == 255:
        return picture.convert("RGB")
    return picture


def _plain(picture: Picture) -> Picture:
    """The picture in grey (L), colours (RGB), or colours with transparency (RGBA)."""
    if picture.has_transparency_data:
        return picture if picture.mode == "RGBA" else picture.convert("RGBA")
    if picture.mode in ("L", "RGB"):
        return picture
    if picture.mode == "1":
        return picture.convert("L")
    if picture.mode.startswith("I;16"):
        return picture.convert("I").point(lambda value: value * (1 / 256)).convert("L")
    if picture.mode in ("I", "F"):
        low, high = picture.getextrema()
        scale = 255 / ((high - low) or 1)
        return picture.point(lambda value: value * scale + -low * scale).convert("L")
    return picture.convert("RGB")


def _encoded(
    picture: Picture, limits: ImageLimits, *, lossless: bool, check: Check
) -> tuple[bytes, str, tuple[int, int]] | None:
    """The best encoding that is within the limit of bytes, as large as possible; None when there is none."""
    for step in range(_STEPS if limits.shrink else 1):
        size = _scaled(picture.size, _STEP**step)
        smaller = picture if size == picture.size else picture.resize(size, lanczos())
        for data, mime_type in _candidates(smaller, limits.jpeg_quality, lossless):
            check()
            if limits.allow_bytes(len(data)):
                return data, mime_type, size
    return None


def _candidates(picture: Picture, quality: int, lossless: bool) -> Iterator[tuple[bytes, str]]:
    """Encodings, the best first: what keeps transparency, else the smaller of PNG and JPEG, then worse JPEG."""
    if picture.mode == "RGBA":
        yield saved(picture, "PNG"), PNG.mime_type
        white = blank("RGB", picture.size, "white")
        white.paste(picture, None, picture.getchannel("A"))
        picture = white
        lossless = False
    jpeg = saved(picture, "JPEG", quality=quality)
    if lossless and len(png := saved(picture, "PNG")) <= len(jpeg):
        yield png, PNG.mime_type
    yield jpeg, JPEG.mime_type
    for worse in _QUALITIES:
        if worse < quality:
            yield saved(picture, "JPEG", quality=worse), JPEG.mime_type
