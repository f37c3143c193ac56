"""A conversation with an agent: what every door of Cantle drives.

    session = await create_agent_session()
    session.subscribe(print)
    await session.prompt("What is in this folder?")
    await session.close()

It joins parts that know nothing of each other: the agent runs, the run watch follows it and has the recorder
write the session file, the retry count decides what is tried again, the compactor makes room, the work puts them
in order, the event hub tells listeners.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from msgspec import Struct

from cantle.hub.compaction import ContextUsage
from cantle.hub.event_hub import EventHub, Listener
from cantle.hub.events import QueueUpdate, SessionInfoChanged, ThinkingLevelChanged
from cantle.hub.model_selection import checked_level, find_model, require_key, require_parts, server_of
from cantle.hub.projection_notes import ProjectionNotes
from cantle.hub.queues import queue_update, watch_queues
from cantle.hub.recorder import Recorder
from cantle.hub.retry import Pause, pause
from cantle.hub.usage_total import UsageTotal
from cantle.hub.user_message import PromptContent, user_message
from cantle.hub.work import LISTENING, Work
from cantle.paths import ConfigPaths
from cantle_agent.agent import Agent
from cantle_agent.errors import AgentBusyError
from cantle_agent.messages import AgentMessage
from cantle_ai.content import ImageContent
from cantle_ai.messages import AssistantMessage, ThinkingLevel
from cantle_ai.model import Model
from cantle_ai.retry_policy import RetryPolicy
from cantle_ai.usage import Usage
from cantle_session.session import Session

if TYPE_CHECKING:
    from cantle.hub.branching import NavigateResult
    from cantle.hub.events import CompactionResult
    from cantle.hub.fallback import FallbackChooser
    from cantle.hub.history_hooks import BeforeCompact, BeforeNavigate
    from cantle.settings import Settings
    from cantle.tools.processes import RunningProcess
    from cantle_ai.models import Models

__all__ = ["AgentSession", "SessionParts", "session_variables"]


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
        self._events = EventHub()
        self._usage = UsageTotal(parts.session)
        self._work = Work(parts, self._events, self._usage, self.set_model, self.set_thinking_level)
        self._compactor = self._work.compactor
        self.before_navigate: list[BeforeNavigate] = []
        """Asked before the session goes to another place of its tree."""
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
        return self._work.on

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
        if self._work.last is not None:
            return self._work.last
        for message in reversed(self.agent.messages):
            if isinstance(message, AssistantMessage):
                return message
        return None

    @property
    def usage(self) -> Usage:
        """All tokens and cost of this conversation: answers, failed ones too, summaries, and what tools used themselves.

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
        if self._work.aside and not self._events.delivering_here:
            self.agent.follow_up(message)
            await self._work.wait_idle()
        else:
            await self._work.drive(lambda: self.agent.prompt(message), message)

    async def continue_(self) -> None:
        """Go on without a new prompt: after an interruption, or with what is queued. Raises as :meth:`prompt` does.

        Calls that were never answered get results that say so; an answer that failed or broke off stays in the
        session, and is told to no model any more. Raises ContinueError when there is nothing to continue.
        """
        await self._work.drive(self._work.pick_up)

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
        if not self._work.here:
            await self._work.wait_idle()

    def request_abort(self) -> None:
        """Ask the run, a compaction or the wait for a retry to stop, and return at once. For signal handlers and listeners."""
        self._work.abort()

    async def wait_idle(self) -> None:
        """Wait until no prompt is being worked on. Raises AgentBusyError inside a listener, where that never comes."""
        if self._events.delivering_here:
            raise AgentBusyError(LISTENING)
        await self._work.wait_idle()

    async def close(self) -> None:
        """Abort what runs and let go of processes, connections and files. Closing twice does nothing more.

        From inside a listener it does not wait: the run closes the session when it has ended.
        """
        if self._work.closed:
            return
        self._work.closed = True
        if self.running and self._work.here:
            self._work.release = self._release
            self.request_abort()
            return
        try:
            await self.abort()
        finally:
            await self._release()

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
        somebody stopped it; AgentBusyError inside a listener, and while another `compact` or a :meth:`navigate` is at
        work, which goes on undisturbed (a compaction that came by itself is stopped); SessionError when the session cannot be written.
        """
        async with self._work.beside_runs() as signal:
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
        async with self._work.beside_runs() as signal:
            from cantle.hub.branching import navigate

            place = await navigate(
                self._compactor,
                self.before_navigate,
                entry_id,
                signal,
                summarize=summarize,
                instructions=instructions,
            )
            self._work.last = None
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
