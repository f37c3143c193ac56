"""How many tokens of output a request may ask for. Shared by the wire APIs.

Most endpoints refuse a request whose input and asked-for output together do not fit the context window; so
what the input leaves no room for is not asked for.

What the input needs is guessed from its size, rather too much than too little. That guess alone would take the
last third of a window for full. Where the model has counted its own last answer's input, that count and a guess
at what came after it is nearer; the lesser of the two counts, since the history may have been cut since.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from cantle_ai.content import ImageContent, TextContent
from cantle_ai.messages import AssistantMessage, Message
from cantle_ai.model import Model, StreamOptions

__all__ = ["output_limit", "room_for_output"]

_CHARACTERS_PER_TOKEN = 3.5
_MARGIN = 1.15
_TOKENS_PER_IMAGE = 1200
"""With the two above: what the input is taken to need, rather too much than too little, so that input and
output together stay inside the window. Text and code run at 3.5 to 4.5 characters a token."""
_LEAST = 4096
_LEAST_PART = 16
"""So many tokens are asked for in any case, or that part of a small window: enough to answer with. If there is no
room for them, the endpoint says that the input is too long, which can be mended; an answer of one word cannot."""


def output_limit(
    model: Model, options: StreamOptions, messages: Sequence[Message], size: int, images: int
) -> int:
    """The output to ask for, at least 1: what is wanted, less what the input leaves no room for.

    `messages` are those of the context, `size` is the bytes of the whole input without the data of its images,
    `images` their number.
    """
    wanted = model.max_tokens if options.max_tokens is None else options.max_tokens
    return max(1, min(wanted, room_for_output(model, messages, size, images)))


def room_for_output(model: Model, messages: Sequence[Message], size: int, images: int) -> int:
    """The tokens that the input leaves in the context window, as far as can be told; never too few to answer with."""
    window = model.context_window
    needed = min(_tokens(size, images), _tokens_by_count(model, messages))
    return max(math.floor(window - needed), min(_LEAST, window // _LEAST_PART), 1)


def _tokens(size: int, images: int) -> float:
    return size / _CHARACTERS_PER_TOKEN * _MARGIN + images * _TOKENS_PER_IMAGE


def _tokens_by_count(model: Model, messages: Sequence[Message]) -> float:
    """What the model counted for its last answer and before, and a guess at the rest. Infinite without a count."""
    size = images = 0
    for message in reversed(messages):
        if isinstance(message, AssistantMessage):
            if message.failed:
                continue  # it is not sent
            usage = message.usage
            counted = usage.input + usage.cache_read + usage.cache_write
            own = message.model == model.id and message.provider == model.provider
            return counted + usage.output + _tokens(size, images) if own and counted else math.inf
        if isinstance(message.content, str):
            size += len(message.content.encode("utf-8", "surrogatepass"))
            continue
        for block in message.content:
            if isinstance(block, TextContent):
                size += len(block.text.encode("utf-8", "surrogatepass"))
            images += isinstance(block, ImageContent)
    return math.inf
