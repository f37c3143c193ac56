"""The state around the loop."""

import asyncio
from typing import Any

import pytest

from cantle_agent.agent import Agent
from cantle_agent.config import FinishedToolCall, FinishedTurn, NextTurn, RequestedToolCall
from cantle_agent.errors import AgentBusyError, ContinueError, ListenerError, SchemaError
from cantle_agent.events import AgentEvent, MessageStart
from cantle_agent.queues import MessageQueue
from cantle_agent.tool import Tool, ToolContext, ToolResult
from cantle_ai.messages import UserMessage
from cantle_ai.testing.response import Count, Failure
from cantle_ai.testing.scripted import ScriptedModel, scripted_model
from cantle_ai.usage import Usage
from packages.agent.tests.support import (
    Doors,
    Told,
    call,
    check_events,
    check_transcript,
    make_agent,
    make_tool,
    recorded,
    results,
    says,
    shape,
)


async def test_a_prompt_may_be_text_a_message_or_several():
    agent, _, told = make_agent(["one", "two", "three"])
    assert shape(await agent.prompt("text")) == ["user text", "assistant stop"]
    await agent.prompt(UserMessage("message"))
    await agent.prompt([UserMessage("a"), UserMessage("b")])
    assert shape(agent.messages)[2:] == [
        *["user message", "assistant stop"],
        *["user a", "user b", "assistant stop"],
    ]
    check_events(told.events)


async def test_a_conversation_goes_on_from_given_messages():
    first, _, _ = make_agent(["one"])
    await first.prompt("hi")
    agent, model, _ = make_agent(["two"], messages=first.messages, system_prompt="Be brief.")
    await agent.prompt("and now?")
    assert [message.role for message in model.requests[0].messages] == ["user", "assistant", "user"]
    assert len(first.messages) == 2


async def test_partial_message_and_pending_calls_are_live():
    doors = Doors()
    agent, _, _ = make_agent(
        [says("thinking", call("a"), call("b")), "done"], [doors.tool("a"), doors.tool("b")]
    )
    partials: list[str] = []

    def watch(event: AgentEvent) -> None:
        if event.type == "message_update":
            assert agent.partial_message is event.message
            partials.append(event.message.text)
        if event.type == "message_end":
            assert agent.partial_message is None

    agent.subscribe(watch)
    task = asyncio.create_task(agent.prompt("go"))
    async with asyncio.timeout(5):
        await doors.begun("b")
        assert [event.tool_name for event in agent.pending_tool_calls.values()] == ["a", "b"]
        doors.open("b")
        while len(agent.pending_tool_calls) > 1:
            await asyncio.sleep(0)
        doors.open("a")
        await task
    assert not agent.pending_tool_calls and agent.partial_message is None
    assert "thinking" in partials


async def test_running_and_idle():
    doors = Doors()
    agent, _, _ = make_agent([says("", call("a")), "done"], [doors.tool("a")])
    await agent.wait_idle()
    assert not agent.running and agent.signal is None
    task = asyncio.create_task(agent.prompt("go"))
    await doors.begun("a")
    assert agent.running and agent.signal is not None
    waiter = asyncio.create_task(agent.wait_idle())
    await asyncio.sleep(0)
    assert not waiter.done()
    doors.open("a")
    await task
    await waiter
    assert not agent.running


async def test_last_error_is_that_of_the_last_run():
    agent, _, _ = make_agent([says("", error=Failure(message="overloaded")), "fine"])
    await agent.prompt("go")
    assert agent.last_error == "overloaded"
    agent.messages.pop()
    await agent.continue_()
    assert agent.last_error is None
    assert shape(agent.messages) == ["user go", "assistant stop"]


async def test_usage_counts_answers_and_what_tools_used_themselves():
    async def costly(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        return ToolResult(usage=Usage(input=100, output=10, total_tokens=110))

    counted = {"usage": Count(input=1, output=2)}
    before = [UserMessage("hi")]
    agent, _, _ = make_agent(
        [says("", call("costly"), **counted), says("done", **counted)],
        [make_tool("costly", costly)],
        messages=before,
    )
    await agent.prompt("go")
    assert (agent.usage.input, agent.usage.output) == (102, 14)
    again, _, _ = make_agent([], messages=agent.messages)
    assert (again.usage.input, again.usage.output) == (102, 14)
    agent.reset()
    assert agent.usage == Usage()


async def test_what_is_set_in_a_run_holds_from_the_next_generation():
    asked: list[Any] = []
    scripted = ScriptedModel([says("", call()), "done"])

    def stream(model: Any, context: Any, options: Any) -> Any:
        asked.append(
            (model.id, options.thinking, context.system_prompt, [tool.name for tool in context.tools])
        )
        return scripted.stream(model, context, options)

    agent = Agent(stream=stream, model=scripted.model, tools=[make_tool()], system_prompt="Old.")

    async def change(event: AgentEvent) -> None:
        if event.type == "tool_execution_end":
            agent.model = scripted_model("other")
            agent.thinking_level = "high"
            agent.system_prompt = "New."
            agent.tools = [make_tool("fresh")]

    agent.subscribe(change)
    await agent.prompt("go")
    assert asked == [("scripted", "off", "Old.", ["echo"]), ("other", "high", "New.", ["fresh"])]


async def test_what_a_hook_swaps_is_the_agents_state_afterwards():
    def prepare(turn: FinishedTurn) -> NextTurn:
        return NextTurn(model=scripted_model("other"), thinking_level="low")

    agent, _, _ = make_agent([says("", call()), "done"], [make_tool()], prepare_next_turn=prepare)
    await agent.prompt("go")
    assert (agent.model.id, agent.thinking_level) == ("other", "low")


# --- queues


async def test_steering_and_follow_ups_reach_the_run():
    agent, _, _ = make_agent([says("", call()), "one", "two"], [make_tool()])

    def queue(event: AgentEvent) -> None:
        if event.type == "tool_execution_start":
            agent.follow_up("later")
            agent.steer("now")

    agent.subscribe(queue)
    await agent.prompt("go")
    assert shape(agent.messages)[3:] == ["user now", "assistant stop", "user later", "assistant stop"]


async def test_queues_can_be_seen_changed_and_taken_back():
    agent, _, _ = make_agent([])
    changes: list[int] = []
    agent.steering.on_change = lambda: changes.append(len(agent.steering))
    agent.steer("a")
    agent.steer(UserMessage("b"))
    agent.follow_up("c")
    assert [message.text for message in agent.steering.pending] == ["a", "b"]
    steering, follow_ups = agent.clear_queues()
    assert (shape(steering), shape(follow_ups)) == (["user a", "user b"], ["user c"])
    assert changes == [1, 2, 0] and not agent.steering and not agent.follow_ups


def test_a_queue_gives_one_or_all_and_tells_of_changes_only():
    changes: list[None] = []
    queue = MessageQueue(on_change=lambda: changes.append(None))
    assert queue.take() == [] and queue.clear() == [] and not changes
    for text in "abc":
        queue.put(UserMessage(text))
    assert shape(queue.take()) == ["user a"]
    queue.mode = "all"
    assert shape(queue.take()) == ["user b", "user c"]
    assert len(changes) == 5


async def test_continue_runs_on_what_is_queued():
    agent, _, _ = make_agent(["one", "two"])
    with pytest.raises(ContinueError):
        await agent.continue_()
    assert not agent.running
    await agent.prompt("go")
    agent.follow_up("more")
    await agent.continue_()
    assert shape(agent.messages)[2:] == ["user more", "assistant stop"]


async def test_a_message_added_when_idle_joins_the_transcript_and_is_told():
    agent, _, told = make_agent([])
    await agent.add_message(UserMessage("for later"))
    assert shape(agent.messages) == ["user for later"]
    assert told.types == ["message_start user", "message_end user"]


async def test_a_message_added_by_the_last_listener_is_not_lost():
    agent, _, told = make_agent(["done"])

    async def add(event: AgentEvent) -> None:
        if event.type == "agent_end":
            await agent.add_message(UserMessage("note"))

    agent.subscribe(add)
    await agent.prompt("go")
    assert shape(agent.messages)[-1] == "user note"
    assert recorded(told.events) == agent.messages


# --- listeners


async def test_listeners_are_called_in_order_and_awaited():
    agent, _, _ = make_agent(["done"])
    log: list[str] = []

    async def slow(event: AgentEvent) -> None:
        log.append("slow begins")
        await asyncio.sleep(0)
        log.append("slow ends")

    agent.subscribe(slow)
    agent.subscribe(lambda event: log.append("quick"))
    await agent.prompt("go")
    assert log == ["slow begins", "slow ends", "quick"] * (len(log) // 3)


async def test_the_agent_is_idle_only_after_its_listeners():
    agent, _, _ = make_agent(["done"])
    states: list[bool] = []

    async def last(event: AgentEvent) -> None:
        if event.type == "agent_end":
            await asyncio.sleep(0)
            states.append(agent.running)

    agent.subscribe(last)
    await agent.prompt("go")
    assert states == [True] and not agent.running


async def test_a_listener_can_leave():
    agent, _, _ = make_agent(["one", "two"])
    seen: list[str] = []

    def once(event: AgentEvent) -> None:
        seen.append(event.type)
        leave()
        leave()

    leave = agent.subscribe(once)
    await agent.prompt("go")
    assert seen == ["agent_start"]


EVENTS = [
    "agent_start", "turn_start", "message_start", "message_update", "message_end",
    "tool_execution_start", "tool_execution_update", "tool_execution_end", "turn_end", "agent_end",
]  # fmt: skip


@pytest.mark.parametrize("kind", EVENTS)
@pytest.mark.parametrize("plain", [True, False], ids=["function", "coroutine function"])
async def test_a_listener_that_raises_keeps_no_event_from_others_and_fails_the_run(kind: str, plain: bool):
    async def execute(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        context.progress(ToolResult.of("half"))
        return ToolResult.of("whole")

    tools: list[Tool] = [make_tool(execute=execute)]
    agent, _, before = make_agent([says("hm", call(), call()), "done", "again", "and again"], tools)
    raised: list[AgentEvent] = []

    def broken(event: AgentEvent) -> None:
        if event.type == kind and not raised:
            raised.append(event)
            raise ValueError("disk full")

    async def broken_too(event: AgentEvent) -> None:
        broken(event)

    agent.subscribe(broken if plain else broken_too)
    after = Told()
    agent.subscribe(after)
    with pytest.raises(ListenerError) as failed:
        await agent.prompt("go")
    assert "broken" in failed.value.listener and f"failed on {kind}: disk full" in str(failed.value)
    assert isinstance(failed.value.__cause__, ValueError)
    assert agent.last_error == str(failed.value)
    assert after.events == before.events
    check_events(after.events)
    check_transcript(agent.messages)
    assert recorded(after.events) == agent.messages
    assert not agent.running
    await agent.prompt("still there?")
    assert agent.last_error is None and shape(agent.messages)[-1] == "assistant stop"


async def test_a_listener_that_lets_a_cancellation_out_has_failed_like_any_other():
    agent, _, told = make_agent(["one", "two"])

    async def cancelled(event: AgentEvent) -> None:
        if event.type == "turn_start":
            raise asyncio.CancelledError

    leave = agent.subscribe(cancelled)
    with pytest.raises(ListenerError, match="CancelledError"):
        await agent.prompt("go")
    check_events(told.events)
    leave()
    await agent.prompt("again")


async def test_after_a_failing_listener_queued_messages_are_still_queued():
    agent, _, _ = make_agent([says("", call()), "never"], [make_tool()])

    def broken(event: AgentEvent) -> None:
        if event.type == "tool_execution_start":
            agent.steer("still here")
            raise ValueError

    agent.subscribe(broken)
    with pytest.raises(ListenerError):
        await agent.prompt("go")
    assert len(agent.steering) == 1


# --- registration


@pytest.mark.parametrize(
    ("tools", "problem"),
    [
        ([make_tool("a"), make_tool("a")], "two tools named 'a'"),
        ([make_tool("")], "no name"),
        ([make_tool("a", parameters={"type": "text"})], "Tool 'a' has no valid schema"),
        ([make_tool("a", parameters={"properties": {"b": {"type": "int"}}})], "'int' is not a JSON type"),
    ],
)
def test_a_tool_that_could_never_be_called_is_refused_at_once(tools: list[Tool], problem: str):
    with pytest.raises(SchemaError, match=problem):
        make_agent([], tools)
    agent, _, _ = make_agent([])
    with pytest.raises(SchemaError, match=problem):
        agent.tools = tools


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"tools": [print]}, "print is not a tool. Make one of a function with @tool"),
        ({"tools": make_tool("a")}, r"Tools come as a list\. Give \[a\]"),
        ({"before_tool_call": ["x"]}, "before_tool_call takes functions, not 'x'"),
        ({"after_tool_call": 3}, "after_tool_call takes functions, not 3"),
    ],
)
def test_what_is_no_tool_and_no_hook_is_refused_at_once(fields: dict[str, Any], problem: str):
    with pytest.raises(TypeError, match=problem):
        make_agent([], **fields)


async def test_a_single_hook_needs_no_list():
    asked: list[str] = []

    def before(request: RequestedToolCall) -> None:
        asked.append(f"before {request.call.name}")

    def after(finished: FinishedToolCall) -> None:
        asked.append(f"after {finished.call.name}")

    agent, _, _ = make_agent(
        [says("", call("a")), "done"], [make_tool("a")], before_tool_call=before, after_tool_call=after
    )
    await agent.prompt("go")
    assert asked == ["before a", "after a"]


async def test_the_transcript_is_not_replaced_in_a_run():
    doors = Doors()
    agent, _, _ = make_agent([says("", call("a")), "done"], [doors.tool("a")])
    task = asyncio.create_task(agent.prompt("go"))
    await doors.begun("a")
    with pytest.raises(AgentBusyError, match="transcript"):
        agent.messages = []
    doors.open("a")
    await task
    agent.messages = [UserMessage("fresh")]
    assert shape(agent.messages) == ["user fresh"]


async def test_results_carry_their_messages_into_events_once():
    agent, _, told = make_agent([says("", call()), "done"], [make_tool()])
    await agent.prompt("go")
    assert [event.message for event in told.of(MessageStart)] == agent.messages
    assert len(results(agent.messages)) == 1
