"""What an agent remembers: the three roles a model knows, and whatever else an application adds.

A transcript may hold messages that no model is sent as they are: a record of a shell command, a summary,
a note for people. Such a message subclasses :class:`CustomMessage` and says what a model sees of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from msgspec import Struct, field

from cantle_ai.codec import JsonObject
from cantle_ai.messages import (
    AssistantMessage,
    Message,
    ToolResultMessage,
    UnknownMessage,
    UserMessage,
    now_ms,
)

__all__ = ["AgentMessage", "CustomMessage", "convert_to_llm"]


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
