"""What an agent remembers: the three roles a model knows, and whatever else an application adds.

A transcript may hold messages that no model is sent as they are: a record of a shell command, a summary,
a note for people. Such a message subclasses :class:`CustomMessage` and says what a model sees of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct, field

from cantle_ai.codec import JsonObject
from cantle_ai.content import TextContent, ToolCall
from cantle_ai.messages import (
    AssistantMessage,
    Message,
    ToolResultMessage,
    UnknownMessage,
    UserMessage,
    now_ms,
    replace,
)
from cantle_ai.usage import Usage, total_usage

__all__ = [
    "INTERRUPTED",
    "AgentMessage",
    "CustomMessage",
    "answered",
    "convert_to_llm",
    "ends_in_answer",
    "unanswered",
    "usage_of",
]

INTERRUPTED = "The call was interrupted before it had a result. What it did until then is unknown."
"""What a model reads as the result of a call whose own result was never recorded."""


class CustomMessage(Struct, frozen=True, kw_only=True):
    """Base of an application's own messages. Subclasses give `role`, `to_json` and, if a model sees them, `to_llm`."""

    timestamp: int = field(default_factory=now_ms)
    wire: dict[Any, bytes] = field(default_factory=dict)

    @property
    def role(self) -> str:
        raise NotImplementedError

    def to_json(self) -> JsonObject:
        raise NotImplementedError

    def to_llm(self) -> Message | None:
        """What a model is sent for it; None leaves it out. Must give the same each time, or caches are lost."""
        return None


AgentMessage: TypeAlias = UserMessage | AssistantMessage | ToolResultMessage | CustomMessage | UnknownMessage


def convert_to_llm(messages: Sequence[AgentMessage]) -> list[Message]:
    """Agent messages as a model is sent them: custom ones by their `to_llm`, unknown ones not at all."""
    converted: list[Message] = []
    for message in messages:
        match message:
            case UserMessage() | AssistantMessage() | ToolResultMessage():
                converted.append(message)
            case CustomMessage():
                if (shown := message.to_llm()) is not None:
                    converted.append(shown)
            case UnknownMessage():
                pass
    return converted


def answered(messages: Sequence[Message]) -> list[Message]:
    """`messages` as every provider accepts them: each call has its one result, right after the answer with the call.

    A call without a result gets one that says so; a result without its call is left out; what came between a
    call and its result follows them. An answer that failed or was given up is its text alone, for its calls
    never ran and its reasoning has no end; without text it is left out. A whole transcript comes back as it is.
    """
    fit: list[Message] = []
    calls: list[ToolCall] = []
    between: list[Message] = []
    for message in messages:
        match message:
            case AssistantMessage():
                _settle(fit, calls, between)
                kept = _text_only(message) if message.stop_reason in ("error", "aborted") else message
                if kept is not None:
                    fit.append(kept)
                    calls = kept.tool_calls
            case ToolResultMessage():
                for place, call in enumerate(calls):
                    if call.id == message.tool_call_id:
                        fit.append(message)
                        del calls[place]
                        break
                if not calls:
                    _settle(fit, calls, between)
            case UserMessage():
                (between if calls else fit).append(message)
    _settle(fit, calls, between)
    return fit


def unanswered(
    messages: Sequence[AgentMessage], known: Mapping[str, ToolResultMessage] | None = None
) -> list[ToolResultMessage]:
    """The results that the last answer's calls still lack: those in `known` by call id, else made up as interrupted.

    Empty when nothing is missing, and for an answer that failed or was given up: its calls never counted.
    """
    have: set[str] = set()
    for message in reversed(messages):
        if isinstance(message, ToolResultMessage):
            have.add(message.tool_call_id)
        elif isinstance(message, AssistantMessage):
            if message.stop_reason in ("error", "aborted"):
                return []
            missing = [call for call in message.tool_calls if call.id not in have]
            return [(known or {}).get(call.id) or _interrupted(call) for call in missing]
    return []


def ends_in_answer(messages: Sequence[AgentMessage]) -> bool:
    """Whether the last message that a model is shown is an answer to which nothing is missing."""
    for message in reversed(messages):
        match message:
            case AssistantMessage():
                return not unanswered(messages)
            case UserMessage() | ToolResultMessage():
                return False
            case CustomMessage() if message.to_llm() is not None:
                return False
    return False


def usage_of(messages: Iterable[AgentMessage]) -> Usage:
    """What `messages` took in all: the answers, and what tools report of model work they did themselves."""
    return total_usage(
        message.usage
        for message in messages
        if isinstance(message, AssistantMessage | ToolResultMessage) and message.usage is not None
    )


def _settle(fit: list[Message], calls: list[ToolCall], between: list[Message]) -> None:
    fit.extend(_interrupted(call) for call in calls)
    fit.extend(between)
    calls.clear()
    between.clear()


def _interrupted(call: ToolCall) -> ToolResultMessage:
    return ToolResultMessage(call.id, call.name, [TextContent(INTERRUPTED)], is_error=True)


def _text_only(message: AssistantMessage) -> AssistantMessage | None:
    texts = [block for block in message.content if isinstance(block, TextContent) and block.text.strip()]
    if len(texts) == len(message.content) and texts:
        return message
    return replace(message, content=list(texts)) if texts else None
