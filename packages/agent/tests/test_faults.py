"""Group E of the faults that other agents had: each as a test."""

import asyncio
from typing import Any

import pytest

from cantle_agent.errors import AgentBusyError
from cantle_agent.events import AgentEvent, MessageEnd, ToolExecutionEnd
from cantle_agent.messages import AgentMessage
from cantle_agent.tool import ToolContext, ToolResult
from cantle_ai.content import ImageContent, TextContent
from cantle_ai.messages import UserMessage
from packages.agent.tests.support import (
    Doors,
    call,
    check_events,
    check_transcript,
    make_agent,
    make_tool,
    recorded,
    results,
    run,
    says,
    shape,
)


@pytest.mark.fault("E01")
@pytest.mark.parametrize("mode", ["parallel", "sequential"])
async def test_e01_an_abort_in_a_batch_leaves_no_call_without_a_result(mode: Any):
    begun = asyncio.Event()

    async def obedient(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        begun.set()
        await context.signal.wait()
        return ToolResult.of("stopped half-way", is_error=True)

    calls = [call("obedient"), call("other"), call("nope")]
    agent, _, told = make_agent(
        [says("", *calls), "never"],
        [make_tool("obedient", obedient, execution_mode="sequential"), make_tool("other")],
        tool_execution=mode,
    )
    task = asyncio.create_task(agent.prompt("go"))
    await begun.wait()
    agent.abort()
    await task
    assert [result.text for result in results(agent.messages)] == [
        "stopped half-way",
        "Operation aborted: the call was not run.",
        "Operation aborted: the call was not run.",
    ]
    assert all(result.is_error for result in results(agent.messages))
    assert len(told.of(ToolExecutionEnd)) == 3
    assert shape(agent.messages)[-1] == "assistant aborted"
    check_transcript(agent.messages)
    check_events(told.events)


@pytest.mark.fault("E02")
async def test_e02_steering_does_not_skip_the_rest_of_the_batch():
    agent, _, _ = make_agent(
        [says("", call("a"), call("a")), "done"], [make_tool("a", execution_mode="sequential")]
    )
    steered: list[str] = []

    def steer(event: AgentEvent) -> None:
        if event.type == "tool_execution_end" and not steered:
            steered.append("once")
            agent.steer("wait")

    agent.subscribe(steer)
    await agent.prompt("go")
    assert shape(agent.messages)[2:5] == ["toolResult a: {}", "toolResult a: {}", "user wait"]


@pytest.mark.fault("E03")
async def test_e03_results_are_recorded_as_asked_and_shown_as_they_finish():
    doors = Doors()
    agent, _, told = make_agent([says("", call("a"), call("b")), "done"], [doors.tool("a"), doors.tool("b")])

    def next_door(event: AgentEvent) -> None:
        if isinstance(event, ToolExecutionEnd):
            doors.open("a")

    agent.subscribe(next_door)
    doors.open("b")
    await agent.prompt("go")
    assert told.finished == ["b", "a"]
    assert [result.tool_name for result in results(recorded(told.events))] == ["a", "b"]


@pytest.mark.fault("E04")
async def test_e04_a_message_without_a_trigger_never_lands_between_call_and_result():
    agent, model, told = make_agent([says("", call()), "done"], [make_tool()])

    async def add(event: AgentEvent) -> None:
        if event.type == "tool_execution_start":
            await agent.add_message(UserMessage("by the way"))

    agent.subscribe(add)
    await agent.prompt("go")
    assert shape(agent.messages)[1:] == [
        "assistant toolUse",
        "toolResult echo: {}",
        "user by the way",
        "assistant stop",
    ]
    assert len(model.requests) == 2
    assert recorded(told.events) == agent.messages


@pytest.mark.fault("E05")
async def test_e05_result_events_never_come_before_their_answer_with_slow_listeners():
    agent, _, told = make_agent([says("", *[call()] * 5), "done"], [make_tool()])
    written: list[AgentMessage] = []

    async def slow_writer(event: AgentEvent) -> None:
        if isinstance(event, MessageEnd):
            for _ in range(10 if event.message.role == "assistant" else 1):
                await asyncio.sleep(0)
            written.append(event.message)

    agent.subscribe(slow_writer)
    await agent.prompt("go")
    assert written == agent.messages
    check_events(told.events)


@pytest.mark.fault("E06")
async def test_e06_a_second_prompt_in_a_run_is_refused_and_says_what_to_use():
    doors = Doors()
    agent, _, _ = make_agent([says("", call("a")), "done"], [doors.tool("a")])
    task = asyncio.create_task(agent.prompt("go"))
    await doors.begun("a")
    for second in (agent.prompt("more"), agent.continue_()):
        with pytest.raises(AgentBusyError, match=r"steer\(\).*follow_up\(\)"):
            await second
    doors.open("a")
    await task
    assert shape(agent.messages) == ["user go", "assistant toolUse", "toolResult a done", "assistant stop"]


@pytest.mark.fault("E06")
async def test_e06_images_of_a_steered_message_arrive():
    image = ImageContent("iVBORw0KGgoAAAAN", "image/png")
    agent, model, _ = make_agent(["done"])
    agent.steer(UserMessage([TextContent("look"), image]))
    await agent.prompt("go")
    assert model.requests[0].messages[1].content[1] is image


@pytest.mark.fault("E07")
async def test_e07_a_reset_in_a_run_is_refused():
    doors = Doors()
    agent, _, _ = make_agent([says("", call("a")), "done"], [doors.tool("a")])
    task = asyncio.create_task(agent.prompt("go"))
    await doors.begun("a")
    with pytest.raises(AgentBusyError, match="before a reset"):
        agent.reset()
    assert agent.pending_tool_calls and len(agent.messages) == 2
    doors.open("a")
    await task
    agent.follow_up("x")
    agent.reset()
    assert not agent.messages and not agent.follow_ups and agent.last_error is None


EDITS = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "edits": {
            "type": "array",
            "items": {"type": "object", "properties": {"old": {"type": "string"}}, "required": ["old"]},
        },
        "limit": {"type": "integer"},
    },
    "required": ["path", "edits"],
}


@pytest.mark.fault("E08")
@pytest.mark.parametrize(
    ("arguments", "ran"),
    [
        ({"path": "a", "edits": '[{"old": "x"}]'}, {"path": "a", "edits": [{"old": "x"}]}),
        ({"path": "a", "edits": {"old": "x"}}, {"path": "a", "edits": [{"old": "x"}]}),
        ({"path": "a", "edits": [], "limit": "5"}, {"path": "a", "edits": [], "limit": 5}),
        ({"path": "a", "edits": [], "limit": None}, {"path": "a", "edits": []}),
        ({}, "- path: missing"),
        ({"path": {"name": "a"}, "edits": []}, "- path: expected string, got object"),
        ("not json", "not a JSON object"),
        ('"text"', "not a JSON object"),
        ("[]", "not a JSON object"),
    ],
)
async def test_e08_odd_arguments_are_mended_or_refused_in_words(arguments: Any, ran: Any):
    seen: list[Any] = []

    async def execute(given: dict[str, Any], context: ToolContext) -> ToolResult:
        seen.append(given)
        return ToolResult.of("ok")

    tool = make_tool("edit", execute, parameters=EDITS)
    context, _, _ = await run([says("", call("edit", arguments)), "done"], [tool])
    (result,) = results(context.messages)
    if isinstance(ran, str):
        assert result.is_error and ran in result.text and not seen
    else:
        assert seen == [ran] and not result.is_error


@pytest.mark.fault("E09")
async def test_e09_a_follow_up_queued_at_the_very_end_runs_before_the_agent_is_idle():
    agent, _, told = make_agent(["one", "two", "three"])
    queued: list[str] = []

    async def late(event: AgentEvent) -> None:
        if event.type == "agent_end" and len(queued) < 2:
            queued.append(f"more {len(queued)}")
            (agent.follow_up if len(queued) == 1 else agent.steer)(queued[-1])

    agent.subscribe(late)
    added = await agent.prompt("go")
    assert shape(added) == shape(agent.messages)
    assert shape(agent.messages)[2:] == ["user more 0", "assistant stop", "user more 1", "assistant stop"]
    assert told.types.count("agent_end") == 3 and not agent.follow_ups and not agent.steering


@pytest.mark.fault("E10")
async def test_e10_a_hook_that_filters_messages_keeps_prompt_and_tools():
    tool = make_tool()
    agent, model, _ = make_agent(
        ["done"], [tool], system_prompt="Be brief.", transform_context=lambda messages, signal: messages[-1:]
    )
    await agent.prompt([UserMessage("a"), UserMessage("b")])
    (request,) = model.requests
    assert request.system_prompt == "Be brief." and list(request.tools) == [tool.definition()]
    assert [message.text for message in request.messages] == ["b"]
