"""What an agent remembers: the three roles a model knows, and whatever else an application adds.

A transcript may hold messages that no model is sent as they are: a record of a shell command, a summary,
a note for people. Such a message subclasses :class:`CustomMessage` and says what a model sees of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct, field

from cantle_ai.codec import JsonObject
from cantle_ai.content import TextContent, ToolCall
from cantle_ai.history import INTERRUPTED
from cantle_ai.messages import (
    AssistantMessage,
    Message,
    ToolResultMessage,
    UnknownMessage,
    UserMessage,
    now_ms,
)
from cantle_ai.usage import Usage, total_usage

__all__ = [
    "AgentMessage",
    "CustomMessage",
    "convert_to_llm",
    "last_shown",
    "unanswered",
    "usage_of",
]


class CustomMessage(Struct, frozen=True, kw_only=True):
    """Base of an application's own messages. Subclasses give `role`, `to_json` and, if a model sees them, `to_llm`."""

    timestamp: int = field(default_factory=now_ms)
    wire: dict[object, bytes] = field(default_factory=dict)

    @property
    def role(self) -> str:
        raise NotImplementedError

    @property
    def text(self) -> str:
        """The text of what a model sees of it; empty when that is nothing."""
        shown = self.to_llm()
        return "" if shown is None else shown.text

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
            if message.failed:
                return []
            missing = [call for call in message.tool_calls if call.id not in have]
            return [(known or {}).get(call.id) or _interrupted(call) for call in missing]
    return []


def last_shown(messages: Sequence[AgentMessage]) -> AgentMessage | None:
    """The last message that a model is shown, or an answer that failed; None when it is shown nothing.

    A result is shown where the answer before it asked for it, which a change of that answer may have taken back.
    """
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if isinstance(message, ToolResultMessage):
            if _asked_for(messages, place):
                return message
        elif isinstance(message, UserMessage | AssistantMessage) or (
            isinstance(message, CustomMessage) and message.to_llm() is not None
        ):
            return message
    return None


def _asked_for(messages: Sequence[AgentMessage], place: int) -> bool:
    """Whether the answer before the result there has its call."""
    result = messages[place]
    while place > 0 and isinstance(result, ToolResultMessage):
        place -= 1
        if isinstance(answer := messages[place], AssistantMessage):
            return any(call.id == result.tool_call_id for call in answer.tool_calls)
    return False


def usage_of(messages: Iterable[AgentMessage]) -> Usage:
    """What `messages` took in all: the answers, and what tools report of model work they did themselves."""
    return total_usage(
        message.usage
        for message in messages
        if isinstance(message, AssistantMessage | ToolResultMessage) and message.usage is not None
    )


def _interrupted(call: ToolCall) -> ToolResultMessage:
    return ToolResultMessage(call.id, call.name, [TextContent(INTERRUPTED)], is_error=True)
