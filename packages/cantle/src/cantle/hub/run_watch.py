"""Follows the agent's runs: writes down its messages, counts them, and tells the session's listeners."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from cantle.errors import SessionError
from cantle.hub.event_hub import EventHub
from cantle.hub.events import AutoRetryEnd, RunEnd
from cantle.hub.recorder import Recorder
from cantle.hub.retry import Retry
from cantle.hub.usage_total import UsageTotal
from cantle_agent.events import AgentEnd, AgentEvent, MessageEnd
from cantle_ai.abort import AbortSignal
from cantle_ai.messages import AssistantMessage

if TYPE_CHECKING:
    from cantle.hub.fallback import Fallback

__all__ = ["RunWatch"]


class RunWatch:
    """The agent's first listener. What it knows of the current prompt starts anew with :meth:`begin`."""

    def __init__(
        self,
        recorder: Recorder,
        events: EventHub,
        retry: Retry,
        fallback: Fallback | None,
        usage: UsageTotal,
    ) -> None:
        self._recorder = recorder
        self._events = events
        self._retry = retry
        self._fallback = fallback
        self._usage = usage
        self._signal = AbortSignal()
        self.last: AssistantMessage | None = None
        """The latest answer to the prompt."""
        self.failed: AssistantMessage | None = None
        """The failure that is to be tried again, with the same model or another."""
        self.unwritten: SessionError | None = None
        """Why the session file holds no more of the conversation."""

    def begin(self, signal: AbortSignal) -> None:
        """A new prompt; once `signal` is aborted, nothing of it is tried again."""
        self._signal = signal
        self.last = self.failed = self.unwritten = None
        self._retry.end()

    def on_event(self, event: AgentEvent) -> Awaitable[None]:
        match event:
            case MessageEnd():
                return self._on_message(event)
            case AgentEnd():
                return self._on_run_end(event)
            case _:
                return self._events.emit(event)

    async def _on_message(self, event: MessageEnd) -> None:
        message = event.message
        if self.unwritten is None:
            try:
                self._recorder.message(message)
            except SessionError as error:
                self.unwritten = error
            else:
                self._usage.add(message)
        await self._events.emit(event)
        if self.unwritten is not None:
            raise self.unwritten
        if isinstance(message, AssistantMessage):
            self.last = message
            if not message.failed and (attempts := self._retry.end()):
                await self._events.emit(AutoRetryEnd(True, attempts))

    async def _on_run_end(self, event: AgentEnd) -> None:
        last = self.last
        given_up = self._signal.aborted or self.unwritten is not None
        worth_it = last is not None and not given_up
        retry = last is not None and worth_it and self._retry.wanted(last)
        fallback = None if retry or not worth_it else self._fallback
        other = last is not None and fallback is not None and fallback.wanted(last)
        self.failed = last if retry or other else None
        await self._events.emit(RunEnd(event.messages, retry or other))
        if not retry and (attempts := self._retry.end()):
            await self._events.emit(AutoRetryEnd(False, attempts, last.error_message if last else None))
