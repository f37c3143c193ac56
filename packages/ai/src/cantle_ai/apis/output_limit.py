"""How many tokens of output a request may ask for. Shared by the wire APIs.

Most endpoints refuse a request whose input and asked-for output together do not fit the context window; so
what the input leaves no room for is not asked for.
"""

from __future__ import annotations

import math

from cantle_ai.model import Model, StreamOptions

__all__ = ["output_limit", "room_for_output"]

_CHARACTERS_PER_TOKEN = 3.5
_MARGIN = 1.15
_TOKENS_PER_IMAGE = 1200
"""With the two above: what the input is taken to need, rather too much than too little, so that input and
output together stay inside the window. Text and code run at 3.5 to 4.5 characters a token."""


def output_limit(model: Model, options: StreamOptions, size: int, images: int) -> int:
    """The output to ask for, at least 1: what is wanted, less what the input leaves no room for.

    `size` is the bytes of the input without the data of its images, `images` their number.
    """
    wanted = model.max_tokens if options.max_tokens is None else options.max_tokens
    return max(1, min(wanted, room_for_output(model, size, images)))


def room_for_output(model: Model, size: int, images: int) -> int:
    """The tokens that the input leaves in the context window. Not positive when there are none."""
    needed = math.ceil(size / _CHARACTERS_PER_TOKEN * _MARGIN) + images * _TOKENS_PER_IMAGE
    return model.context_window - needed
