"""Agents for tests: tools in a line, what a run told, and the rules that a transcript has to keep."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from cantle_agent.agent import Agent
from cantle_agent.config import AgentContext, LoopConfig
from cantle_agent.events import AgentEvent, MessageEnd, MessageStart, ToolExecutionEnd, ToolExecutionStart
from cantle_agent.loop import run_loop
from cantle_agent.messages import AgentMessage
from cantle_agent.tool import Tool, ToolContext, ToolResult
from cantle_ai.abort import AbortSignal
from cantle_ai.messages import AssistantMessage, ToolResultMessage, UserMessage
from cantle_ai.testing.response import CallBlock, Response, TextBlock
from cantle_ai.testing.scripted import ScriptedModel

Execute = Callable[[dict[str, Any], ToolContext], Awaitable[ToolResult]]

ANYTHING: dict[str, Any] = {"type": "object"}


def call(
    name: str = "echo", arguments: dict[str, object] | str | None = None, id: str | None = None
) -> CallBlock:
    return CallBlock(name=name, arguments={} if arguments is None else arguments, id=id)


def says(text: str, *calls: CallBlock, **fields: Any) -> Response:
    """An answer of some text and calls."""
    blocks = ([TextBlock(text=text)] if text else []) + list(calls)
    return Response(content=tuple(blocks), **fields)


def make_tool(name: str = "echo", execute: Execute | None = None, **fields: Any) -> Tool:
    """A tool that answers its own arguments, unless it is told what to do."""

    async def echo(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        return ToolResult.of(f"{name}: {arguments}")

    return Tool(
        name=name,
        description=f"The tool {name}",
        parameters=fields.pop("parameters", ANYTHING),
        execute=execute or echo,
        **fields,
    )


class Told:
    """A listener that remembers."""

    def __init__(self) -> None:
        self.events: list[AgentEvent] = []

    async def __call__(self, event: AgentEvent) -> None:
        self.events.append(event)

    @property
    def types(self) -> list[str]:
        """Event types, updates of one message once, message events with their role."""
        names: list[str] = []
        for event in self.events:
            name: str = event.type
            if isinstance(event, MessageStart | MessageEnd):
                name += f" {event.message.role}"
            if not (name.endswith("_update") and names and names[-1] == name):
                names.append(name)
        return names

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def finished(self) -> list[str]:
        """Tools in the order in which their calls ended."""
        return [event.tool_name for event in self.of(ToolExecutionEnd)]


def make_agent(
    responses: Any, tools: Sequence[Tool] = (), **fields: Any
) -> tuple[Agent, ScriptedModel, Told]:
    """An agent with a scripted model, and a listener that is subscribed to it."""
    model = ScriptedModel(responses)
    agent = Agent(stream=model.stream, model=model.model, tools=tools, **fields)
    told = Told()
    agent.subscribe(told)
    return agent, model, told


async def run(
    responses: Any,
    tools: Sequence[Tool] = (),
    *,
    prompts: Sequence[AgentMessage] | None = None,
    messages: Iterable[AgentMessage] = (),
    signal: AbortSignal | None = None,
    emit: Callable[[AgentEvent], Awaitable[None]] | None = None,
    **config: Any,
) -> tuple[AgentContext, Told, ScriptedModel]:
    """One bare loop, from a prompt unless others are given."""
    model = responses if isinstance(responses, ScriptedModel) else ScriptedModel(responses)
    context = AgentContext(system_prompt="Be brief.", messages=list(messages), tools=tools)
    told = Told()

    async def tell(event: AgentEvent) -> None:
        await told(event)
        if emit is not None:
            await emit(event)

    prompts = [UserMessage("go")] if prompts is None else prompts
    loop = LoopConfig(stream=model.stream, model=model.model, **config)
    await run_loop(prompts, context, loop, tell, signal)
    check_transcript(context.messages)
    return context, told, model


def results(messages: Iterable[AgentMessage]) -> list[ToolResultMessage]:
    return [message for message in messages if isinstance(message, ToolResultMessage)]


def answers(messages: Iterable[AgentMessage]) -> list[AssistantMessage]:
    return [message for message in messages if isinstance(message, AssistantMessage)]


def last_answer(messages: Sequence[AgentMessage]) -> AssistantMessage:
    """The message at the end, which must be an answer."""
    assert isinstance(messages[-1], AssistantMessage)
    return messages[-1]


def shape(messages: Iterable[AgentMessage]) -> list[str]:
    """A transcript at a glance: roles, with texts of what users and tools said."""
    lines: list[str] = []
    for message in messages:
        if isinstance(message, UserMessage | ToolResultMessage):
            lines.append(f"{message.role} {message.text}")
        elif isinstance(message, AssistantMessage):
            lines.append(f"assistant {message.stop_reason}")
        else:
            lines.append(message.role)
    return lines


def check_transcript(messages: Sequence[AgentMessage]) -> None:
    """Every call of a whole answer is answered once, in order, directly after the answer; nothing else is answered."""
    waiting: list[str] = []
    for place, message in enumerate(messages):
        where = f"message {place} of {shape(messages)}"
        if isinstance(message, ToolResultMessage):
            assert waiting and waiting[0] == message.tool_call_id, f"{where}: a result out of order"
            del waiting[0]
            continue
        assert not waiting, f"{where}: {len(waiting)} calls lack results"
        if isinstance(message, AssistantMessage):
            assert message.stop_reason != "pending", f"{where}: an answer that has not ended"
            if message.stop_reason not in ("error", "aborted"):
                waiting = [call.id for call in message.tool_calls]
    assert not waiting, f"{len(waiting)} calls lack results at the end of {shape(messages)}"


def check_events(events: Sequence[AgentEvent], *, whole: bool = True) -> None:
    """Starts and ends in pairs, calls inside turns, turns inside the run. `whole` asks for the last end, too."""
    open_calls: dict[str, str] = {}
    message_open = turn_open = run_open = False
    for event in events:
        match event.type:
            case "agent_start":
                assert not run_open
                run_open = True
            case "agent_end":
                assert run_open and not turn_open
                run_open = False
            case "turn_start":
                assert run_open and not turn_open
                turn_open = True
            case "turn_end":
                assert turn_open and not message_open and not open_calls
                turn_open = False
            case "message_start":
                assert not message_open
                message_open = True
            case "message_update":
                assert message_open
            case "message_end":
                assert message_open
                message_open = False
        if isinstance(event, ToolExecutionStart):
            assert turn_open and not message_open and event.tool_call_id not in open_calls
            open_calls[event.tool_call_id] = event.tool_name
        elif event.type == "tool_execution_update":
            assert event.tool_call_id in open_calls
        elif isinstance(event, ToolExecutionEnd):
            assert open_calls.pop(event.tool_call_id) == event.tool_name
    if whole:
        assert not (message_open or turn_open or run_open or open_calls)


def recorded(events: Iterable[AgentEvent]) -> list[AgentMessage]:
    """What a listener that writes messages down has at the end."""
    return [event.message for event in events if isinstance(event, MessageEnd)]


class Doors:
    """Tools that wait until the test lets them go on, and say when they have begun."""

    def __init__(self) -> None:
        self._open: dict[str, asyncio.Event] = {}
        self._begun: dict[str, asyncio.Event] = {}

    def tool(self, name: str, **fields: Any) -> Tool:
        opened = self._open[name] = asyncio.Event()
        begun = self._begun[name] = asyncio.Event()

        async def wait(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
            begun.set()
            await opened.wait()
            return ToolResult.of(f"{name} done")

        return make_tool(name, wait, **fields)

    def open(self, name: str) -> None:
        self._open[name].set()

    async def begun(self, name: str) -> None:
        await self._begun[name].wait()

    def has_begun(self, name: str) -> bool:
        return self._begun[name].is_set()
