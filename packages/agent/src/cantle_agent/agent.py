"""An agent: the state around the loop, for those who hold a conversation rather than run one loop.

    agent = Agent(stream=models.stream, model=model, tools=[...])
    agent.subscribe(print)
    await agent.prompt("What does this project do?")

One run at a time. While it is on, other tasks may steer it, queue follow-ups, or abort it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeAlias, TypeVar

from cantle_agent.admission import admit_message
from cantle_agent.config import (
    GRACE_SECONDS,
    AdmitImages,
    AfterToolCall,
    AgentContext,
    BeforeToolCall,
    ConvertToLlm,
    FinishedTurn,
    Gate,
    GetApiKey,
    LoopConfig,
    NextTurn,
    PrepareNextTurn,
    ShouldStopAfterTurn,
    TransformContext,
)
from cantle_agent.errors import AgentBusyError, ListenerError, SchemaError
from cantle_agent.events import (
    AgentEnd,
    AgentEvent,
    MessageEnd,
    MessageStart,
    ToolExecutionEnd,
    ToolExecutionStart,
)
from cantle_agent.listeners import Delivery, Listener, add_listener
from cantle_agent.loop import drive
from cantle_agent.messages import AgentMessage, convert_to_llm, usage_of
from cantle_agent.queues import MessageQueue, QueueMode
from cantle_agent.schema import check_parameters
from cantle_agent.tool import ExecutionMode, Tool, not_a_tool
from cantle_ai.abort import AbortController, AbortSignal
from cantle_ai.messages import AssistantMessage, ThinkingLevel, UserMessage
from cantle_ai.model import Model, StreamOptions
from cantle_ai.stream import StreamFunction
from cantle_ai.usage import Usage, total_usage

__all__ = ["Agent"]

_H = TypeVar("_H", BeforeToolCall, AfterToolCall)
_Prompt: TypeAlias = str | AgentMessage | Sequence[AgentMessage]


class Agent:
    """A conversation with a model that has tools.

    Its attributes may be set at any time; a run looks at `model`, `thinking_level`, `system_prompt` and `tools`
    before each generation, and at hooks and options when it begins.
    """

    def __init__(
        self,
        *,
        stream: StreamFunction,
        model: Model,
        system_prompt: str = "",
        tools: Sequence[Tool] = (),
        messages: Sequence[AgentMessage] = (),
        thinking_level: ThinkingLevel = "off",
        options: StreamOptions | Callable[[], StreamOptions] | None = None,
        convert_to_llm: ConvertToLlm = convert_to_llm,
        transform_context: TransformContext | None = None,
        get_api_key: GetApiKey | None = None,
        prepare_next_turn: PrepareNextTurn | None = None,
        should_stop_after_turn: ShouldStopAfterTurn | None = None,
        before_tool_call: BeforeToolCall | Sequence[BeforeToolCall] = (),
        after_tool_call: AfterToolCall | Sequence[AfterToolCall] = (),
        gate: Gate | None = None,
        admit_images: AdmitImages | None = None,
        tool_execution: ExecutionMode = "parallel",
        steering_mode: QueueMode = "one-at-a-time",
        follow_up_mode: QueueMode = "one-at-a-time",
        grace: float = GRACE_SECONDS,
    ) -> None:
        """`before_tool_call` and `after_tool_call` are one hook, or several in their order.

        Raises SchemaError for a tool that could never be called: no name, a name twice, or no schema; TypeError for
        what is no tool or no hook.
        """
        self.stream = stream
        self.model = model
        self.thinking_level: ThinkingLevel = thinking_level
        self.options = options if options is not None else StreamOptions()
        self.convert_to_llm = convert_to_llm
        self.transform_context = transform_context
        self.get_api_key = get_api_key
        self.prepare_next_turn = prepare_next_turn
        self.should_stop_after_turn = should_stop_after_turn
        self.before_tool_call = _hooks("before_tool_call", before_tool_call)
        self.after_tool_call = _hooks("after_tool_call", after_tool_call)
        self.gate = gate
        self.admit_images = admit_images
        self.tool_execution: ExecutionMode = tool_execution
        self.grace = grace
        self.steering = MessageQueue(steering_mode)
        self.follow_ups = MessageQueue(follow_up_mode)
        self.partial_message: AssistantMessage | None = None
        """The answer that is growing now."""
        self.pending_tool_calls: dict[str, ToolExecutionStart] = {}
        """The calls that have started and not ended, by id."""
        self.last_error: str | None = None
        """Why the last run failed or was aborted; None if it was not."""
        self._context = AgentContext(system_prompt=system_prompt, messages=list(messages))
        self.tools = tools
        self._notes = MessageQueue("all")
        self._usage = usage_of(messages)
        self._listeners: list[Listener] = []
        self._abort: AbortController | None = None
        self._drained = False
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def running(self) -> bool:
        return self._abort is not None

    @property
    def signal(self) -> AbortSignal | None:
        """The signal of the run that is on."""
        return None if self._abort is None else self._abort.signal

    @property
    def messages(self) -> list[AgentMessage]:
        """The transcript. Change it only between runs."""
        return self._context.messages

    @messages.setter
    def messages(self, messages: Sequence[AgentMessage]) -> None:
        self._refuse_while_running(
            "The transcript can't be replaced while a run is on; abort it and wait first."
        )
        self._context.messages = list(messages)

    @property
    def system_prompt(self) -> str:
        return self._context.system_prompt

    @system_prompt.setter
    def system_prompt(self, prompt: str) -> None:
        self._context.system_prompt = prompt

    @property
    def tools(self) -> Sequence[Tool]:
        return self._context.tools

    @tools.setter
    def tools(self, tools: Sequence[Tool]) -> None:
        _check_tools(tools)
        self._context.tools = tuple(tools)

    @property
    def usage(self) -> Usage:
        """What the transcript that it began with and all runs since took, tools' own model work included."""
        return self._usage

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with every event, after those subscribed before, and wait for it. Returns how to stop that.

        The agent is idle only when its listeners have had the last event, so a listener must not wait for that.
        """
        return add_listener(self._listeners, listener)

    async def prompt(self, prompt: _Prompt) -> list[AgentMessage]:
        """Run with `prompt`. Returns the messages that the run added, when listeners have had its last event.

        How it went is in the last answer and in `last_error`. Raises AgentBusyError while a run is on, and
        ListenerError if a listener failed. Cancelling the wait aborts the run and waits for its end.
        """
        return await self._run(_messages(prompt))

    async def continue_(self) -> list[AgentMessage]:
        """Run without a new prompt: on results that wait for an answer, or on what is queued.

        Raises ContinueError if there is neither, and what :meth:`prompt` raises.
        """
        return await self._run([])

    def steer(self, message: str | AgentMessage) -> None:
        """Queue a message for the run that is on: it enters after the current batch of tool calls."""
        self.steering.put(_message(message))

    def follow_up(self, message: str | AgentMessage) -> None:
        """Queue a message for when the run would end."""
        self.follow_ups.put(_message(message))

    async def add_message(self, message: AgentMessage) -> None:
        """Put a message into the transcript without asking for an answer; while a run is on, when its turn has ended."""
        self._notes.put(message)
        if not self.running:
            await self._add_notes()

    def clear_queues(self) -> tuple[list[AgentMessage], list[AgentMessage]]:
        """Take back what is queued: steering messages, follow-ups."""
        return self.steering.clear(), self.follow_ups.clear()

    def abort(self, reason: str = "Operation aborted") -> None:
        """Tell the run to stop; it ends in order. What is queued stays queued. Does nothing when idle."""
        if self._abort is not None:
            self._abort.abort(reason)

    async def wait_idle(self) -> None:
        """Return when no run is on."""
        await self._idle.wait()

    def reset(self) -> None:
        """Forget transcript, queues, usage and error. Raises AgentBusyError while a run is on."""
        self._refuse_while_running("A run is on; abort it and wait for its end before a reset.")
        self._context.messages = []
        self.clear_queues()
        self._notes.clear()
        self._usage = Usage()
        self.last_error = None

    async def _run(self, prompts: Sequence[AgentMessage]) -> list[AgentMessage]:
        self._refuse_while_running(
            "A run is on. Use steer() to reach it now, or follow_up() for when it would end."
        )
        self._abort = AbortController()
        self._idle.clear()
        added: list[AgentMessage] = []
        try:
            added += await self._run_once(prompts, self._abort)
            while self._queued_at_the_end():
                added += await self._run_once([], self._abort)
            return added
        except ListenerError as error:
            self.last_error = str(error)
            raise
        finally:
            self._abort = None
            self.partial_message = None
            self.pending_tool_calls.clear()
            self._idle.set()

    async def _run_once(
        self, prompts: Sequence[AgentMessage], controller: AbortController
    ) -> list[AgentMessage]:
        delivery = Delivery(self._listeners, self._track, controller.signal, self.grace)
        try:
            return await drive(prompts, self._context, self._config(), delivery.tell, controller)
        finally:
            delivery.close()
            await self._add_notes()

    def _queued_at_the_end(self) -> bool:
        """Whether a message was queued when the loop had already looked for the last time."""
        waits = bool(self.steering or self.follow_ups)
        return waits and self._drained and self.last_error is None and not self._aborted

    @property
    def _aborted(self) -> bool:
        return self._abort is not None and self._abort.signal.aborted

    def _track(self, event: AgentEvent) -> None:
        match event:
            case MessageStart(message) if isinstance(message, AssistantMessage):
                self.partial_message = message
                self.last_error = None
            case MessageEnd(message):
                self._track_message(message)
            case ToolExecutionStart():
                self.pending_tool_calls[event.tool_call_id] = event
            case ToolExecutionEnd():
                self.pending_tool_calls.pop(event.tool_call_id, None)
            case AgentEnd():
                self._drained = not self.steering and not self.follow_ups

    def _track_message(self, message: AgentMessage) -> None:
        self._usage = total_usage([self._usage, usage_of([message])])
        if isinstance(message, AssistantMessage):
            self.partial_message = None
            if message.failed:
                self.last_error = message.error_message or message.stop_reason

    async def _add_notes(self) -> None:
        """Let in what was noted, and tell all of it, whichever listener fails. A run's abort bounds what they may take.

        Raises ListenerError for the first that failed.
        """
        failure: ListenerError | None = None
        delivery = Delivery(self._listeners, self._track, self.signal or AbortSignal(), self.grace)
        try:
            for note in self._notes.take():
                note = await admit_message(note, self._config(), self.signal or AbortSignal())
                self._context.messages.append(note)
                for event in (MessageStart(note), MessageEnd(note)):
                    try:
                        await delivery.tell(event)
                    except ListenerError as error:
                        failure = failure or error
        finally:
            delivery.close()
        if failure is not None:
            raise failure

    def _config(self) -> LoopConfig:
        return LoopConfig(
            stream=self.stream,
            model=self.model,
            thinking_level=self.thinking_level,
            options=self.options,
            convert_to_llm=self.convert_to_llm,
            transform_context=self.transform_context,
            get_api_key=self.get_api_key,
            prepare_next_turn=self._prepare_next_turn,
            should_stop_after_turn=self.should_stop_after_turn,
            before_tool_call=tuple(self.before_tool_call),
            after_tool_call=tuple(self.after_tool_call),
            gate=self.gate,
            admit_images=self.admit_images,
            tool_execution=self.tool_execution,
            steering=self.steering,
            follow_up=self.follow_ups,
            notes=self._notes,
            grace=self.grace,
        )

    async def _prepare_next_turn(self, turn: FinishedTurn) -> NextTurn:
        """The application's hook, then whatever was set on the agent meanwhile."""
        if self.prepare_next_turn is not None:
            change = self.prepare_next_turn(turn)
            if isinstance(change, Awaitable):
                change = await change
            if change is not None:
                self._context = change.context or self._context
                self.model = change.model or self.model
                self.thinking_level = change.thinking_level or self.thinking_level
        return NextTurn(context=self._context, model=self.model, thinking_level=self.thinking_level)

    def _refuse_while_running(self, text: str) -> None:
        if self.running:
            raise AgentBusyError(text)


def _message(message: str | AgentMessage) -> AgentMessage:
    return UserMessage(message) if isinstance(message, str) else message


def _messages(prompt: _Prompt) -> list[AgentMessage]:
    if isinstance(prompt, Sequence) and not isinstance(prompt, str):
        return list(prompt)
    return [_message(prompt)]


def _hooks(where: str, given: _H | Sequence[_H]) -> list[_H]:
    hooks = list(given) if isinstance(given, Sequence) else [given]
    for hook in hooks:
        if not callable(hook):
            raise TypeError(f"{where} takes functions, not {hook!r}.")
    return hooks


def _check_tools(tools: Sequence[Tool]) -> None:
    if not isinstance(tools, Iterable):
        raise TypeError(f"Tools come as a list. Give [{getattr(tools, 'name', tools)}].")
    names: set[str] = set()
    for tool in tools:
        if not isinstance(tool, Tool):
            raise TypeError(not_a_tool(tool))
        if not tool.name:
            raise SchemaError("A tool has no name; give each tool one.")
        if tool.name in names:
            raise SchemaError(f"There are two tools named {tool.name!r}; rename one or leave it out.")
        names.add(tool.name)
        try:
            check_parameters(tool.parameters)
        except SchemaError as error:
            raise SchemaError(f"Tool {tool.name!r} has no valid schema: {error}") from None
