"""How many tokens messages take: what the provider said where that still holds, and estimates for the rest.

A token is estimated as four bytes of UTF-8, which for plain English is four characters, and does not lose sight
of scripts whose letters take more. An image counts as :data:`IMAGE_TOKENS`, whatever its size. What no request
includes (failed answers, results that nobody asked for, excluded shell records) counts nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from cantle_agent.messages import AgentMessage, CustomMessage
from cantle_ai.codec import encode_json
from cantle_ai.content import Content, ImageContent, TextContent, ThinkingContent, ToolCall
from cantle_ai.history import replayable
from cantle_ai.messages import AssistantMessage, Message, UnknownMessage
from cantle_ai.usage import Usage

if TYPE_CHECKING:
    from cantle_session.projection import Projected

__all__ = [
    "IMAGE_TOKENS",
    "ContextSize",
    "context_size",
    "estimate_tokens",
    "estimate_tokens_of_text",
    "sent_messages",
    "shown",
    "size_of_sent",
    "usage_tokens",
]

_BYTES_PER_TOKEN = 4
IMAGE_TOKENS = 1200


class ContextSize(Struct, frozen=True):
    """How much of a window the context takes."""

    tokens: int
    """All of it: `reported + estimated`."""
    reported: int = 0
    """What the provider counted up to the answer `reported_by`: prompt, tools and messages. 0 without a fresh report."""
    estimated: int = 0
    """What came after that, or all, by estimate."""
    reported_by: str | None = None
    """The id of the entry whose answer brought the report."""


def estimate_tokens(message: AgentMessage) -> int:
    """The tokens of what a model is shown of `message`; 0 when it is shown nothing."""
    sent = shown(message)
    if sent is None:
        return 0
    content = sent.content
    size = _bytes(content) if isinstance(content, str) else sum(map(_block_size, content))
    return _tokens(size)


def estimate_tokens_of_text(text: str) -> int:
    """The tokens of a text."""
    return _tokens(_bytes(text))


def usage_tokens(usage: Usage) -> int:
    """The size of a context after the answer with this usage: its input, cached or not, and its output."""
    return usage.total_tokens or usage.input + usage.output + usage.cache_read + usage.cache_write


def context_size(projected: Sequence[Projected], *, prompt_tokens: int = 0) -> ContextSize:
    """The size of the context that `projected` makes (:meth:`cantle_session.session.Session.projected`).

    A report is fresh while neither a compaction nor an edit has changed what it was about. Without one, all is
    estimated, with `prompt_tokens` for what the system prompt and the tools take, which no message shows.
    """
    return size_of_sent(sent_messages(projected), prompt_tokens=prompt_tokens)


def size_of_sent(sent: Sequence[Projected], *, prompt_tokens: int = 0) -> ContextSize:
    """The same, of what :func:`sent_messages` gave."""
    estimated = 0
    for place in reversed(sent):
        message = place.message
        if isinstance(message, AssistantMessage) and not place.stale:
            reported = usage_tokens(message.usage)
            if reported > 0:
                return ContextSize(reported + estimated, reported, estimated, place.entry.id)
        estimated += estimate_tokens(message)
    return ContextSize(prompt_tokens + estimated, 0, prompt_tokens + estimated)


def sent_messages(projected: Sequence[Projected]) -> list[Projected]:
    """Those whose messages a request includes: not failed answers and their results, nor what no model is shown."""
    candidates: list[tuple[Projected, Message]] = []
    for place in projected:
        message = shown(place.message)
        if message is not None:
            candidates.append((place, message))
    included = {id(message) for message in replayable(message for _, message in candidates)}
    return [place for place, message in candidates if id(message) in included]


def shown(message: AgentMessage) -> Message | None:
    """What a model is shown of `message`, the same object each time; None when that is nothing."""
    if isinstance(message, UnknownMessage):
        return None
    return message.to_llm() if isinstance(message, CustomMessage) else message


def _block_size(block: Content) -> int:
    match block:
        case TextContent():
            return _bytes(block.text)
        case ThinkingContent():
            return _bytes(block.thinking)
        case ToolCall():
            return (
                len(encode_json(block.arguments)) + _bytes(block.name) + _bytes(block.invalid_arguments or "")
            )
        case ImageContent():
            return IMAGE_TOKENS * _BYTES_PER_TOKEN
    return 0


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _tokens(size: int) -> int:
    return -(-size // _BYTES_PER_TOKEN)
