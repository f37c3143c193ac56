"""A conversation with an agent: what every door of Cantle drives.

    session = await create_agent_session()
    session.subscribe(print)
    await session.prompt("What is in this folder?")
    await session.close()

It joins parts that know nothing of each other: the agent runs, the run watch follows it and has the recorder
write the session file, the retry count decides what is tried again, the compactor makes room, the event hub tells
listeners.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeAlias

from msgspec import Struct

from cantle.errors import SessionError
from cantle.hub.compaction import Compactor, ContextUsage
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
from cantle_agent.config import FinishedTurn, NextTurn, PrepareNextTurn
from cantle_agent.errors import AgentBusyError, ListenerError
from cantle_agent.messages import AgentMessage
from cantle_agent.patience import patiently
from cantle_ai.abort import AbortController, AbortError, AbortSignal
from cantle_ai.content import ImageContent
from cantle_ai.messages import AssistantMessage, ThinkingLevel
from cantle_ai.model import Model
from cantle_ai.retry_policy import RetryPolicy
from cantle_ai.usage import Usage
from cantle_session.session import Session

if TYPE_CHECKING:
    from cantle.hub.branching import NavigateResult
    from cantle.hub.events import CompactionResult
    from cantle.hub.fallback import Fallback, FallbackChooser
    from cantle.hub.history_hooks import BeforeCompact, BeforeNavigate
    from cantle.settings import Settings
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
    settings: Settings
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
        self._aside = False
        self._failure: Exception | None = None
        self._usage = UsageTotal(parts.session)
        self._compactor = Compactor(parts, self._usage, self._emit)
        self.before_navigate: list[BeforeNavigate] = []
        """Asked before the session goes to another place of its tree."""
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
        """Whether a prompt is being worked on, waits for a retry included, or the history."""
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
        if self._watch.last is not None:
            return self._watch.last
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
    def context_usage(self) -> ContextUsage:
        """How much of the model's window the conversation takes. Reads what the model is told of it."""
        return self._compactor.context_usage()

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

        How it went is in the last message (`stop_reason`). While :meth:`compact` or :meth:`navigate` is at work, it
        is queued and comes afterwards. An abort before it was begun leaves it in the queue.

        Raises AgentBusyError while another prompt runs,
        :class:`cantle.errors.SessionError` when the session file cannot be written, and
        :class:`cantle_agent.errors.ListenerError` when a listener raised.
        """
        message = user_message(content, images)
        if self._aside and not self._events.delivering_here:
            self.agent.follow_up(message)
            await self._idle.wait()
            return
        await self._drive(lambda: self.agent.prompt(message), message)

    async def continue_(self) -> None:
        """Go on without a new prompt: after an interruption, or with what is queued. Raises as :meth:`prompt` does.

        Calls that were never answered get results that say so; an answer that failed or broke off stays in the
        session, and is told to no model any more. Raises ContinueError when there is nothing to continue.
        """
        await self._drive(self._pick_up)

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
        """Stop the run, a compaction or the wait for a retry, and return when the session is idle. What is queued stays queued.

        From inside a listener it does not wait, because the run waits for that listener.
        """
        self.request_abort()
        if not self._inside_run:
            await self._idle.wait()

    def request_abort(self) -> None:
        """Ask the run, a compaction or the wait for a retry to stop, and return at once. For signal handlers and listeners."""
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

    # --- its history

    @property
    def compacting(self) -> bool:
        """Whether the history is being compacted."""
        return self._compactor.active

    @property
    def auto_compaction(self) -> bool:
        """Whether the history is compacted by itself when it comes near the end of the window. May be set."""
        return self._compactor.auto

    @auto_compaction.setter
    def auto_compaction(self, wanted: bool) -> None:
        self._compactor.auto = wanted

    @property
    def before_compact(self) -> list[BeforeCompact]:
        """Asked before each compaction. May be added to."""
        return self._compactor.before

    async def compact(self, instructions: str | None = None) -> CompactionResult:
        """Sum up the older part of the conversation now; the session keeps it. A run that is on is aborted first.

        `instructions` say what the summary must not lose. What is queued meanwhile is worked on before this returns.

        Raises :class:`cantle.errors.CompactionError` when there is nothing to compact, the summary failed or
        somebody stopped it; AgentBusyError inside a listener; SessionError when the session cannot be written.
        """
        async with self._beside_runs() as signal:
            return await self._compactor.compact("manual", signal, instructions=instructions)

    def abort_compaction(self) -> None:
        """Stop a compaction, and nothing else: a run that waits for it goes on without."""
        self._compactor.abort()

    async def navigate(
        self, entry_id: str, *, summarize: bool = False, instructions: str | None = None
    ) -> NavigateResult:
        """Stand at another entry of the session: the conversation goes on from there, as a branch.

        Where a user's message was chosen it stands in front of it, and the result has its text, to be said anew.
        With `summarize` the branch that is left is summed up where the new one begins. A run that is on is aborted
        first. Raises as :meth:`compact` does, SessionError for an unknown entry; it has not moved then.
        """
        async with self._beside_runs() as signal:
            from cantle.hub.branching import navigate

            place = await navigate(
                self._compactor,
                self.before_navigate,
                entry_id,
                signal,
                summarize=summarize,
                instructions=instructions,
            )
            self._watch.last = None
            return place

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

    async def _drive(self, start: _Step, *coming: AgentMessage) -> None:
        if self.running:
            raise AgentBusyError(_BUSY)
        async with self._busy():
            await self._work(start, coming)

    @asynccontextmanager
    async def _beside_runs(self) -> AsyncIterator[AbortSignal]:
        """The session busy with something other than a run, which is stopped before. Then with what was queued."""
        if self._events.delivering_here:
            raise AgentBusyError(_LISTENING)
        while self.running:
            await self.abort()
        async with self._busy():
            self._aside = True
            try:
                yield self._stop.signal
            except asyncio.CancelledError:
                self._stop.abort()
                raise
            finally:
                self._aside = False
                if self._queued and not self._stop.signal.aborted:
                    await self._work(self._answer_queue, ())

    @asynccontextmanager
    async def _busy(self) -> AsyncIterator[None]:
        if self._events.delivering_here:
            raise AgentBusyError(_LISTENING)
        if self._closed:
            raise RuntimeError("The session is closed.")
        self._idle.clear()
        self._driver = asyncio.current_task()
        self._stop = AbortController()
        try:
            yield
        finally:
            await self._end()

    async def _work(self, start: _Step, coming: Sequence[AgentMessage]) -> None:
        self._watch.begin(self._stop.signal)
        self._compactor.begin()
        self._failure = None
        before = self.agent.prepare_next_turn
        self.agent.prepare_next_turn = self._between_turns(before)
        mine = self.agent.prepare_next_turn
        try:
            self._recorder.state(self.agent.model, self.agent.thinking_level)
            await self._compactor.before_run(coming, self._stop.signal)
            if self._stop.signal.aborted:
                for message in coming:
                    self.agent.follow_up(message)
            else:
                await self._run(start)
        except asyncio.CancelledError:
            self._stop.abort()
            raise
        except ListenerError as error:
            culprit = self._culprit(error)
            raise culprit from culprit.__cause__
        finally:
            if self.agent.prepare_next_turn is mine:
                self.agent.prepare_next_turn = before
            await self._settle()

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
            step = self.agent.continue_

    async def _following(self) -> _Step | None:
        """Make room after a run. What comes next: what was too long once more, or what was queued meanwhile."""
        last, signal, waited = self._watch.last, self._stop.signal, self._queued
        if await self._compactor.after_run(last, signal, self._hide):
            return self.agent.continue_
        if not self._queued or waited or signal.aborted or last is None or last.failed:
            return None
        return self._answer_queue

    async def _answer_queue(self) -> None:
        """Run with what is queued: as a prompt, since a summary may be all that stands before it."""
        await self.agent.prompt(self.agent.steering.take() or self.agent.follow_ups.take())

    @property
    def _queued(self) -> bool:
        return bool(self.agent.steering or self.agent.follow_ups)

    async def _pick_up(self) -> None:
        """Go on where the session was left: without answers that failed or broke off."""
        while self.agent.messages:
            last = self.agent.messages[-1]
            if not isinstance(last, AssistantMessage) or not last.failed:
                break
            await self._hide(last)
        await self.agent.continue_()

    def _between_turns(self, theirs: PrepareNextTurn | None) -> PrepareNextTurn:
        """What the agent asks before each turn but the first: the hook that it had, and then the compactor."""

        async def prepare(turn: FinishedTurn) -> NextTurn | None:
            change = theirs(turn) if theirs is not None else None
            if isinstance(change, Awaitable):
                change = await change
            if change is None or change.context is None:
                try:
                    await self._compactor.between_turns(turn.message, turn.signal)
                except (SessionError, ListenerError) as error:
                    self._failure = error  # raised when the run has ended in order
                    self.agent.abort(str(error))
            return change

        return prepare

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
