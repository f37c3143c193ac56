"""An image that was read, as the blocks of a message: raw, for it is made to fit where it enters the conversation."""

from __future__ import annotations

from collections.abc import Callable

from cantle.images.kinds import ImageKind
from cantle.images.limits import ImageLimits
from cantle.images.preparation import examine, require_readable
from cantle_ai.content import ImageContent

__all__ = ["image_block"]


def image_block(
    kind: ImageKind, size: int, load: Callable[[], bytes]
) -> tuple[ImageContent, tuple[int, int] | None]:
    """The block, and width and height of the upright image where they are known. `load` gives the `size` bytes.

    Raises :class:`cantle.images.errors.UnusableImageError` for what is known by now not to be shown.
    """
    require_readable(kind, size)
    from base64 import b64encode

    data = load()
    facts = examine(kind, data, ImageLimits())
    block = ImageContent(b64encode(data).decode("ascii"), kind.mime_type)
    return block, None if facts is None else facts.upright_size
