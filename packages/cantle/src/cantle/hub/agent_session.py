"""A conversation with an agent: what every door of Cantle drives.

    session = await create_agent_session()
    session.subscribe(print)
    await session.prompt("What is in this folder?")
    await session.close()

It joins parts that know nothing of each other: the agent runs, the run watch follows it and has the recorder
write the session file, the retry count decides what is tried again, the event hub tells listeners.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeAlias

from msgspec import Struct

from cantle.errors import SessionError
from cantle.hub.event_hub import EventHub, Listener
from cantle.hub.events import (
    AgentSettled,
    AutoRetryEnd,
    AutoRetryStart,
    EntryAppended,
    ModelFallback,
    QueueUpdate,
    SessionEvent,
    SessionInfoChanged,
    ThinkingLevelChanged,
)
from cantle.hub.model_selection import checked_level, find_model, require_key, require_parts, server_of
from cantle.hub.projection_notes import ProjectionNotes
from cantle.hub.queues import queue_update, watch_queues
from cantle.hub.recorder import Recorder
from cantle.hub.retry import Pause, Retry, pause
from cantle.hub.run_watch import RunWatch
from cantle.hub.usage_total import UsageTotal
from cantle.hub.user_message import PromptContent, user_message
from cantle.paths import ConfigPaths
from cantle_agent.agent import Agent
from cantle_agent.errors import AgentBusyError, ListenerError
from cantle_agent.messages import AgentMessage
from cantle_agent.patience import patiently
from cantle_ai.abort import AbortController, AbortError
from cantle_ai.content import ImageContent
from cantle_ai.messages import AssistantMessage, ThinkingLevel
from cantle_ai.model import Model
from cantle_ai.retry_policy import RetryPolicy
from cantle_ai.usage import Usage
from cantle_session.session import Session

if TYPE_CHECKING:
    from cantle.hub.fallback import Fallback, FallbackChooser
    from cantle.tools.processes import RunningProcess
    from cantle_ai.models import Models

__all__ = ["AgentSession", "SessionParts", "session_variables"]

_Step: TypeAlias = "Callable[[], Awaitable[object]]"

_BUSY = "The session is busy. Use steer() to reach the run now, or follow_up() for when it would end."
_LISTENING = "A listener cannot wait for a run, which waits for its listeners. Start it as a task of its own."
_RETRY_CANCELLED = "The retry was cancelled"


class SessionParts(Struct, kw_only=True):
    """What a session is made of. :func:`cantle.sdk.create_agent_session` puts it together."""

    agent: Agent
    session: Session
    recorder: Recorder
    models: Models
    paths: ConfigPaths
    retry: RetryPolicy = RetryPolicy()
    fallback: FallbackChooser | None = None
    """Chooses the model that goes on when retries are spent."""
    fallback_level: ThinkingLevel | None = None
    """How hard that one thinks; None leaves it as it was."""
    projections: ProjectionNotes
    """What the agent's requests tell of their projections."""
    api_key_provider: str | None = None
    """A provider that needs no key from elsewhere, because one was given for this session alone."""
    warnings: Sequence[str] = ()
    cleanup: Sequence[Callable[[], Awaitable[None]]] = ()
    """What closing the session closes with it, in this order."""
    left_running: Callable[[], Sequence[RunningProcess]] = tuple
    """What commands that have ended left running, at the moment."""
    pause: Pause = pause


class AgentSession:
    """One conversation. Belongs to one event loop; made by :func:`cantle.sdk.create_agent_session`."""

    def __init__(self, parts: SessionParts) -> None:
        self.agent = parts.agent
        self.session = parts.session
        self._parts = parts
        self._recorder = parts.recorder
        self._retry = Retry(parts.retry)
        self._fallback = _fallback(parts.fallback)
        self._events = EventHub()
        self._stop = AbortController()
        self._driver: asyncio.Task[object] | None = None
        self._idle = asyncio.Event()
        self._idle.set()
        self._closed = False
        self._close_after_run = False
        self._usage = UsageTotal(parts.session)
        self._watch = RunWatch(parts.recorder, self._events, self._retry, self._fallback, self._usage)
        self.agent.subscribe(self._watch.on_event)
        watch_queues(self.agent, self._events.post)
        parts.projections.post = self._events.post

    def __repr__(self) -> str:
        count = len(self.agent.messages)
        messages = f"{count} message{'' if count == 1 else 's'}"
        file = self.session.file or "in memory"
        return f"<AgentSession {self.session.id}, {self.model.key}, {messages}, {file}>"

    # --- state

    @property
    def running(self) -> bool:
        """Whether a prompt is being worked on, waits for a retry included."""
        return not self._idle.is_set()

    @property
    def model(self) -> Model:
        return self.agent.model

    @property
    def thinking_level(self) -> ThinkingLevel:
        return self.agent.thinking_level

    @property
    def system_prompt(self) -> str:
        return self.agent.system_prompt

    @property
    def messages(self) -> Sequence[AgentMessage]:
        """The conversation so far."""
        return self.agent.messages

    @property
    def last_answer(self) -> AssistantMessage | None:
        """The model's latest message; its `text` is what it said, its `stop_reason` how it ended."""
        for message in reversed(self.agent.messages):
            if isinstance(message, AssistantMessage):
                return message
        return None

    @property
    def usage(self) -> Usage:
        """All tokens and cost of this conversation: answers, failed ones too, and what tools used themselves.

        Of a session that was continued it is read from the file the first time, so ask before it is closed.
        """
        return self._usage.total

    @property
    def warnings(self) -> list[str]:
        """What the user should know about the set-up and the session file, a sentence each."""
        return [*self._parts.warnings, *map(str, self.session.warnings)]

    @property
    def left_running(self) -> Sequence[RunningProcess]:
        """Processes that finished commands have left in the background; closing the session ends them."""
        return self._parts.left_running()

    # --- talking

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with every event; a coroutine function is awaited. Returns a function that stops that.

        Listeners are called in the order of subscription, and messages are in the session file by then.
        """
        return self._events.subscribe(listener)

    async def prompt(self, content: PromptContent, images: Sequence[ImageContent] = ()) -> None:
        """Say something and wait until all work on it is done: tools, retries, queued messages.

        How it went is in the last message (`stop_reason`). Raises AgentBusyError while another prompt runs,
        :class:`cantle.errors.SessionError` when the session file cannot be written, and
        :class:`cantle_agent.errors.ListenerError` when a listener raised.
        """
        message = user_message(content, images)
        await self._drive(lambda: self.agent.prompt(message))

    async def continue_(self) -> None:
        """Go on without a new prompt: after an interruption, or with what is queued. Raises as :meth:`prompt` does.

        Raises ContinueError when there is nothing to continue.
        """
        await self._drive(self.agent.continue_)

    def steer(self, content: PromptContent, images: Sequence[ImageContent] = ()) -> None:
        """Queue a message that enters after the running tools, before the next request."""
        self.agent.steer(user_message(content, images))

    def follow_up(self, content: PromptContent, images: Sequence[ImageContent] = ()) -> None:
        """Queue a message that enters where the work would end."""
        self.agent.follow_up(user_message(content, images))

    def clear_queue(self) -> QueueUpdate:
        """Take back what is queued, and return it as text."""
        waiting = queue_update(self.agent)
        self.agent.clear_queues()
        return waiting

    async def abort(self) -> None:
        """Stop the run, or the wait for a retry, and return when the session is idle. What is queued stays queued.

        From inside a listener it does not wait, because the run waits for that listener.
        """
        self.request_abort()
        if not self._inside_run:
            await self._idle.wait()

    def request_abort(self) -> None:
        """Ask the run, or the wait for a retry, to stop, and return at once. For signal handlers and listeners."""
        self._stop.abort()
        self.agent.abort()

    async def wait_idle(self) -> None:
        """Wait until no prompt is being worked on. Raises AgentBusyError inside a listener, where that never comes."""
        if self._events.delivering_here:
            raise AgentBusyError(_LISTENING)
        await self._idle.wait()

    async def close(self) -> None:
        """Abort what runs and let go of processes, connections and files. Closing twice does nothing more.

        From inside a listener it does not wait: the run closes the session when it has ended.
        """
        if self._closed:
            return
        self._closed = True
        if self.running and self._inside_run:
            self._close_after_run = True
            self.request_abort()
            return
        try:
            await self.abort()
        finally:
            await self._release()

    @property
    def _inside_run(self) -> bool:
        return asyncio.current_task() is self._driver or self._events.delivering_here

    async def _release(self) -> None:
        try:
            for close in self._parts.cleanup:
                await close()
        finally:
            self.session.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # --- what the conversation is held with

    async def set_model(self, model: Model | str) -> None:
        """Ask another model from the next request on, at the nearest thinking level that it has.

        A pattern may name the level: `sonnet:high`.

        Raises :class:`cantle.errors.ModelSelectionError` for a model that does not exist, has no key, or
        lacks something on this machine.
        """
        server = server_of(self._parts.models, model)
        if server is not None:
            from cantle.hub.local_servers import ask_server

            await ask_server(self._parts.models, server, wanted=model)
        level = None
        if isinstance(model, Model):
            chosen = model
        else:
            choice = find_model(self._parts.models, model)
            chosen, level = choice.model, choice.level
        require_parts(chosen)
        if chosen.provider != self._parts.api_key_provider:
            require_key(self._parts.models, chosen, self._parts.paths)
        self.agent.model = chosen
        await self.set_thinking_level(level or self.agent.thinking_level)

    async def set_thinking_level(self, level: ThinkingLevel) -> None:
        """Think harder or less from the next request on, as far as the model can."""
        level = self.agent.model.clamp(checked_level(level))
        changed = level != self.agent.thinking_level
        self.agent.thinking_level = level
        self._recorder.state(self.agent.model, level)
        if changed:
            self._events.post(ThinkingLevelChanged(level))

    def set_name(self, name: str) -> None:
        """Name the session; an empty name takes it away."""
        self._recorder.name(name)
        self._events.post(SessionInfoChanged(self.session.name))

    # --- a prompt and its retries

    async def _drive(self, start: _Step) -> None:
        if self.running:
            raise AgentBusyError(_BUSY)
        if self._events.delivering_here:
            raise AgentBusyError(_LISTENING)
        if self._closed:
            raise RuntimeError("The session is closed.")
        self._idle.clear()
        self._driver = asyncio.current_task()
        self._stop = AbortController()
        self._watch.begin(self._stop.signal)
        try:
            self._recorder.state(self.agent.model, self.agent.thinking_level)
            await self._run(start)
        except asyncio.CancelledError:
            self._stop.abort()
            raise
        except ListenerError as error:
            culprit = self._culprit(error)
            raise culprit from culprit.__cause__
        finally:
            try:
                await self._settle()
            finally:
                await self._end()

    async def _end(self) -> None:
        try:
            if self._close_after_run:
                await self._release()
        finally:
            self._driver = None
            self._idle.set()

    async def _run(self, step: _Step) -> None:
        while True:
            await step()
            failed = self._watch.failed
            if failed is None:
                return
            if self._fallback is not None and (other := self._fallback.take()) is not None:
                await self._fall_back(failed, other)
            elif not await self._wait_for_retry(failed):
                return
            await self._hide(failed)
            step = self.agent.continue_

    async def _fall_back(self, failed: AssistantMessage, other: Model) -> None:
        """Go on with another model."""
        text = failed.error_message or "The request failed"
        await self._emit(ModelFallback(other.provider, other.id, text))
        await self.set_model(other)
        if self._parts.fallback_level is not None:
            await self.set_thinking_level(self._parts.fallback_level)

    async def _wait_for_retry(self, failed: AssistantMessage) -> bool:
        """Wait for the next attempt. False when aborted."""
        wait_ms = self._retry.begin(failed)
        text = failed.error_message or "The request failed"
        begin = AutoRetryStart(self._retry.attempt, self._retry.policy.max_retries, wait_ms, text)
        try:
            await self._emit(begin)
            await self._parts.pause(wait_ms / 1000, self._stop.signal)
        except asyncio.CancelledError:
            self._stop.abort()
            raise
        finally:
            if self._stop.signal.aborted:
                await self._emit(AutoRetryEnd(False, self._retry.end(), _RETRY_CANCELLED))
        return not self._stop.signal.aborted

    async def _hide(self, failed: AssistantMessage) -> None:
        """Take a failure out of what the model is told."""
        if self.agent.messages and self.agent.messages[-1] is failed:
            self.agent.messages.pop()
        if (entry := self._recorder.hide(failed)) is not None:
            await self._emit(EntryAppended(entry))

    async def _settle(self) -> None:
        if self._watch.unwritten is not None:
            self.agent.messages = self.session.context().messages
        last = self._watch.last
        aborted = self._stop.signal.aborted or (last is not None and last.stop_reason == "aborted")
        await self._emit(AgentSettled(aborted))

    async def _emit(self, event: SessionEvent) -> None:
        """Deliver an event that is not the agent's. After an abort listeners have the agent's grace, as for its own."""
        grace = self.agent.grace
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


def session_variables(session: Session, agent: Agent) -> dict[str, str]:
    """The variables that tell a command which session it belongs to, and which model is at work."""
    variables = {
        "CANTLE_SESSION_ID": session.id,
        "CANTLE_PROVIDER": agent.model.provider,
        "CANTLE_MODEL": agent.model.id,
        "CANTLE_REASONING_LEVEL": agent.thinking_level,
    }
    if session.file is not None:
        variables["CANTLE_SESSION_FILE"] = str(session.file)
    return variables
