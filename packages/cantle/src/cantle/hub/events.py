"""What a session tells its listeners: the agent's events, and what only the hub knows.

    agent_start … agent_end {willRetry}
    auto_retry_start, then another agent_start … agent_end, auto_retry_end
    model_fallback, then another agent_start … agent_end    when retries are spent and another model goes on
    compaction_start, compaction_end               before a prompt, between turns, after a run, or by itself
      summarization_retry_scheduled, summarization_retry_attempt_start, summarization_retry_finished
                                                   in between, and while a branch that is left is summed up
    agent_settled                                  last: nothing follows by itself
    queue_update, thinking_level_changed, session_info_changed, entry_appended, history_projected
                                                   whenever they happen

The agent's own `agent_end` is replaced by :class:`RunEnd`, which says whether a retry follows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from msgspec import Struct

from cantle_agent.events import (
    AgentStart,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
    TurnEnd,
    TurnStart,
)
from cantle_agent.messages import AgentMessage
from cantle_ai.codec import JsonObject
from cantle_ai.messages import ThinkingLevel

if TYPE_CHECKING:
    from cantle_ai.codec import Json
    from cantle_ai.history import ProjectionKind
    from cantle_ai.usage import Usage

__all__ = [
    "AgentSettled",
    "AutoRetryEnd",
    "AutoRetryStart",
    "CompactionEnd",
    "CompactionReason",
    "CompactionResult",
    "CompactionStart",
    "EntryAppended",
    "HistoryProjected",
    "ModelFallback",
    "QueueUpdate",
    "RunEnd",
    "SessionEvent",
    "SessionInfoChanged",
    "SummarizationRetryAttemptStart",
    "SummarizationRetryFinished",
    "SummarizationRetryScheduled",
    "SummarySource",
    "ThinkingLevelChanged",
]

CompactionReason: TypeAlias = Literal["manual", "threshold", "overflow"]
"""Somebody asked for it; the context came near the end of the window; it was too long for it."""
SummarySource: TypeAlias = Literal["compaction", "branchSummary"]
"""What a summary is for."""


class RunEnd(Struct, frozen=True):
    """A run has ended. `messages` are those it added; `will_retry` says that its failure is tried again."""

    type: ClassVar[Literal["agent_end"]] = "agent_end"
    messages: Sequence[AgentMessage]
    will_retry: bool


class AgentSettled(Struct, frozen=True):
    """Nothing more happens by itself: no retry, no queued message. `aborted` when the last run was given up."""

    type: ClassVar[Literal["agent_settled"]] = "agent_settled"
    aborted: bool


class AutoRetryStart(Struct, frozen=True):
    """A failed request is tried again after `delay_ms`. `attempt` counts from 1."""

    type: ClassVar[Literal["auto_retry_start"]] = "auto_retry_start"
    attempt: int
    max_attempts: int
    delay_ms: int
    error_message: str


class AutoRetryEnd(Struct, frozen=True):
    """Retrying is over: an answer came, or it was given up with `final_error`."""

    type: ClassVar[Literal["auto_retry_end"]] = "auto_retry_end"
    success: bool
    attempt: int
    final_error: str | None = None


class ModelFallback(Struct, frozen=True):
    """Another model goes on from here, because the last one failed for good with `error_message`."""

    type: ClassVar[Literal["model_fallback"]] = "model_fallback"
    provider: str
    model_id: str
    error_message: str


class CompactionResult(Struct, frozen=True, kw_only=True):
    """What a compaction came to. What is kept begins at `first_kept_entry_id`, its own id where nothing is."""

    summary: str
    first_kept_entry_id: str
    tokens_before: int
    estimated_tokens_after: int
    usage: Usage | None = None
    """What the summary took."""
    details: Json = None


class CompactionStart(Struct, frozen=True):
    """The history is being compacted."""

    type: ClassVar[Literal["compaction_start"]] = "compaction_start"
    reason: CompactionReason


class CompactionEnd(Struct, frozen=True):
    """Compacting is over: with a `result`, `aborted`, or failed for the reason in `error_message`.

    `will_retry` says that the request that was too long is sent again.
    """

    type: ClassVar[Literal["compaction_end"]] = "compaction_end"
    reason: CompactionReason
    result: CompactionResult | None = None
    aborted: bool = False
    will_retry: bool = False
    error_message: str | None = None


class SummarizationRetryScheduled(Struct, frozen=True):
    """The request for a summary failed, and is sent again after `delay_ms`. `attempt` counts from 1."""

    type: ClassVar[Literal["summarization_retry_scheduled"]] = "summarization_retry_scheduled"
    attempt: int
    max_attempts: int
    delay_ms: int
    error_message: str


class SummarizationRetryAttemptStart(Struct, frozen=True):
    """The request for a summary is sent again. A branch summary has no `reason`."""

    type: ClassVar[Literal["summarization_retry_attempt_start"]] = "summarization_retry_attempt_start"
    source: SummarySource
    reason: CompactionReason | None = None


class SummarizationRetryFinished(Struct, frozen=True):
    """Retrying the request for a summary is over: it was answered, given up or aborted."""

    type: ClassVar[Literal["summarization_retry_finished"]] = "summarization_retry_finished"


class HistoryProjected(Struct, frozen=True):
    """A request leaves out or changes something of the history, other than the request before it.

    `counts` are by kind. What is stored stays as it is.
    """

    type: ClassVar[Literal["history_projected"]] = "history_projected"
    counts: Mapping[ProjectionKind, int]


class QueueUpdate(Struct, frozen=True):
    """The waiting messages changed. Both fields are the whole queue, as text."""

    type: ClassVar[Literal["queue_update"]] = "queue_update"
    steering: Sequence[str]
    follow_up: Sequence[str]


class ThinkingLevelChanged(Struct, frozen=True):
    """The next request thinks at another level."""

    type: ClassVar[Literal["thinking_level_changed"]] = "thinking_level_changed"
    level: ThinkingLevel


class SessionInfoChanged(Struct, frozen=True):
    """The session was named, or its name taken away."""

    type: ClassVar[Literal["session_info_changed"]] = "session_info_changed"
    name: str | None


class EntryAppended(Struct, frozen=True):
    """An entry that is not a message was added to the session; `entry` is its JSON."""

    type: ClassVar[Literal["entry_appended"]] = "entry_appended"
    entry: JsonObject


SessionEvent: TypeAlias = (
    AgentStart
    | RunEnd
    | AgentSettled
    | TurnStart
    | TurnEnd
    | MessageStart
    | MessageUpdate
    | MessageEnd
    | ToolExecutionStart
    | ToolExecutionUpdate
    | ToolExecutionEnd
    | AutoRetryStart
    | AutoRetryEnd
    | ModelFallback
    | CompactionStart
    | CompactionEnd
    | SummarizationRetryScheduled
    | SummarizationRetryAttemptStart
    | SummarizationRetryFinished
    | HistoryProjected
    | QueueUpdate
    | ThinkingLevelChanged
    | SessionInfoChanged
    | EntryAppended
)
