"""Which messages of a conversation a request can carry, in which order, and with which of their images.

A history records what happened; a provider accepts only what is consistent: each tool call followed by its
result, no result without its call, no answer that broke off, no image for a model that takes none. This
projection makes the one from the other for each request. The stored messages are never changed, so an image is
there again when a model with eyes is asked next; and one that no provider would take, in a file that another
program wrote, costs a note instead of every later request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from cantle_ai.content import ImageContent, TextContent, UserContent
from cantle_ai.messages import AssistantMessage, Message, ToolResultMessage

if TYPE_CHECKING:
    from cantle_ai.model import Model, StreamOptions

__all__ = ["INTERRUPTED", "images_left_out", "replayable", "shown_blocks"]

INTERRUPTED = "The call was interrupted before it gave a result."
"""What a call without a result is answered with."""

_NO_EYES: Final = "(an image was left out: this model reads text only)"
_TURNED_OFF: Final = "(an image was left out: sending images is turned off)"
_NOT_AN_IMAGE: Final = "(an image was left out: its data are not a PNG, JPEG, GIF or WebP image)"


def replayable(messages: Iterable[Message]) -> Iterator[Message]:
    """The messages to send.

    Answers that failed or were aborted are left out, and with them the results of their calls. Results come
    directly after the answer that asked for them, ahead of what was said meanwhile; a call without one gets
    an error result that says :data:`INTERRUPTED`; results that no call asked for are left out.
    """
    open_calls: dict[str, str] = {}
    results: list[Message] = []
    said: list[Message] = []
    for message in messages:
        match message:
            case AssistantMessage():
                yield from _batch(open_calls, results, said)
                open_calls, results, said = {}, [], []
                if not message.failed and message.stop_reason != "pending":
                    open_calls = {call.id: call.name for call in message.tool_calls}
                    yield message
            case ToolResultMessage():
                if open_calls.pop(message.tool_call_id, None) is not None:
                    results.append(message)
            case _:
                said.append(message)
    yield from _batch(open_calls, results, said)


def _batch(open_calls: dict[str, str], results: list[Message], said: list[Message]) -> Iterator[Message]:
    yield from results
    for call_id, name in open_calls.items():
        yield ToolResultMessage(call_id, name, [TextContent(INTERRUPTED)], is_error=True, timestamp=0)
    yield from said


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
