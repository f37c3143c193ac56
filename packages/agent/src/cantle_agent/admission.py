"""How images enter the transcript: as a model can take them, or as a text that says why there is none.

A block that no provider accepts would make every later request of the conversation fail. So it is stopped here,
once, whoever brought it: a prompt, a queued message, a tool, a hook on its result.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_

from cantle_agent.config import LoopConfig
from cantle_agent.errors import error_text
from cantle_agent.messages import AgentMessage
from cantle_agent.patience import patiently
from cantle_ai.abort import AbortSignal
from cantle_ai.content import ImageContent, TextContent, UnknownContent, UserContent
from cantle_ai.messages import ToolResultMessage, UserMessage, replace
from cantle_ai.model import Model

__all__ = ["admit_content", "admit_message", "check_images"]


async def admit_message(message: AgentMessage, config: LoopConfig, signal: AbortSignal) -> AgentMessage:
    """`message` as it enters; the same object where nothing about it changes.

    An abort does not take away what somebody said: the hook isn't told of it, and has its grace to finish.
    """
    if not isinstance(message, UserMessage | ToolResultMessage) or isinstance(message.content, str):
        return message
    if not _holds_images(message.content):
        return message
    content = await _admitted(message.content, config, AbortSignal(), signal)
    same = len(content) == len(message.content) and all(map(is_, content, message.content))
    return message if same else replace(message, content=content)


async def admit_content(
    content: Sequence[UserContent], config: LoopConfig, signal: AbortSignal
) -> Sequence[UserContent]:
    """The content of a tool's result as it enters; the same object where there is no image."""
    if not _holds_images(content):
        return content
    return await _admitted(content, config, signal, signal)


def check_images(content: Sequence[UserContent], model: Model, signal: AbortSignal) -> list[UserContent]:
    """What is done where no other `admit_images` is given: nothing enters but PNG, JPEG, GIF and WebP images.

    Their media type becomes the one that the data show.
    """
    return [_checked(block) if isinstance(block, ImageContent) else block for block in content]


def _holds_images(content: Sequence[UserContent]) -> bool:
    return any(isinstance(block, ImageContent) for block in content)


def _checked(block: ImageContent) -> UserContent:
    kind = block.detected_type
    if kind is None:
        return TextContent(
            "[An image was left out: its data are not a PNG, JPEG, GIF or WebP image in base64.]"
        )
    return block if kind == block.mime_type else ImageContent(block.data, kind, extra=block.extra)


async def _admitted(
    content: Sequence[UserContent], config: LoopConfig, told: AbortSignal, signal: AbortSignal
) -> Sequence[UserContent]:
    """`told` is what the hook sees of an abort, `signal` what bounds its time."""
    admit = config.admit_images or check_images
    try:
        admitted = list(await patiently(admit(content, config.model, told), signal, config.grace))
        for block in admitted:
            if not isinstance(block, TextContent | ImageContent | UnknownContent):
                raise TypeError(f"admit_images returned {type(block).__name__}, not text or an image")
        return admitted
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a hook's failure never lets in what it was to check
        note = TextContent(f"[An image was left out: {error_text(error)}]")
        return [note if isinstance(block, ImageContent) else block for block in content]
