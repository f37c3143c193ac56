"""A prompt from beginning to end: its events, its queues, its abort, its listeners."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from cantle.errors import ModelSelectionError, UserError
from cantle.hub.events import AgentSettled, QueueUpdate, RunEnd, SessionEvent, ThinkingLevelChanged
from cantle_agent.errors import AgentBusyError, ContinueError, ListenerError
from cantle_agent.events import MessageEnd, MessageUpdate, ToolExecutionUpdate
from cantle_agent.tool import Tool, ToolContext, ToolResult
from cantle_ai.codec import JsonObject
from cantle_ai.content import ImageContent
from cantle_ai.messages import AssistantMessage, ToolResultMessage, UserMessage
from cantle_ai.usage import Usage

NewStage = Callable[..., Awaitable[Any]]

DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
"""A PNG image of one pixel."""


def call(name: str, **arguments: object) -> dict[str, Any]:
    return {"content": [{"type": "toolCall", "name": name, "arguments": arguments}]}


def own_tool(execute: Callable[[JsonObject, ToolContext], Awaitable[ToolResult]], name: str = "own") -> Tool:
    return Tool(name=name, description=name, parameters={"type": "object", "properties": {}}, execute=execute)


@pytest.mark.parity("events.run")
async def test_a_run_tells_its_events_in_order(stage: NewStage) -> None:
    it = await stage([call("bash", command="echo hi"), "Done."])
    await it.session.prompt("go")
    assert it.kinds == [
        "agent_start",
        "turn_start",
        *["message_start", "message_end"] * 2,
        "tool_execution_start",
        "tool_execution_end",
        *["message_start", "message_end"],
        "turn_end",
        "turn_start",
        *["message_start", "message_end"],
        "turn_end",
        "agent_end",
        "agent_settled",
    ]
    end = next(event for event in it.events if isinstance(event, RunEnd))
    assert [message.role for message in end.messages] == ["user", "assistant", "toolResult", "assistant"]
    assert not end.will_retry
    assert it.events[-1] == AgentSettled(False)
    assert it.session.last_answer.text == "Done."
    assert not it.session.running


async def test_a_message_is_in_the_file_when_listeners_hear_of_it(stage: NewStage) -> None:
    it = await stage([call("bash", command="true"), "Done."])
    seen: list[list[str]] = []
    it.session.subscribe(lambda event: seen.append(it.saved()) if isinstance(event, MessageEnd) else None)
    await it.session.prompt("go")
    everything = ["user", "assistant:toolUse", "toolResult", "assistant:stop"]
    assert seen == [everything[: count + 1] for count in range(4)]  # E05: no result before its call


async def test_listeners_are_called_in_order_and_awaited(stage: NewStage) -> None:
    it = await stage(["Hello."])
    order: list[str] = []

    async def slow(event: SessionEvent) -> None:
        await asyncio.sleep(0)
        order.append(f"slow {event.type}")

    it.session.subscribe(slow)
    it.session.subscribe(lambda event: order.append(f"fast {event.type}"))
    await it.session.prompt("go")
    assert order[0::2] == [f"slow {event.type}" for event in it.events]
    assert order[1::2] == [f"fast {event.type}" for event in it.events]


async def test_a_listener_that_raises_stops_nobody_and_is_named(stage: NewStage) -> None:
    it = await stage([call("bash", command="true"), "never asked for", "Again."])

    def broken(event: SessionEvent) -> None:
        if isinstance(event, MessageEnd):
            raise ZeroDivisionError("no reason")

    unsubscribe = it.session.subscribe(broken)
    after: list[SessionEvent] = []
    it.session.subscribe(after.append)
    with pytest.raises(ListenerError, match=r"broken failed on message_end: no reason") as caught:
        await it.session.prompt("go")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert after == it.events
    assert it.kinds[-2:] == ["agent_end", "agent_settled"]
    assert it.saved() == [
        m.role if m.role != "assistant" else f"assistant:{m.stop_reason}" for m in it.session.messages
    ]
    unsubscribe()
    it.scripted.extend(["Back."])
    await it.session.prompt("again")
    assert it.session.messages[-1].stop_reason == "stop"


@pytest.mark.fault("E06")
async def test_e06_a_second_prompt_is_refused_while_one_runs(stage: NewStage) -> None:
    it = await stage(["Hello."])
    refused: list[str] = []

    async def meddle(event: SessionEvent) -> None:
        if isinstance(event, RunEnd):
            assert it.session.running
            for attempt in (it.session.prompt("me too"), it.session.continue_()):
                with pytest.raises(AgentBusyError, match=r"steer\(\)") as caught:
                    await attempt
                refused.append(str(caught.value))

    it.session.subscribe(meddle)
    await it.session.prompt("go")
    assert len(refused) == 2
    assert it.saved() == ["user", "assistant:stop"]


@pytest.mark.parity("events.queue-update")
async def test_steering_and_follow_ups_enter_and_their_queue_is_told(stage: NewStage) -> None:
    it = await stage([call("bash", command="true"), "Steered.", "Followed."])

    def queue(event: SessionEvent) -> None:
        if event.type == "tool_execution_start":
            it.session.follow_up("and then this", [ImageContent(DOT, "image/png")])
            it.session.steer("rather that", [ImageContent(DOT, "image/png")])

    it.session.subscribe(queue)
    await it.session.prompt("go")
    updates = [event for event in it.events if isinstance(event, QueueUpdate)]
    assert updates == [
        QueueUpdate([], ["and then this"]),
        QueueUpdate(["rather that"], ["and then this"]),
        QueueUpdate([], ["and then this"]),
        QueueUpdate([], []),
    ]
    assert it.saved() == [
        *["user", "assistant:toolUse", "toolResult"],
        *["user", "assistant:stop"],
        *["user", "assistant:stop"],
    ]
    steered = it.scripted.requests[1].messages[-1]
    assert [block.type for block in steered.content] == ["text", "image"]
    taken = next(place for place, event in enumerate(it.events) if event is updates[2])
    start = next(event for event in it.events[taken:] if event.type == "message_start")
    assert start.message.text == "rather that"


@pytest.mark.fault("E09")
async def test_e09_a_follow_up_queued_at_the_very_end_runs_before_the_session_settles(
    stage: NewStage,
) -> None:
    it = await stage(["First.", "Second."])

    def late(event: SessionEvent) -> None:
        if isinstance(event, RunEnd) and len(it.scripted.requests) == 1:
            it.session.follow_up("one more")

    it.session.subscribe(late)
    await it.session.prompt("go")
    assert it.session.messages[-1].text == "Second."
    assert it.kinds.count("agent_settled") == 1
    assert it.kinds[-1] == "agent_settled"
    assert it.kinds.count("agent_end") == 2


async def test_the_queue_can_be_taken_back(stage: NewStage) -> None:
    it = await stage(["Hello."])
    it.session.steer("a")
    it.session.follow_up("b")
    assert it.session.clear_queue() == QueueUpdate(["a"], ["b"])
    await it.session.prompt("go")
    assert it.saved() == ["user", "assistant:stop"]


# --- abort -----------------------------------------------------------------------------------


async def test_abort_ends_in_an_aborted_answer_and_leaves_the_session_usable(stage: NewStage) -> None:
    it = await stage([{"content": "A long answer", "stall": True, "after": 1}, "Fine."])
    begun = asyncio.Event()
    it.session.subscribe(lambda event: begun.set() if isinstance(event, MessageUpdate) else None)
    run = asyncio.create_task(it.session.prompt("go"))
    await begun.wait()
    it.session.follow_up("later")
    await it.session.abort()
    assert not it.session.running
    await run
    assert it.session.messages[-1].stop_reason == "aborted"
    assert it.events[-1] == AgentSettled(True)
    assert it.saved() == ["user", "assistant:aborted"]
    assert it.session.clear_queue().follow_up == ["later"]  # an abort leaves what is queued
    await it.session.prompt("again")
    assert it.session.messages[-1].text == "Fine."
    assert it.events[-1] == AgentSettled(False)


async def test_abort_from_inside_a_listener_does_not_wait_for_itself(stage: NewStage) -> None:
    it = await stage([{"content": "A long answer", "stall": True, "after": 1}])

    async def stop(event: SessionEvent) -> None:
        if isinstance(event, MessageUpdate):
            await it.session.abort()

    it.session.subscribe(stop)
    async with asyncio.timeout(10):
        await it.session.prompt("go")
    assert it.session.messages[-1].stop_reason == "aborted"


async def test_abort_while_idle_does_nothing(stage: NewStage) -> None:
    it = await stage(["Hello."])
    await it.session.abort()
    await it.session.prompt("go")
    assert it.session.messages[-1].text == "Hello."


async def test_a_cancelled_prompt_is_an_abort_and_settles(stage: NewStage) -> None:
    it = await stage([{"content": "A long answer", "stall": True, "after": 1}, "Fine."])
    begun = asyncio.Event()
    it.session.subscribe(lambda event: begun.set() if isinstance(event, MessageUpdate) else None)
    run = asyncio.create_task(it.session.prompt("go"))
    await begun.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert it.kinds[-1] == "agent_settled"
    assert it.saved() == ["user", "assistant:aborted"]
    await it.session.prompt("again")
    assert it.session.messages[-1].text == "Fine."


@pytest.mark.skipif(os.name == "nt", reason="POSIX processes")
async def test_closing_ends_the_run_and_the_commands_it_started(stage: NewStage) -> None:
    it = await stage([call("bash", command="echo $$; sleep 1000"), "never"])
    pid: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def watch(event: SessionEvent) -> None:
        if isinstance(event, ToolExecutionUpdate) and not pid.done():
            text = "".join(block.text for block in event.partial_result.content if block.type == "text")
            if text.strip():
                pid.set_result(int(text.split()[0]))

    it.session.subscribe(watch)
    run = asyncio.create_task(it.session.prompt("go"))
    started = await asyncio.wait_for(pid, 20)
    await it.session.close()
    await run
    with pytest.raises(ProcessLookupError):
        os.kill(started, 0)
    assert it.saved()[-3:] == ["assistant:toolUse", "toolResult", "assistant:aborted"]
    await it.session.close()
    with pytest.raises(RuntimeError, match="closed"):
        await it.session.prompt("again")


# --- what a conversation is held with ----------------------------------------------------------


async def test_an_empty_prompt_is_refused(stage: NewStage) -> None:
    it = await stage(["Hello."])
    nothings: list[Any] = ["", " \n", []]
    for nothing in nothings:
        with pytest.raises(UserError, match="The prompt is empty"):
            await it.session.prompt(nothing)
    assert it.events == []
    assert not it.session.session.saved


async def test_b04_a_prompt_of_images_alone_has_no_empty_text(stage: NewStage) -> None:
    it = await stage(["Nice."])
    await it.session.prompt("", [ImageContent(DOT, "image/png")])
    assert [block.type for block in it.scripted.requests[0].messages[0].content] == ["image"]


async def test_there_must_be_something_to_continue(stage: NewStage) -> None:
    it = await stage(["Hello."])
    with pytest.raises(ContinueError):
        await it.session.continue_()
    assert not it.session.running
    await it.session.prompt("go")
    assert it.session.messages[-1].text == "Hello."


async def test_commands_see_the_session_as_it_is_when_they_start(stage: NewStage) -> None:
    command = (
        "echo $CANTLE_SESSION_ID $CANTLE_SESSION_FILE $CANTLE_PROVIDER $CANTLE_MODEL $CANTLE_REASONING_LEVEL"
    )
    it = await stage([call("bash", command=command), call("bash", command=command), "Done."])

    async def change(event: SessionEvent) -> None:
        if event.type == "tool_execution_end":
            await it.session.set_thinking_level("high")

    it.session.subscribe(change)
    await it.session.prompt("go")
    said = [m.text.split() for m in it.session.messages if isinstance(m, ToolResultMessage)]
    file = str(it.session.session.file)
    assert said == [
        [it.session.session.id, file, "scripted", "scripted", "medium"],
        [it.session.session.id, file, "scripted", "scripted", "high"],
    ]


async def test_model_and_level_can_be_changed_and_are_recorded_once(stage: NewStage) -> None:
    from msgspec.structs import replace

    it = await stage(["One.", "Two."])
    other = replace(it.session.model, id="other", reasoning=False)
    await it.session.prompt("go")
    await it.session.set_model(other)
    await it.session.set_model(other)
    assert (it.session.model.id, it.session.thinking_level) == ("other", "off")
    await it.session.prompt("go on")
    changes = [
        (entry.get("modelId"), entry.get("thinkingLevel"))
        for entry in it.entries()
        if entry["type"].endswith("_change")
    ]
    assert changes == [("scripted", None), (None, "medium"), ("other", None), (None, "off")]
    assert [event for event in it.events if isinstance(event, ThinkingLevelChanged)] == [
        ThinkingLevelChanged("off")
    ]
    answers = [m.model for m in it.session.messages if isinstance(m, AssistantMessage)]
    assert answers == ["scripted", "other"]


async def test_an_unknown_model_or_one_without_a_key_is_refused(stage: NewStage) -> None:
    it = await stage(["One."])
    with pytest.raises(ModelSelectionError, match="No model matches"):
        await it.session.set_model("nope")
    key = next(m.key for m in it.session._parts.models.list("openai"))
    with pytest.raises(ModelSelectionError, match="OPENAI_API_KEY"):
        await it.session.set_model(key)
    assert it.session.model.id == "scripted"


async def test_a_session_is_named_and_its_listeners_are_told(stage: NewStage) -> None:
    it = await stage(["One."])
    it.session.set_name("  a \n name ")
    await it.session.prompt("go")
    assert it.session.session.name == "a name"
    assert it.kinds[0] == "session_info_changed"
    assert it.events[0].name == "a name"
    assert any(entry["type"] == "session_info" and entry["name"] == "a name" for entry in it.entries())


async def test_a_tools_own_usage_counts_in_the_total(stage: NewStage) -> None:
    async def think(arguments: JsonObject, context: ToolContext) -> ToolResult:
        return ToolResult(usage=Usage(input=1000, total_tokens=1000))

    it = await stage([call("own"), "Done."], tools=[own_tool(think)])
    await it.session.prompt("go")
    answers = sum(m.usage.total_tokens for m in it.session.messages if isinstance(m, AssistantMessage))
    assert it.session.usage.total_tokens == answers + 1000


async def test_the_prompt_and_the_tools_never_change_between_requests(stage: NewStage) -> None:
    it = await stage([call("bash", command="true"), call("read", path="nope"), "Done.", "More."])
    await it.session.prompt("go")
    await it.session.prompt("on")
    first = it.scripted.requests[0]
    assert len(it.scripted.requests) == 4
    for earlier, later in zip(it.scripted.requests, it.scripted.requests[1:], strict=False):
        assert later.system_prompt == first.system_prompt
        assert later.tools == first.tools
        assert list(later.messages)[: len(earlier.messages)] == list(earlier.messages)


async def test_the_default_prompt_is_short(stage: NewStage) -> None:
    it = await stage()
    assert [tool.name for tool in it.session.agent.tools] == ["read", "bash", "edit", "write"]
    assert len(it.session.system_prompt) <= 2600
    assert isinstance(it.session.system_prompt, str)
    assert not any(isinstance(m, UserMessage) for m in it.session.messages)
