"""What a loop is given: the context it works on, the model it asks, and the hooks it calls.

Every hook may be a plain function or a coroutine function. A hook that waits looks at the signal it gets:
once that is aborted, it has :attr:`LoopConfig.grace` seconds before it is cancelled.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from msgspec import UNSET, Struct, UnsetType, field
from msgspec.structs import replace

from cantle_agent.messages import AgentMessage, convert_to_llm
from cantle_agent.queues import MessageQueue
from cantle_agent.tool import ExecutionMode, Tool, ToolResult
from cantle_ai.abort import AbortSignal
from cantle_ai.codec import Json, JsonObject
from cantle_ai.content import ToolCall, UserContent
from cantle_ai.messages import AssistantMessage, Message, ThinkingLevel, ToolResultMessage
from cantle_ai.model import Model, StreamOptions
from cantle_ai.stream import StreamFunction
from cantle_ai.usage import Usage

__all__ = [
    "AdmitImages",
    "AfterToolCall",
    "AgentContext",
    "BeforeToolCall",
    "Block",
    "ChangeArguments",
    "ConvertToLlm",
    "FinishedToolCall",
    "FinishedTurn",
    "Gate",
    "GetApiKey",
    "LoopConfig",
    "NextTurn",
    "PrepareNextTurn",
    "RequestedToolCall",
    "ResultChange",
    "ShouldStopAfterTurn",
    "TransformContext",
]

GRACE_SECONDS = 5.0
"""Time for a tool or hook to stop by itself. The reference gives a process as long before it is killed."""


class AgentContext(Struct, kw_only=True):
    """What an agent works on. The loop appends to `messages` in place; `tools` are read at each use."""

    system_prompt: str = ""
    messages: list[AgentMessage] = field(default_factory=list)
    tools: Sequence[Tool] = ()


class RequestedToolCall(Struct, frozen=True, kw_only=True):
    """A call that is about to run, as hooks and the gate see it."""

    call: ToolCall
    """As the model asked."""
    tool: Tool
    arguments: JsonObject
    """What the tool would get now: validated, with what earlier hooks changed. A copy; see :class:`ChangeArguments`."""
    message: AssistantMessage
    """The answer that asks for it."""
    signal: AbortSignal


class Block(Struct, frozen=True, kw_only=True):
    """A hook's decision that a call does not run. The model reads the reason."""

    reason: str = ""
    terminate: bool = False
    """Also ask to end the run after this batch, as a result may."""


class ChangeArguments(Struct, frozen=True):
    """A hook's decision that a call runs with other arguments. They are validated again."""

    arguments: JsonObject


class FinishedToolCall(Struct, frozen=True, kw_only=True):
    """A call whose tool has run, with its result so far."""

    call: ToolCall
    tool: Tool
    arguments: JsonObject
    result: ToolResult
    message: AssistantMessage
    duration_ms: int
    signal: AbortSignal


class ResultChange(Struct, frozen=True, kw_only=True):
    """What a hook replaces in a result. Fields that are not given stay as they are."""

    content: Sequence[UserContent] | UnsetType = UNSET
    details: Json | UnsetType = UNSET
    usage: Usage | None | UnsetType = UNSET
    is_error: bool | UnsetType = UNSET
    terminate: bool | UnsetType = UNSET


class FinishedTurn(Struct, frozen=True, kw_only=True):
    """A turn that has ended, and what the next one would start from."""

    message: AssistantMessage
    tool_results: Sequence[ToolResultMessage]
    context: AgentContext
    added: Sequence[AgentMessage]
    """The messages of this run so far."""
    model: Model
    thinking_level: ThinkingLevel
    signal: AbortSignal


class NextTurn(Struct, frozen=True, kw_only=True):
    """What the next turn uses instead. None keeps what there is."""

    context: AgentContext | None = None
    model: Model | None = None
    thinking_level: ThinkingLevel | None = None

    def apply_to(self, config: LoopConfig) -> LoopConfig:
        """`config` with this model and level."""
        return replace(
            config,
            model=self.model or config.model,
            thinking_level=self.thinking_level or config.thinking_level,
        )


TransformContext: TypeAlias = Callable[
    [list[AgentMessage], AbortSignal], Sequence[AgentMessage] | Awaitable[Sequence[AgentMessage]]
]
"""Chooses what of the transcript a request is made from. Gets a copy of the list; tools and prompt are not its matter."""

ConvertToLlm: TypeAlias = Callable[[Sequence[AgentMessage]], Sequence[Message] | Awaitable[Sequence[Message]]]
"""Agent messages as a model is sent them."""

AdmitImages: TypeAlias = Callable[
    [Sequence[UserContent], Model, AbortSignal], Sequence[UserContent] | Awaitable[Sequence[UserContent]]
]
"""Content that holds images as it may enter the transcript, for a model that is asked with it next.

Called once for each message and result that has any. What it raises becomes a text in place of the images.
"""

GetApiKey: TypeAlias = Callable[[str], str | None | Awaitable[str | None]]
"""The key for a provider, at each request; None leaves it to the provider's configuration."""

BeforeToolCall: TypeAlias = Callable[
    [RequestedToolCall],
    Block | ChangeArguments | None | Awaitable[Block | ChangeArguments | None],
]
Gate: TypeAlias = Callable[[RequestedToolCall], Block | None | Awaitable[Block | None]]
AfterToolCall: TypeAlias = Callable[[FinishedToolCall], ResultChange | None | Awaitable[ResultChange | None]]

PrepareNextTurn: TypeAlias = Callable[[FinishedTurn], NextTurn | None | Awaitable[NextTurn | None]]
"""Called before each turn of a run but its first."""

ShouldStopAfterTurn: TypeAlias = Callable[[FinishedTurn], bool | Awaitable[bool]]
"""Ends the run after a turn. What is queued stays queued."""


class LoopConfig(Struct, frozen=True, kw_only=True):
    """How a loop runs."""

    stream: StreamFunction
    model: Model
    thinking_level: ThinkingLevel = "off"
    options: StreamOptions | Callable[[], StreamOptions] = StreamOptions()
    """Of each request; thinking level, signal and key are the loop's to set."""
    convert_to_llm: ConvertToLlm = convert_to_llm
    transform_context: TransformContext | None = None
    get_api_key: GetApiKey | None = None
    prepare_next_turn: PrepareNextTurn | None = None
    should_stop_after_turn: ShouldStopAfterTurn | None = None
    before_tool_call: Sequence[BeforeToolCall] = ()
    after_tool_call: Sequence[AfterToolCall] = ()
    gate: Gate | None = None
    admit_images: AdmitImages | None = None
    """None lets in PNG, JPEG, GIF and WebP images as they are, and a text for anything else."""
    tool_execution: ExecutionMode = "parallel"
    steering: MessageQueue = field(default_factory=MessageQueue)
    follow_up: MessageQueue = field(default_factory=MessageQueue)
    notes: MessageQueue = field(default_factory=lambda: MessageQueue("all"))
    """Messages that join the transcript when a turn has ended and ask for no answer."""
    grace: float = GRACE_SECONDS
    """Seconds that a tool or hook has to end by itself after an abort, and again after it is then cancelled.
    What has not ended by then is left behind, and its call's result says so."""
