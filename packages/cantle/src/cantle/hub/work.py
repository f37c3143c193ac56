"""What a session is at work on, one thing at a time: runs with their retries and recoveries, and its history.

drive          a run: room is made, the agent works, what failed is tried again, what was too long is compacted
beside_runs    a compaction that was asked for, or a way through the tree; then a run with what was queued
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeAlias

from cantle.errors import SessionError
from cantle.hub.compaction import Compactor
from cantle.hub.event_hub import EventHub
from cantle.hub.events import (
    AgentSettled,
    AutoRetryEnd,
    AutoRetryStart,
    EntryAppended,
    ModelFallback,
    SessionEvent,
)
from cantle.hub.retry import Retry
from cantle.hub.run_watch import RunWatch
from cantle.hub.usage_total import UsageTotal
from cantle_agent.config import FinishedTurn, NextTurn, PrepareNextTurn
from cantle_agent.errors import AgentBusyError, ListenerError
from cantle_agent.messages import AgentMessage
from cantle_agent.patience import patiently
from cantle_ai.abort import AbortController, AbortError, AbortSignal
from cantle_ai.messages import AssistantMessage, ThinkingLevel
from cantle_ai.model import Model

if TYPE_CHECKING:
    from cantle.hub.agent_session import SessionParts
    from cantle.hub.fallback import Fallback, FallbackChooser

__all__ = ["LISTENING", "Work"]

_Step: TypeAlias = "Callable[[], Awaitable[object]]"

LISTENING = "A listener cannot wait for a run, which waits for its listeners. Start it as a task of its own."
_BUSY = "The session is busy. Use steer() to reach the run now, or follow_up() for when it would end."
_OTHERWISE_BUSY = "The session is being compacted, or moved within its tree, already. Wait for that, or stop it with abort()."
_RETRY_CANCELLED = "The retry was cancelled"


class Work:
    """The work of one session. Its errors are those of the session's methods."""

    def __init__(
        self,
        parts: SessionParts,
        events: EventHub,
        usage: UsageTotal,
        set_model: Callable[[Model], Awaitable[None]],
        set_level: Callable[[ThinkingLevel], Awaitable[None]],
    ) -> None:
        """`set_model` and `set_level` are for the model that goes on when another has failed for good."""
        self._agent = parts.agent
        self._session = parts.session
        self._recorder = parts.recorder
        self._pause = parts.pause
        self._fallback_level = parts.fallback_level
        self._set_model = set_model
        self._set_level = set_level
        self._events = events
        self._retry = Retry(parts.retry)
        self._fallback = _fallback(parts.fallback)
        self._watch = RunWatch(parts.recorder, events, self._retry, self._fallback, usage)
        self._agent.subscribe(self._watch.on_event)
        self.compactor = Compactor(parts, usage, self.emit)
        self.closed = False
        """Nothing more is begun."""
        self.release: Callable[[], Awaitable[None]] | None = None
        """Called at the end of the work that is on, if set."""
        self.aside = False
        """Whether what is on is no run."""
        self._stop = AbortController()
        self._driver: asyncio.Task[object] | None = None
        self._idle = asyncio.Event()
        self._idle.set()
        self._failure: Exception | None = None

    @property
    def on(self) -> bool:
        return not self._idle.is_set()

    @property
    def here(self) -> bool:
        """Whether the current task is what others would wait for: the work itself, or a listener of it."""
        return asyncio.current_task() is self._driver or self._events.delivering_here

    @property
    def last(self) -> AssistantMessage | None:
        """The latest answer to the latest prompt, also where the conversation does not show it any more."""
        return self._watch.last

    @last.setter
    def last(self, answer: AssistantMessage | None) -> None:
        self._watch.last = answer

    def abort(self) -> None:
        """Ask what is on to stop."""
        self._stop.abort()
        self._agent.abort()

    async def wait_idle(self) -> None:
        """Return when nothing is on."""
        await self._idle.wait()

    async def drive(self, start: _Step, *coming: AgentMessage) -> None:
        """Run, with retries and recoveries, until all work on it is done. `start` begins it with the messages `coming`."""
        if self.on:
            raise AgentBusyError(_BUSY)
        async with self._busy():
            await self._carry_out(start, coming)

    @asynccontextmanager
    async def beside_runs(self) -> AsyncIterator[AbortSignal]:
        """The session busy with something other than a run, which is stopped before. Then with what was queued.

        Raises AgentBusyError while the session is busy so already: a summary may be half paid for.
        """
        if self.here:
            raise AgentBusyError(LISTENING)
        while self.on:
            if self.aside:
                raise AgentBusyError(_OTHERWISE_BUSY)
            self.abort()
            await self.wait_idle()
        async with self._busy():
            self.aside = True
            try:
                yield self._stop.signal
            except asyncio.CancelledError:
                self._stop.abort()
                raise
            finally:
                self.aside = False
                if self._queued and not self._stop.signal.aborted:
                    await self._carry_out(self._answer_queue, ())

    @asynccontextmanager
    async def _busy(self) -> AsyncIterator[None]:
        if self._events.delivering_here:
            raise AgentBusyError(LISTENING)
        if self.closed:
            raise RuntimeError("The session is closed.")
        self._idle.clear()
        self._driver = asyncio.current_task()
        self._stop = AbortController()
        try:
            yield
        finally:
            await self._end()

    async def _carry_out(self, start: _Step, coming: Sequence[AgentMessage]) -> None:
        self._watch.begin(self._stop.signal)
        self.compactor.begin()
        self._failure = None
        before = self._agent.prepare_next_turn
        self._agent.prepare_next_turn = self._between_turns(before)
        mine = self._agent.prepare_next_turn
        try:
            self._recorder.state(self._agent.model, self._agent.thinking_level)
            await self.compactor.before_run(coming, self._stop.signal)
            if self._stop.signal.aborted:
                for message in coming:
                    self._agent.follow_up(message)
            else:
                await self._run(start)
        except asyncio.CancelledError:
            self._stop.abort()
            raise
        except ListenerError as error:
            culprit = self._culprit(error)
            raise culprit from culprit.__cause__
        finally:
            if self._agent.prepare_next_turn is mine:
                self._agent.prepare_next_turn = before
            await self._settle()

    async def _end(self) -> None:
        try:
            if self.release is not None:
                await self.release()
        finally:
            self._driver = None
            self._idle.set()

    async def _run(self, step: _Step) -> None:
        while True:
            await step()
            if self._failure is not None:
                raise self._failure
            failed = self._watch.failed
            if failed is None:
                following = await self._following()
                if following is None:
                    return
                step = following
                continue
            if self._fallback is not None and (other := self._fallback.take()) is not None:
                await self._fall_back(failed, other)
                await self._hide(failed)
            elif await self._wait_for_retry(failed):
                await self._hide(failed)
            else:
                return
            step = self._agent.continue_

    async def _following(self) -> _Step | None:
        """Make room after a run. What comes next: what was too long once more, or what was queued meanwhile."""
        last, signal, waited = self._watch.last, self._stop.signal, self._queued
        if await self.compactor.after_run(last, signal, self._hide, self._show):
            return self._agent.continue_
        if not self._queued or waited or signal.aborted or last is None or last.failed:
            return None
        return self._answer_queue

    async def _answer_queue(self) -> None:
        """Run with what is queued: as a prompt, since a summary may be all that stands before it."""
        await self._agent.prompt(self._agent.steering.take() or self._agent.follow_ups.take())

    @property
    def _queued(self) -> bool:
        return bool(self._agent.steering or self._agent.follow_ups)

    async def pick_up(self) -> None:
        """Go on where the session was left: without answers that failed or broke off."""
        while self._agent.messages:
            last = self._agent.messages[-1]
            if not isinstance(last, AssistantMessage) or not last.failed:
                break
            await self._hide(last)
        await self._agent.continue_()

    def _between_turns(self, theirs: PrepareNextTurn | None) -> PrepareNextTurn:
        """What the agent asks before each turn but the first: the hook that it had, and then the compactor."""

        async def prepare(turn: FinishedTurn) -> NextTurn | None:
            change = theirs(turn) if theirs is not None else None
            if isinstance(change, Awaitable):
                change = await change
            if change is None or change.context is None:
                try:
                    await self.compactor.between_turns(turn.signal)
                except (SessionError, ListenerError) as error:
                    self._failure = error  # raised when the run has ended in order
                    self._agent.abort(str(error))
            return change

        return prepare

    async def _fall_back(self, failed: AssistantMessage, other: Model) -> None:
        """Go on with another model."""
        text = failed.error_message or "The request failed"
        await self.emit(ModelFallback(other.provider, other.id, text))
        await self._set_model(other)
        if self._fallback_level is not None:
            await self._set_level(self._fallback_level)

    async def _wait_for_retry(self, failed: AssistantMessage) -> bool:
        """Wait for the next attempt. False when aborted."""
        wait_ms = self._retry.begin(failed)
        text = failed.error_message or "The request failed"
        begin = AutoRetryStart(self._retry.attempt, self._retry.policy.max_retries, wait_ms, text)
        try:
            await self.emit(begin)
            await self._pause(wait_ms / 1000, self._stop.signal)
        except asyncio.CancelledError:
            self._stop.abort()
            raise
        finally:
            if self._stop.signal.aborted:
                await self.emit(AutoRetryEnd(False, self._retry.end(), _RETRY_CANCELLED))
        return not self._stop.signal.aborted

    async def _hide(self, failed: AssistantMessage) -> None:
        """Take a failure out of what the model is told."""
        if self._agent.messages and self._agent.messages[-1] is failed:
            self._agent.messages.pop()
        if (entry := self._recorder.hide(failed)) is not None:
            await self.emit(EntryAppended(entry))

    async def _show(self, answer: AssistantMessage) -> None:
        """Put what was hidden back into what the model is told."""
        if (entry := self._recorder.show(answer)) is not None:
            self._agent.messages = self._session.context().messages
            await self.emit(EntryAppended(entry))

    async def _settle(self) -> None:
        if self._watch.unwritten is not None:
            self._agent.messages = self._session.context().messages
        last = self._watch.last
        aborted = self._stop.signal.aborted or (last is not None and last.stop_reason == "aborted")
        await self.emit(AgentSettled(aborted))

    async def emit(self, event: SessionEvent) -> None:
        """Deliver an event that is not the agent's. After an abort listeners have the agent's grace, as for its own."""
        grace = self._agent.grace
        try:
            await patiently(self._events.emit(event), self._stop.signal, grace)
        except AbortError:
            late = TimeoutError(f"did not return within {grace:g} s of an abort")
            name, _ = self._events.interrupted or ("", "")
            raise ListenerError(name, event.type, late) from None

    def _culprit(self, error: ListenerError) -> Exception:
        """What a listener of the session did, without the hub's own listener around it."""
        cause = error.__cause__
        if isinstance(cause, ListenerError | SessionError):
            return cause
        if isinstance(cause, TimeoutError) and self._events.interrupted is not None:
            return ListenerError(*self._events.interrupted, cause)
        return error


def _fallback(choose: FallbackChooser | None) -> Fallback | None:
    if choose is None:
        return None
    from cantle.hub.fallback import Fallback

    return Fallback(choose)
