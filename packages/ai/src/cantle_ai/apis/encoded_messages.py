"""The messages of a request in a wire API's bytes: encoded once, and kept with the message that they are of.

What a message becomes depends on it, on its target, and on what stands before it (:mod:`cantle_ai.history`). So
its bytes are good for every later request to the same target, and a long conversation costs what is new in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from cantle_ai.codec import JsonObject, wire_json
from cantle_ai.history import Turn
from cantle_ai.messages import AssistantMessage

__all__ = ["EncodedMessages", "kept_bytes"]


class EncodedMessages:
    """All messages of a request, in order, and what of them is images, which cost other than their bytes."""

    __slots__ = ("image_bytes", "images", "parts")

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.images = 0
        """How many images there are."""
        self.image_bytes = 0
        """How many bytes of the parts are image data."""

    def count_images(self, turn: Turn) -> bool:
        """Count what the turn brings; those of an answer are no input. Returns whether there are any."""
        images = () if isinstance(turn.message, AssistantMessage) else turn.images
        for image in images:
            self.images += 1
            self.image_bytes += len(image.data)
        return bool(images)


def kept_bytes(turn: Turn, key: object, encode: Callable[[Turn], Iterable[JsonObject]]) -> bytes:
    """The objects that `encode` makes of a turn, joined by commas; made once for each `key` and form of the turn.

    `key` says all that they depend on beside the turn: the API, the model as far as it counts, its quirks.
    """
    wire, whole_key = turn.message.wire, (key, turn.key)
    part = wire.get(whole_key)
    if part is None:
        part = wire[whole_key] = b",".join([wire_json(each) for each in encode(turn)])
    return part
