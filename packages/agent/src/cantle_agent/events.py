"""What happens in a run, as events in order. Field names in JSON are the reference's (camelCase).

    agent_start
      turn_start
        message_start … message_end                      the prompt; then, with message_update between, the answer
        tool_execution_start … _update … _end            for each call of the batch
        message_start, message_end                       for each result, in the order of the calls
      turn_end
    agent_end

`message_update` is sent for assistant messages only; `message` is the one growing message.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar, Literal, TypeAlias

from msgspec import Struct

from cantle_agent.messages import AgentMessage
from cantle_agent.tool import ToolResult
from cantle_ai.codec import JsonObject
from cantle_ai.events import AssistantMessageEvent
from cantle_ai.messages import AssistantMessage, ToolResultMessage

__all__ = [
    "AgentEnd",
    "AgentEvent",
    "AgentStart",
    "Emit",
    "MessageEnd",
    "MessageStart",
    "MessageUpdate",
    "ToolExecutionEnd",
    "ToolExecutionStart",
    "ToolExecutionUpdate",
    "TurnEnd",
    "TurnStart",
]


class AgentStart(Struct, frozen=True):
    """A run has begun."""

    type: ClassVar[Literal["agent_start"]] = "agent_start"


class AgentEnd(Struct, frozen=True):
    """A run has ended. `messages` are those it added."""

    type: ClassVar[Literal["agent_end"]] = "agent_end"
    messages: Sequence[AgentMessage]


class TurnStart(Struct, frozen=True):
    """A turn, one answer and its tool batch, has begun."""

    type: ClassVar[Literal["turn_start"]] = "turn_start"


class TurnEnd(Struct, frozen=True):
    """A turn has ended, its results in the order of the calls."""

    type: ClassVar[Literal["turn_end"]] = "turn_end"
    message: AssistantMessage
    tool_results: Sequence[ToolResultMessage]


class MessageStart(Struct, frozen=True):
    """A message has begun; only an assistant's is still growing."""

    type: ClassVar[Literal["message_start"]] = "message_start"
    message: AgentMessage


class MessageUpdate(Struct, frozen=True, gc=False):
    """An answer grew by one event of its stream."""

    type: ClassVar[Literal["message_update"]] = "message_update"
    message: AssistantMessage
    event: AssistantMessageEvent


class MessageEnd(Struct, frozen=True):
    """A message is final."""

    type: ClassVar[Literal["message_end"]] = "message_end"
    message: AgentMessage


class ToolExecutionStart(Struct, frozen=True):
    """A call is being prepared and run."""

    type: ClassVar[Literal["tool_execution_start"]] = "tool_execution_start"
    tool_call_id: str
    tool_name: str
    args: JsonObject


class ToolExecutionUpdate(Struct, frozen=True):
    """A running tool showed what it has so far."""

    type: ClassVar[Literal["tool_execution_update"]] = "tool_execution_update"
    tool_call_id: str
    tool_name: str
    args: JsonObject
    partial_result: ToolResult


class ToolExecutionEnd(Struct, frozen=True):
    """A call is settled. `duration_ms` is how long the tool itself ran; None when it did not."""

    type: ClassVar[Literal["tool_execution_end"]] = "tool_execution_end"
    tool_call_id: str
    tool_name: str
    result: ToolResult
    is_error: bool
    duration_ms: int | None = None


AgentEvent: TypeAlias = (
    AgentStart
    | AgentEnd
    | TurnStart
    | TurnEnd
    | MessageStart
    | MessageUpdate
    | MessageEnd
    | ToolExecutionStart
    | ToolExecutionUpdate
    | ToolExecutionEnd
)

Emit: TypeAlias = Callable[[AgentEvent], Awaitable[None]]
"""Takes one event. The run goes on when it returns."""
