"""Makes an image one that a model can be shown, or says why it can't be."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from cantle.images.errors import UnusableImageError
from cantle.images.exif import UPRIGHT
from cantle.images.kinds import HEAD, JPEG, PNG, ImageKind, identify_image
from cantle.images.limits import MAX_PIXELS, MAX_SIDE, MAX_SOURCE, ImageLimits
from cantle.images.pillow import Check, has_pillow
from cantle.images.structure import ImageFacts, facts_of

__all__ = ["PreparedImage", "examine", "prepare", "require_readable"]

_INSTALL: Final = "Install it: pip install 'cantle[images]'."


class PreparedImage(Struct, frozen=True):
    """An image that a model can be shown, and what it should know of it; `note` is empty where that is nothing."""

    data: bytes
    mime_type: str
    note: str = ""


def require_readable(kind: ImageKind, size: int) -> None:
    """Raise :class:`UnusableImageError` for what can't be shown whatever its bytes are, `size` of them."""
    if kind.decoder is None:
        raise UnusableImageError(
            f"is {kind.described}, which can't be shown", "Convert it to PNG or JPEG first."
        )
    if size > MAX_SOURCE:
        raise UnusableImageError(
            f"is {kind.described} of {size:,} bytes; at most {MAX_SOURCE:,} are read",
            "Make a smaller copy of it.",
        )
    if not kind.accepted and not has_pillow():
        raise UnusableImageError(
            f"is {kind.described}, which has to be converted to be shown, and that needs Pillow", _INSTALL
        )


def examine(kind: ImageKind, data: bytes, limits: ImageLimits) -> ImageFacts | None:
    """What is known of an image without decoding it; None for the kinds that have to be converted.

    Raises :class:`UnusableImageError` where that is enough to know that it can't be shown.
    """
    require_readable(kind, len(data))
    if not kind.accepted:
        return None
    facts = facts_of(kind, data)
    if facts is None:
        raise UnusableImageError(
            f"begins like {kind.described}, but is damaged or incomplete", "Make it anew."
        )
    size = facts.upright_size
    if facts.width * facts.height > MAX_PIXELS and (kind is not JPEG or facts.progressive):
        raise UnusableImageError(
            f"is {kind.described} of {size[0]}x{size[1]} pixels, too many to decode here",
            "Make a smaller copy of it.",
        )
    if not has_pillow() and (max(size) > MAX_SIDE or not limits.allow_bytes(len(data))):
        raise UnusableImageError(
            f"is {kind.described} of {size[0]}x{size[1]} pixels and {len(data):,} bytes, which is more than a "
            "model can be shown; making it smaller needs Pillow",
            _INSTALL,
        )
    return facts


def prepare(data: bytes, limits: ImageLimits, check: Check) -> PreparedImage:
    """The image in `data` as a model can be shown it: the same bytes, if they are within `limits` and upright.

    `check` is called while it works, and what that raises ends it. Raises :class:`UnusableImageError`.
    """
    kind = identify_image(data[:HEAD])
    if kind is None:
        raise UnusableImageError("is no image of a known format", "Give it as PNG or JPEG.")
    facts = examine(kind, data, limits)
    if not has_pillow():
        assert facts is not None
        return PreparedImage(data, kind.mime_type, _note_as_stored(facts))
    from cantle.images.drawing import draw, require_sound

    if facts is not None and _may_stay(kind, facts, limits) and limits.allow_bytes(len(data)):
        require_sound(kind, data, check)
        return PreparedImage(data, kind.mime_type, _note(_FIRST) if facts.animated else "")
    drawing = draw(kind, data, facts, limits, check)
    said = []
    if not kind.accepted:
        said.append(f"converted from {kind.name}")
    if drawing.first_of_several:
        said.append(_FIRST)
    if drawing.turned:
        said.append("turned upright as its EXIF data say")
    if drawing.size != drawing.original_size:
        said.append(_scale(drawing.size, drawing.original_size))
    return PreparedImage(drawing.data, drawing.mime_type, _note(*said) if said else "")


def _may_stay(kind: ImageKind, facts: ImageFacts, limits: ImageLimits) -> bool:
    # A PNG reader that knows no animation shows the first picture; of GIF and WebP some take none at all.
    still = not facts.animated or kind is PNG
    return still and facts.orientation == UPRIGHT and limits.allow_size(facts.upright_size)


_FIRST: Final = "the first of several frames"

_TO_UPRIGHT: Final = {
    2: "mirrored from left to right",
    3: "turned by 180 degrees",
    4: "mirrored from top to bottom",
    5: "mirrored from left to right and turned by 90 degrees counterclockwise",
    6: "turned by 90 degrees clockwise",
    7: "mirrored from left to right and turned by 90 degrees clockwise",
    8: "turned by 90 degrees counterclockwise",
}
"""What has to be done to an image to see it upright, by its EXIF orientation."""


def _note_as_stored(facts: ImageFacts) -> str:
    said = [_FIRST] if facts.animated else []
    if facts.orientation in _TO_UPRIGHT:
        said.append(f"to be upright it has to be {_TO_UPRIGHT[facts.orientation]}")
    return _note(*said) if said else ""


def _note(*said: str) -> str:
    return f"[Image: {', '.join(said)}.]"


def _scale(size: tuple[int, int], original: tuple[int, int]) -> str:
    across, down = original[0] / size[0], original[1] / size[1]
    # Of the two, the one of the longer side is less changed by rounding to whole pixels.
    if abs(across - down) <= 0.005 * max(across, down):
        factor = f"coordinates by {across if size[0] >= size[1] else down:.5g}"
    else:
        factor = f"x by {across:.5g} and y by {down:.5g}"
    return (
        f"shown at {size[0]}x{size[1]} of {original[0]}x{original[1]} pixels: "
        f"multiply {factor} to get those of the original"
    )
