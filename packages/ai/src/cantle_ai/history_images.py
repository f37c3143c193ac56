"""Which images of a message a request carries, and what stands for those that it does not.

A model without eyes gets a note for each, and so does one to whom sending images is turned off. An image that no
provider would take, in a file that another program wrote, costs a note as well, instead of every later request.
The stored message is never changed: a model with eyes that is asked next sees the image again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from cantle_ai.content import ImageContent, TextContent, UserContent

if TYPE_CHECKING:
    from cantle_ai.model import Model, StreamOptions

__all__ = ["images_left_out", "shown_blocks"]

_NO_EYES: Final = "(an image was left out: this model reads text only)"
_TURNED_OFF: Final = "(an image was left out: sending images is turned off)"
_NOT_AN_IMAGE: Final = "(an image was left out: its data are not a PNG, JPEG, GIF or WebP image)"


def images_left_out(model: Model, options: StreamOptions) -> str | None:
    """What stands for every image in a request; None when they are sent."""
    if not options.images:
        return _TURNED_OFF
    return None if "image" in model.input else _NO_EYES


def shown_blocks(blocks: Sequence[UserContent], left_out: str | None) -> list[TextContent | ImageContent]:
    """The blocks to send, in order. `left_out` is :func:`images_left_out`; notes that follow each other are one.

    Every image in it has a `detected_type`.
    """
    shown: list[TextContent | ImageContent] = []
    noted = ""
    for block in blocks:
        if isinstance(block, ImageContent):
            note = left_out or ("" if block.detected_type else _NOT_AN_IMAGE)
            if not note:
                shown.append(block)
            elif note != noted:
                shown.append(TextContent(note))
            noted = note
        elif isinstance(block, TextContent):
            shown.append(block)
            noted = ""
    return shown
