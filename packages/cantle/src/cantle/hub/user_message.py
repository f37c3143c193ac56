"""What a user says, as a message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from cantle.errors import UserError
from cantle_ai.content import ImageContent, TextContent, UnknownContent, UserContent
from cantle_ai.messages import UserMessage

__all__ = ["PromptContent", "user_message"]

PromptContent: TypeAlias = "str | Sequence[UserContent]"
"""Text, or blocks of text and images."""


def user_message(content: PromptContent, images: Sequence[ImageContent] = ()) -> UserMessage:
    """A user's message as blocks. Raises :class:`cantle.errors.UserError` when there is nothing in it.

    Raises TypeError for what is neither text nor blocks.
    """
    if not isinstance(content, Sequence):
        raise TypeError(f"A prompt is text or a list of blocks, not {type(content).__name__}.")
    blocks: list[UserContent] = []
    if not isinstance(content, str):
        blocks.extend(content)
    elif content.strip():
        blocks.append(TextContent(content))
    blocks.extend(images)
    for block in blocks:
        if not isinstance(block, TextContent | ImageContent | UnknownContent):
            raise TypeError(
                f"A prompt's blocks are TextContent and ImageContent, not {type(block).__name__}."
            )
    if not blocks:
        raise UserError("The prompt is empty.", "Say what to do.")
    return UserMessage(blocks)
