"""When a session's history is compacted, and that one does it: between runs and turns, and when somebody asks.

A context is too full when less of the model's window is free than the settings reserve. That is looked at before a
prompt, between the turns of a run, and after it. What is summed up, and how, is decided by
:mod:`cantle_session.compaction`, which no run imports whose context is far from full.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from cantle.errors import CompactionError, SessionError
from cantle.hub.events import CompactionEnd, CompactionReason, CompactionResult, CompactionStart, SessionEvent
from cantle.hub.usage_total import UsageTotal
from cantle_agent.messages import AgentMessage
from cantle_ai.abort import AbortController, AbortError, AbortSignal
from cantle_ai.content import ImageContent
from cantle_ai.messages import AssistantMessage, encode_message
from cantle_ai.model import Model
from cantle_ai.usage import Usage

if TYPE_CHECKING:
    from cantle.hub.agent_session import SessionParts
    from cantle.hub.history_hooks import BeforeCompact
    from cantle_session.compaction.plan import CompactionPlan
    from cantle_session.compaction.settings import CompactionSettings

__all__ = ["Compactor", "ContextUsage", "at_most"]

_STOPPED = "The compaction was stopped."
_ONCE = (
    "The request was still too long after the history was compacted once. "
    "Choose a model with a larger window, or start a new session."
)
_BYTES_PER_TOKEN = 4
_IMAGE = 1200


class ContextUsage(Struct, frozen=True):
    """How much of a model's window the context takes."""

    tokens: int
    window: int
    reported: bool
    """Whether the model's own count is in it. False before the first answer, and after a compaction until the next."""

    @property
    def percent(self) -> float | None:
        """Of the window; None where the window is not known."""
        return 100 * self.tokens / self.window if self.window > 0 else None


class Compactor:
    """Keeps the context of one session within the window of its model."""

    def __init__(
        self,
        parts: SessionParts,
        usage: UsageTotal,
        emit: Callable[[SessionEvent], Awaitable[None]],
    ) -> None:
        self.parts = parts
        self.usage = usage
        self.emit = emit
        self.before: list[BeforeCompact] = []
        """Asked before each compaction."""
        self.auto = parts.settings.compaction_enabled
        """Whether the history is compacted by itself."""
        self._agent = parts.agent
        self._current: AbortController | None = None
        self._retried = False
        self._in_vain = False

    @property
    def active(self) -> bool:
        """Whether a compaction is being made."""
        return self._current is not None

    def abort(self) -> None:
        """Stop the compaction, and nothing else."""
        if self._current is not None:
            self._current.abort(_STOPPED)

    def context_usage(self) -> ContextUsage:
        """How full the context is."""
        from cantle_session.tokens import context_size

        size = context_size(self.parts.session.projected(), prompt_tokens=prompt_tokens(self.parts))
        return ContextUsage(size.tokens, self._agent.model.context_window, size.reported > 0)

    # --- by itself

    def begin(self) -> None:
        """A new prompt: a request of it may be sent again once, and what failed before may succeed."""
        self._retried = self._in_vain = False

    async def before_run(self, coming: Sequence[AgentMessage], signal: AbortSignal) -> None:
        """Make room for a run that begins with the messages that are `coming`."""
        if self._crowded(coming):
            await self._by_itself("threshold", signal)

    async def between_turns(self, signal: AbortSignal) -> None:
        """Make room for the next turn, after one that has succeeded."""
        self._retried = False
        if not signal.aborted and self._crowded():
            await self._by_itself("threshold", signal)

    async def after_run(
        self,
        last: AssistantMessage | None,
        signal: AbortSignal,
        hide: Callable[[AssistantMessage], Awaitable[None]],
        show: Callable[[AssistantMessage], Awaitable[None]],
    ) -> bool:
        """Make room after a run that ended with `last`. Whether its last request is to be sent again.

        `hide` takes an answer out of what the model is told, `show` puts it back.
        """
        if not self.auto or last is None or signal.aborted:
            return False
        if _may_overflow(last, self._agent.model):
            from cantle.hub.recovery import overflow_of

            overflow = overflow_of(last, self._agent.model, self._most_output())
            if overflow == "crossed":
                await self._by_itself("overflow", signal)
                return False
            if overflow is not None:
                return await self._recover(last, signal, hide, show)
        if not last.failed and self._crowded():
            await self._by_itself("threshold", signal)
        return False

    async def _recover(
        self,
        last: AssistantMessage,
        signal: AbortSignal,
        hide: Callable[[AssistantMessage], Awaitable[None]],
        show: Callable[[AssistantMessage], Awaitable[None]],
    ) -> bool:
        if self._retried:
            await self.emit(CompactionEnd("overflow", error_message=_ONCE))
            return False
        if not self._possible(will_retry=True):
            return False  # and the failure stays in sight
        self._retried = True
        await hide(last)
        again = await self._by_itself("overflow", signal, will_retry=True)
        if not (again or last.failed):
            await show(last)  # half an answer is better than none
        return again

    async def _by_itself(
        self, reason: CompactionReason, signal: AbortSignal, *, will_retry: bool = False
    ) -> bool:
        """Compact where there is something to compact. Whether it was done; listeners have been told why not."""
        if signal.aborted or not self._possible(will_retry=will_retry):
            return False
        try:
            await self.compact(reason, signal, will_retry=will_retry)
        except CompactionError:
            self._in_vain = True
            return False
        return not signal.aborted

    def _crowded(self, coming: Sequence[AgentMessage] = ()) -> bool:
        window = self._agent.model.context_window
        if not self.auto or self._in_vain or window <= 0:
            return False
        reserve, _ = self.parts.settings.compaction_tokens(self._agent.model.key)
        most = at_most(coming) + at_most(self._agent.messages, prompt_tokens(self.parts))
        if most <= window - reserve:
            return False
        from cantle_session.compaction.settings import compaction_needed
        from cantle_session.tokens import estimate_tokens

        tokens = self.context_usage().tokens + sum(map(estimate_tokens, coming))
        return compaction_needed(tokens, window, self.settings())

    def _possible(self, *, will_retry: bool) -> bool:
        """Whether there is something to sum up."""
        from cantle_session.compaction.plan import NothingToCompact

        try:
            self.plan(will_retry=will_retry)
        except NothingToCompact:
            return False
        return True

    def _most_output(self) -> int:
        options = self._agent.options
        asked = (options() if callable(options) else options).max_tokens
        return asked or self._agent.model.max_tokens

    # --- how

    def settings(self) -> CompactionSettings:
        """The settings for the model of now."""
        from cantle_session.compaction.settings import CompactionSettings

        reserve, keep = self.parts.settings.compaction_tokens(self._agent.model.key)
        return CompactionSettings(enabled=self.auto, reserve_tokens=reserve, keep_recent_tokens=keep)

    def plan(self, *, will_retry: bool) -> CompactionPlan:
        """What a compaction would sum up now. What is to be sent again with the last prompt keeps that prompt.

        Raises :class:`cantle_session.compaction.plan.NothingToCompact`.
        """
        from cantle_session.compaction.plan import plan_compaction

        window = self._agent.model.context_window or None
        return plan_compaction(self.parts.session, self.settings(), window=window, question_stays=will_retry)

    async def compact(
        self,
        reason: CompactionReason,
        signal: AbortSignal,
        *,
        instructions: str | None = None,
        will_retry: bool = False,
    ) -> CompactionResult:
        """Compact the history, and tell listeners how it went.

        Raises CompactionError when nothing came of it, SessionError when the session cannot be written.
        """
        from cantle.hub.compaction_job import make_compaction

        controller = self._current = AbortController(signal)
        end = CompactionEnd(reason, aborted=True)
        try:
            await self.emit(CompactionStart(reason))
            result = await make_compaction(
                self, reason, controller.signal, instructions=instructions, will_retry=will_retry
            )
            end = CompactionEnd(reason, result, will_retry=will_retry)
            return result
        except AbortError:
            raise CompactionError(_STOPPED, aborted=True) from None
        except (CompactionError, SessionError) as error:
            if not (isinstance(error, CompactionError) and error.aborted):
                end = CompactionEnd(reason, error_message=str(error))
            raise
        finally:
            controller.detach()
            self._current = None
            await self.emit(end)


def _may_overflow(last: AssistantMessage, model: Model) -> bool:
    """Spares a run that went well the tables of what providers say."""
    usage = last.usage
    used = usage.input + usage.cache_read + usage.cache_write
    return last.stop_reason in ("error", "length") or 0 < model.context_window < used


def prompt_tokens(parts: SessionParts) -> int:
    """What the system prompt and the tools take, by estimate."""
    agent = parts.agent
    tools = sum(len(str(tool.parameters)) + len(tool.description) for tool in agent.tools)
    return (len(agent.system_prompt) + tools) // _BYTES_PER_TOKEN


def at_most(messages: Sequence[AgentMessage], prompt: int = 0) -> int:
    """Tokens that the estimate for `messages` does not exceed, found at no cost: the last answer's count, then bytes.

    `prompt` is what stands before them, which an answer's count has in it.
    """
    most = 0
    for message in reversed(messages):
        if isinstance(message, AssistantMessage) and not message.failed and (used := _used(message.usage)):
            return most + used
        most += len(encode_message(message)) // _BYTES_PER_TOKEN + 1 + _IMAGE * _images(message)
    return most + prompt


def _used(usage: Usage) -> int:
    return usage.total_tokens or usage.input + usage.output + usage.cache_read + usage.cache_write


def _images(message: AgentMessage) -> int:
    content = getattr(message, "content", ())
    return 0 if isinstance(content, str) else sum(isinstance(block, ImageContent) for block in content)
