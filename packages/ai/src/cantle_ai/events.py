"""The twelve events in which an answer arrives.

    start
    text_start      text_delta      text_end
    thinking_start  thinking_delta  thinking_end
    toolcall_start  toolcall_delta  toolcall_end
    done | error

Every event but the last two carries `partial`, the one message that grows as they come; every block
event carries `content_index`, the block's place in it. `done` and `error` carry the final message.
The rules of their order are checked by :class:`cantle_ai.testing.RuleChecker`.
"""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

from msgspec import Struct

from cantle_ai.content import ToolCall
from cantle_ai.messages import AssistantMessage, StopReason

__all__ = [
    "AssistantMessageEvent",
    "Done",
    "Error",
    "Start",
    "TextDelta",
    "TextEnd",
    "TextStart",
    "ThinkingDelta",
    "ThinkingEnd",
    "ThinkingStart",
    "ToolCallDelta",
    "ToolCallEnd",
    "ToolCallStart",
]


class Start(Struct, frozen=True, gc=False):
    """The answer has begun."""

    type: ClassVar[Literal["start"]] = "start"
    partial: AssistantMessage


class TextStart(Struct, frozen=True, gc=False):
    """A text block has begun."""

    type: ClassVar[Literal["text_start"]] = "text_start"
    content_index: int
    partial: AssistantMessage


class TextDelta(Struct, frozen=True, gc=False):
    """More of a text block."""

    type: ClassVar[Literal["text_delta"]] = "text_delta"
    content_index: int
    delta: str
    partial: AssistantMessage


class TextEnd(Struct, frozen=True, gc=False):
    """A text block is whole: `content` is all of it."""

    type: ClassVar[Literal["text_end"]] = "text_end"
    content_index: int
    content: str
    partial: AssistantMessage


class ThinkingStart(Struct, frozen=True, gc=False):
    """A thinking block has begun."""

    type: ClassVar[Literal["thinking_start"]] = "thinking_start"
    content_index: int
    partial: AssistantMessage


class ThinkingDelta(Struct, frozen=True, gc=False):
    """More of a thinking block."""

    type: ClassVar[Literal["thinking_delta"]] = "thinking_delta"
    content_index: int
    delta: str
    partial: AssistantMessage


class ThinkingEnd(Struct, frozen=True, gc=False):
    """A thinking block is whole: `content` is all of it."""

    type: ClassVar[Literal["thinking_end"]] = "thinking_end"
    content_index: int
    content: str
    partial: AssistantMessage


class ToolCallStart(Struct, frozen=True, gc=False):
    """A tool call has begun; its id and name are known."""

    type: ClassVar[Literal["toolcall_start"]] = "toolcall_start"
    content_index: int
    id: str
    tool_name: str
    partial: AssistantMessage


class ToolCallDelta(Struct, frozen=True, gc=False):
    """More of a tool call's arguments, as JSON text."""

    type: ClassVar[Literal["toolcall_delta"]] = "toolcall_delta"
    content_index: int
    delta: str
    partial: AssistantMessage


class ToolCallEnd(Struct, frozen=True, gc=False):
    """A tool call is whole, its arguments parsed."""

    type: ClassVar[Literal["toolcall_end"]] = "toolcall_end"
    content_index: int
    tool_call: ToolCall
    partial: AssistantMessage


class Done(Struct, frozen=True, gc=False):
    """The answer is whole. `reason` is its stop reason: `stop`, `length`, `toolUse` or `deferred`."""

    type: ClassVar[Literal["done"]] = "done"
    reason: StopReason
    message: AssistantMessage


class Error(Struct, frozen=True, gc=False):
    """The answer failed (`error`) or was given up (`aborted`). `error` is the message, with what had arrived."""

    type: ClassVar[Literal["error"]] = "error"
    reason: StopReason
    error: AssistantMessage


AssistantMessageEvent: TypeAlias = (
    Start
    | TextStart
    | TextDelta
    | TextEnd
    | ThinkingStart
    | ThinkingDelta
    | ThinkingEnd
    | ToolCallStart
    | ToolCallDelta
    | ToolCallEnd
    | Done
    | Error
)
