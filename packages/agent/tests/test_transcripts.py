"""Whatever tools, hooks and listeners do, and whenever a run is stopped, the next request is accepted.

Each sample is a run in which things raise, hang, cancel themselves, block or exit, and which may be aborted
or cancelled at any event. Afterwards every call has its one result, listeners have been told what is in the
transcript, nothing queued is lost, and the agent answers another prompt whose request passes each acceptor.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from cantle_agent.agent import Agent
from cantle_agent.config import Block, ChangeArguments, FinishedToolCall, RequestedToolCall, ResultChange
from cantle_agent.errors import ListenerError
from cantle_agent.events import AgentEvent
from cantle_agent.messages import convert_to_llm
from cantle_agent.tool import Tool, ToolContext, ToolResult
from cantle_ai.apis.openai_completions_compat import compat_of
from cantle_ai.apis.openai_completions_payload import request_body
from cantle_ai.content import TextContent
from cantle_ai.context import Context
from cantle_ai.history import replayable
from cantle_ai.messages import UserMessage
from cantle_ai.model import Model, Provider, StreamOptions
from cantle_ai.models import Models
from cantle_ai.testing.checker import checked_function
from cantle_ai.testing.response import CallBlock, Failure, Response, TextBlock
from cantle_ai.testing.scripted import ScriptedModel
from cantle_ai.testing.server.dialects.openai_completions_request import check_request
from cantle_ai.testing.server.server import StrictServer
from cantle_ai.testing.server.strictness import Strictness
from packages.agent.tests.support import Told, check_events, check_transcript, make_tool, recorded
from tests.support.samples import samples

GRACE = {"abort": 0.005, "cancel": 0.05}
"""A cancelled run is torn off when its grace is over, so it must not be over because the machine is busy."""

Acceptor = Callable[[Context], None]
"""Raises for a context that no request can be made of."""

WIRE = Model(
    id="strict",
    provider="strict",
    api="openai-completions",
    base_url="http://127.0.0.1:9/v1",
    input=("text", "image"),
)


def consistent(context: Context) -> None:
    """The rules of a transcript, of what is left of it for a request."""
    check_transcript(list(replayable(context.messages)))


def strict_body(context: Context) -> None:
    """A chat-completions request of it, as the strictest vendor would read it."""
    body = request_body(WIRE, context, StreamOptions(), compat_of(WIRE))
    headers = {
        "authorization": "Bearer key",
        "content-type": "application/json",
        "accept": "text/event-stream",
    }
    check_request(headers, body, Strictness())


ACCEPTORS: list[Acceptor] = [consistent, strict_body]

TOOLS = ["fine", "raises", "hangs", "obeys", "cancels", "exits", "tells", "terminates", "odd", "missing"]
HOOKS = ["fine", "blocks", "ends", "raises", "hangs", "changes", "spoils", "cancels"]
LISTENERS = ["raises", "hangs", "cancels", "steers", "follows", "notes"]


class Turn(Struct, frozen=True):
    """One scripted answer: its calls by the tool's behaviour, and how it ends."""

    calls: list[str]
    ending: str
    text: str = "some text"


class Plan(Struct, frozen=True):
    """One sample. Moments count events, or hook calls."""

    turns: list[Turn]
    sequential: bool
    before: dict[int, str]
    gate: dict[int, str]
    after: dict[int, str]
    listener: dict[int, str]
    stop_at: int | None
    stop_by: str


MOMENTS = st.integers(0, 40)
PLANS = st.builds(
    Plan,
    turns=st.lists(
        st.builds(
            Turn,
            calls=st.lists(st.sampled_from(TOOLS), max_size=4),
            ending=st.sampled_from(["whole"] * 6 + ["length", "error", "cut", "stop"]),
            text=st.sampled_from(["some text"] * 3 + ["", " \n"]),
        ),
        min_size=1,
        max_size=4,
    ),
    sequential=st.booleans(),
    before=st.dictionaries(st.integers(0, 8), st.sampled_from(HOOKS), max_size=3),
    gate=st.dictionaries(st.integers(0, 8), st.sampled_from(HOOKS), max_size=2),
    after=st.dictionaries(st.integers(0, 8), st.sampled_from(HOOKS), max_size=2),
    listener=st.dictionaries(MOMENTS, st.sampled_from(LISTENERS), max_size=3),
    stop_at=st.none() | MOMENTS,
    stop_by=st.sampled_from(["abort", "cancel"]),
)


class Chaos:
    """Plays a plan against an agent. Whatever hangs has the run stopped, so that each sample ends."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        script = [response_of(turn) for turn in plan.turns]
        model = ScriptedModel([*script, *["that is all"] * 12])
        self.told = Told()
        self.agent = Agent(
            stream=checked_function(model.stream),
            model=model.model,
            tools=self.tools(),
            grace=GRACE[plan.stop_by],
            tool_execution="sequential" if plan.sequential else "parallel",
            before_tool_call=[self.hook(plan.before, HOOK_DECISIONS)],
            after_tool_call=[self.hook(plan.after, RESULT_DECISIONS)],
            gate=self.hook(plan.gate, HOOK_DECISIONS),
        )
        self.agent.subscribe(self.listen)
        self.agent.subscribe(self.told)
        self.queued: list[str] = []
        self.events = 0
        self.task: asyncio.Task[Any] | None = None

    async def play(self) -> None:
        self.task = asyncio.create_task(self.agent.prompt("go"))
        await asyncio.wait([self.task], timeout=10)
        assert self.task.done(), f"{self.plan} does not end"
        if not self.task.cancelled() and (error := self.task.exception()) is not None:
            assert isinstance(error, ListenerError), error

    def stop(self) -> None:
        if self.plan.stop_by == "abort":
            self.agent.abort()
        elif self.task is not None and not self.task.cancelling():
            self.task.cancel()

    async def hang(self) -> None:
        asyncio.get_running_loop().call_soon(self.stop)
        await asyncio.Event().wait()

    async def listen(self, event: AgentEvent) -> None:
        moment, self.events = self.events, self.events + 1
        if moment == self.plan.stop_at:
            self.stop()
        match self.plan.listener.get(moment):
            case "raises":
                raise ValueError("a listener broke")
            case "hangs":
                await self.hang()
            case "cancels":
                raise asyncio.CancelledError
            case "steers":
                self.agent.steer(self.message())
            case "follows":
                self.agent.follow_up(self.message())
            case "notes":
                await self.agent.add_message(self.message())

    def message(self) -> UserMessage:
        self.queued.append(f"queued {len(self.queued)}")
        return UserMessage(self.queued[-1])

    def hook(self, plan: dict[int, str], decisions: dict[str, Any]) -> Any:
        count = 0

        async def decide(seen: RequestedToolCall | FinishedToolCall) -> Any:
            nonlocal count
            kind = plan.get(count, "fine")
            count += 1
            if kind == "hangs":
                await self.hang()
            if kind == "raises":
                raise ValueError("a hook broke")
            if kind == "cancels":
                raise asyncio.CancelledError
            return decisions.get(kind)

        return decide

    def tools(self) -> list[Tool]:
        return [make_tool(name, getattr(self, name, None)) for name in TOOLS if name != "missing"]

    async def raises(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        raise ValueError

    async def hangs(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        await self.hang()
        raise AssertionError

    async def obeys(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        asyncio.get_running_loop().call_soon(self.stop)
        await context.signal.wait()
        return ToolResult.of("what I had")

    async def cancels(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        raise asyncio.CancelledError

    async def exits(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        raise SystemExit(1)

    async def tells(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        context.progress(ToolResult.of("half"))
        await asyncio.sleep(0)
        context.progress(ToolResult.of("more"))
        return ToolResult()

    async def terminates(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        return ToolResult(content=[TextContent("end")], terminate=True)

    async def odd(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        return "not a result"  # type: ignore[return-value]


HOOK_DECISIONS: dict[str, Any] = {
    "blocks": Block(reason="no"),
    "ends": Block(terminate=True),
    "changes": ChangeArguments({"n": 1}),
    "spoils": ChangeArguments([]),  # type: ignore[arg-type]
}
RESULT_DECISIONS: dict[str, Any] = {
    "blocks": ResultChange(content=[], is_error=True),
    "ends": ResultChange(terminate=True),
    "changes": ResultChange(details={"n": 1}),
    "spoils": ResultChange(content=["text"]),  # type: ignore[list-item]
}


def response_of(turn: Turn) -> Response:
    calls = [
        CallBlock(name=name, arguments='{"torn' if index == 3 else {"n": index})
        for index, name in enumerate(turn.calls)
    ]
    blocks: tuple[TextBlock | CallBlock, ...] = (TextBlock(text="some text"), *calls)
    match turn.ending:
        case "length" | "stop":
            return Response(content=blocks, stop_reason=turn.ending)
        case "error":
            return Response(content=blocks, error=Failure(message="broke"), after=2)
        case "cut":
            return Response(content=blocks, cut=True, after=2)
    return Response(content=blocks)


async def check(plan: Plan, acceptors: list[Acceptor]) -> Context:
    """Play `plan`, look at what it left, and return the context of one more prompt."""
    chaos = Chaos(plan)
    await chaos.play()
    agent, told = chaos.agent, chaos.told
    assert not agent.running and not agent.pending_tool_calls and agent.partial_message is None
    check_transcript(agent.messages)
    check_events(told.events)
    assert recorded(told.events) == agent.messages
    waiting = [*agent.steering.pending, *agent.follow_ups.pending]
    places = [message.text for message in [*agent.messages, *waiting] if isinstance(message, UserMessage)]
    assert sorted(text for text in places if text != "go") == sorted(chaos.queued)
    agent.clear_queues()
    last = ScriptedModel(["still here"])
    agent.stream = last.stream
    agent.before_tool_call.clear()
    chaos.events = 10_000
    await agent.prompt("and now?")
    assert agent.last_error is None
    for accept in acceptors:
        accept(last.requests[0])
    return last.requests[0]


@pytest.mark.timeout(samples(full=600, quick=60))
@settings(max_examples=samples(full=2000, quick=120), deadline=None)
@given(plan=PLANS)
def test_every_run_leaves_a_transcript_that_is_accepted(plan: Plan):
    asyncio.run(check(plan, ACCEPTORS))


@pytest.mark.parametrize("stop_by", ["abort", "cancel"])
@pytest.mark.parametrize("sequential", [False, True], ids=["parallel", "sequential"])
def test_a_run_can_be_stopped_at_every_event(stop_by: str, sequential: bool):
    turns = [Turn(["tells", "fine", "raises"], "whole"), Turn(["obeys", "fine"], "whole")]
    nothing: dict[int, str] = {}
    for moment in range(60):
        plan = Plan(
            turns, sequential, nothing, nothing, nothing, {5: "steers", 9: "follows"}, moment, stop_by
        )
        asyncio.run(check(plan, ACCEPTORS))


@pytest.mark.parametrize("kind", ["raises", "hangs", "cancels"])
def test_a_listener_can_fail_at_every_event(kind: str):
    nothing: dict[int, str] = {}
    for moment in range(40):
        plan = Plan(
            [Turn(["tells", "fine"], "whole")],
            False,
            nothing,
            nothing,
            nothing,
            {moment: kind},
            None,
            "abort",
        )
        asyncio.run(check(plan, ACCEPTORS))


@pytest.mark.timeout(samples(full=600, quick=60))
async def test_the_strict_server_accepts_what_such_runs_leave():
    """Over real HTTP, for some of the samples above."""
    plans: list[Plan] = []

    @settings(max_examples=samples(full=200, quick=15), deadline=None, database=None)
    @given(plan=PLANS)
    def collect(plan: Plan) -> None:
        plans.append(plan)

    collect()
    async with StrictServer(lambda request: "accepted", prefix=False) as server:
        models = Models(environ={})
        models.add_provider(
            Provider(id="strict", name="Strict", base_url=server.base_url, api="openai-completions"), [WIRE]
        )
        model = Model(
            id="strict",
            provider="strict",
            api="openai-completions",
            base_url=server.base_url,
            input=("text", "image"),
        )
        try:
            for plan in plans:
                context = await check(plan, [])
                answer = await models.complete(model, context, StreamOptions(api_key="key"))
                assert answer.text == "accepted", (answer.error_message, plan)
        finally:
            await models.aclose()
        server.assert_clean()


def test_the_acceptors_can_refuse():
    from cantle_ai.content import ToolCall
    from cantle_ai.messages import AssistantMessage

    asks = AssistantMessage([ToolCall("1", "x")], "a", "p", "m", stop_reason="toolUse")
    with pytest.raises(AssertionError, match="lack results"):
        check_transcript([UserMessage("go"), asks, UserMessage("?")])
    with pytest.raises(Exception, match="last message"):
        strict_body(
            Context(
                messages=convert_to_llm(
                    [UserMessage("go"), AssistantMessage([TextContent("x")], "a", "p", "m")]
                )
            )
        )
