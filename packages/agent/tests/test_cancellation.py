"""Aborting and cancelling, with peers that stall, ignore it, or swallow it."""

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from cantle_agent.config import AgentContext, FinishedToolCall, LoopConfig, RequestedToolCall
from cantle_agent.errors import ListenerError
from cantle_agent.events import AgentEnd, AgentEvent, MessageStart, ToolExecutionEnd
from cantle_agent.loop import run_loop
from cantle_agent.patience import LeftBehindError, WorkCancelledError, patiently
from cantle_agent.queues import MessageQueue
from cantle_agent.tool import ToolContext, ToolResult
from cantle_ai.abort import AbortController, AbortError, AbortSignal
from cantle_ai.messages import UserMessage
from cantle_ai.testing.scripted import ScriptedModel
from packages.agent.tests.support import (
    Told,
    answers,
    call,
    check_events,
    check_transcript,
    make_agent,
    make_tool,
    results,
    run,
    says,
    shape,
)

GRACE = 0.02


class Hanging:
    """A tool that pays no attention to the signal, and says when it has begun and when it was cancelled."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.cancelled = asyncio.Event()

    async def __call__(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled.set()
        raise AssertionError


class Stubborn:
    """A tool that swallows its cancellation and goes on until the test ends it, or its loop does."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.end = asyncio.Event()
        self.ended = asyncio.Event()
        self.cancelled = 0

    async def __call__(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        self.begun.set()
        while not self.end.is_set():
            try:
                await self.end.wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                if self.cancelled > 1:
                    raise
        self.ended.set()
        raise ValueError("nobody reads this")


async def soon(work: Awaitable[Any]) -> Any:
    async with asyncio.timeout(5):
        return await work


# --- abort


async def test_an_abort_while_the_answer_comes_keeps_what_arrived_and_what_is_queued():
    agent, _, told = make_agent([says("a long answer in deltas", call()), "never"], [make_tool()])
    agent.follow_up("later")

    def stop(event: AgentEvent) -> None:
        if event.type == "message_update" and event.event.type == "text_delta":
            agent.steer("now")
            agent.abort()

    agent.subscribe(stop)
    await agent.prompt("go")
    last = agent.messages[-1]
    assert (last.stop_reason, last.error_message) == ("aborted", "Operation aborted")  # type: ignore[union-attr]
    assert agent.last_error == "Operation aborted"
    assert "a long answer in deltas".startswith(last.text) and last.text
    assert len(agent.steering) == len(agent.follow_ups) == 1
    assert told.types[-3:] == ["message_end assistant", "turn_end", "agent_end"]


async def test_a_signal_that_is_aborted_already_asks_no_model():
    controller = AbortController()
    controller.abort("changed my mind")
    context, told, model = await run(["never"], signal=controller.signal)
    assert not model.requests
    assert shape(context.messages) == ["user go", "assistant aborted"]
    assert answers(context.messages)[0].error_message == "changed my mind"
    check_events(told.events)


@pytest.mark.parity("loop.abort-in-batch")
async def test_after_an_abort_in_a_batch_the_run_ends_in_an_aborted_answer():
    agent, model, told = make_agent([says("", call()), "never"], [make_tool()])
    agent.subscribe(lambda event: agent.abort() if event.type == "tool_execution_start" else None)
    await agent.prompt("go")
    assert told.types[-7:] == [
        "message_end toolResult",
        *["turn_end", "turn_start"],
        *["message_start assistant", "message_end assistant"],
        *["turn_end", "agent_end"],
    ]
    assert len(model.requests) == 1 and shape(agent.messages)[-1] == "assistant aborted"


async def test_results_that_are_there_stay():
    async def obedient(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        await context.signal.wait()
        return ToolResult.of("what I had")

    agent, _, _ = make_agent(
        [says("", call("quick"), call("obedient")), "never"],
        [make_tool("quick"), make_tool("obedient", obedient)],
    )
    agent.subscribe(lambda event: agent.abort() if isinstance(event, ToolExecutionEnd) else None)
    await soon(agent.prompt("go"))
    assert [result.text for result in results(agent.messages)] == ["quick: {}", "what I had"]
    assert not any(result.is_error for result in results(agent.messages))


async def test_a_tool_that_ignores_the_signal_is_cancelled_after_its_grace():
    tool = Hanging()
    agent, _, told = make_agent([says("", call()), "never"], [make_tool(execute=tool)], grace=GRACE)
    task = asyncio.create_task(agent.prompt("go"))
    await soon(tool.begun.wait())
    agent.abort()
    await soon(task)
    (result,) = results(agent.messages)
    assert tool.cancelled.is_set() and result.is_error and result.text == "Operation aborted"
    check_events(told.events)


async def test_a_tool_that_swallows_its_cancellation_is_left_behind_and_its_result_says_so():
    stubborn = Stubborn()
    agent, _, told = make_agent([says("", call()), "never"], [make_tool(execute=stubborn)], grace=GRACE)
    task = asyncio.create_task(agent.prompt("go"))
    await soon(stubborn.begun.wait())
    agent.abort()
    await soon(task)
    (result,) = results(agent.messages)
    assert result.is_error and "was left running" in result.text
    assert stubborn.cancelled == 1
    assert not agent.running and not agent.pending_tool_calls
    stubborn.end.set()
    await soon(stubborn.ended.wait())
    check_events(told.events)


async def test_after_hooks_still_see_a_call_that_was_aborted():
    seen: list[str] = []
    tool = Hanging()

    def watch(finished: FinishedToolCall) -> None:
        assert finished.signal.aborted
        seen.append(finished.result.content[0].text)  # type: ignore[union-attr]

    agent, _, _ = make_agent(
        [says("", call()), "never"], [make_tool(execute=tool)], grace=GRACE, after_tool_call=[watch]
    )
    task = asyncio.create_task(agent.prompt("go"))
    await soon(tool.begun.wait())
    agent.abort()
    await soon(task)
    assert seen == ["Operation aborted"]


@pytest.mark.parametrize("place", ["before_tool_call", "gate", "after_tool_call"])
@pytest.mark.parametrize("kind", ["obeys", "hangs"])
async def test_call_hooks_get_the_signal_and_are_not_waited_for_for_ever(place: str, kind: str):
    waiting = asyncio.Event()

    async def hook(seen: RequestedToolCall | FinishedToolCall) -> None:
        waiting.set()
        await (seen.signal.wait() if kind == "obeys" else asyncio.Event().wait())
        seen.signal.raise_if_aborted()

    agent, _, told = make_agent(
        [says("", call(), call()), "never"],
        [make_tool()],
        grace=GRACE,
        **{place: hook if place == "gate" else [hook]},
    )
    task = asyncio.create_task(agent.prompt("go"))
    await soon(waiting.wait())
    agent.abort()
    await soon(task)
    assert len(results(agent.messages)) == 2 and all(r.is_error for r in results(agent.messages))
    check_transcript(agent.messages)
    check_events(told.events)


@pytest.mark.parametrize(
    "hook",
    ["transform_context", "convert_to_llm", "get_api_key", "prepare_next_turn", "should_stop_after_turn"],
)
async def test_a_loop_hook_that_hangs_is_ended_after_an_abort(hook: str):
    waiting = asyncio.Event()

    async def hang(*_: object) -> Any:
        waiting.set()
        await asyncio.Event().wait()

    agent, _, told = make_agent([says("", call()), "never"], [make_tool()], grace=GRACE)
    setattr(agent, hook, hang)
    task = asyncio.create_task(agent.prompt("go"))
    await soon(waiting.wait())
    agent.abort("stop now")
    await soon(task)
    assert answers(agent.messages)[-1].error_message == "stop now"
    check_transcript(agent.messages)
    check_events(told.events)


async def test_a_listener_that_hangs_is_ended_after_an_abort_and_the_others_have_all():
    agent, _, before = make_agent(["an answer", "again"], grace=GRACE)
    hung = asyncio.Event()

    async def hang(event: AgentEvent) -> None:
        if event.type == "message_update" and not hung.is_set():
            hung.set()
            await asyncio.Event().wait()

    agent.subscribe(hang)
    after = Told()
    agent.subscribe(after)
    task = asyncio.create_task(agent.prompt("go"))
    await soon(hung.wait())
    agent.abort()
    with pytest.raises(ListenerError, match=r"did not return within 0\.02 s of an abort"):
        await soon(task)
    assert after.events == before.events
    check_events(after.events)
    check_transcript(agent.messages)
    await agent.prompt("still there?")
    assert shape(agent.messages)[-1] == "assistant stop"


async def test_a_listener_that_hangs_after_the_abort_is_ended_too():
    agent, _, told = make_agent(["an answer"], grace=GRACE)

    async def hang(event: AgentEvent) -> None:
        if event.type == "turn_end":
            await asyncio.Event().wait()

    agent.subscribe(hang)
    agent.subscribe(lambda event: agent.abort() if event.type == "turn_start" else None)
    with pytest.raises(ListenerError, match="did not return"):
        await soon(agent.prompt("go"))
    check_events(told.events)


async def test_an_abort_when_idle_does_nothing():
    agent, _, _ = make_agent(["fine"])
    agent.abort()
    await agent.prompt("go")
    assert agent.last_error is None


async def test_a_signal_is_not_held_on_to():
    controller = AbortController()
    for _ in range(3):
        await run(["done"], signal=controller.signal)
    assert not controller.signal._callbacks


# --- cancelling the task


@pytest.mark.parametrize("kind", ["cancelled", "raises"])
async def test_a_tool_that_ends_cancelled_by_itself_fails_alone(kind: str):
    async def ends(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        if kind == "raises":
            raise asyncio.CancelledError
        inner = asyncio.get_running_loop().create_future()
        inner.cancel()
        return await inner

    context, told, _ = await run([says("", call("x"), call()), "done"], [make_tool("x", ends), make_tool()])
    first, second = results(context.messages)
    assert (first.text, first.is_error, second.is_error) == ("was cancelled", True, False)
    check_events(told.events)


async def test_cancelling_a_prompt_ends_the_run_in_order_first():
    tool = Hanging()
    agent, _, told = make_agent(
        [says("", call(), call("nope")), "again"], [make_tool(execute=tool)], grace=GRACE
    )
    task = asyncio.create_task(agent.prompt("go"))
    await soon(tool.begun.wait())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await soon(task)
    assert not agent.running
    assert [result.is_error for result in results(agent.messages)] == [True, True]
    assert shape(agent.messages)[-1] == "assistant aborted"
    assert answers(agent.messages)[-1].error_message == "Cancelled"
    check_transcript(agent.messages)
    check_events(told.events)
    await agent.prompt("again")
    assert shape(agent.messages)[-1] == "assistant stop"


async def test_a_timeout_around_a_prompt_ends_it_in_order():
    tool = Hanging()
    agent, _, told = make_agent([says("", call())], [make_tool(execute=tool)], grace=GRACE)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await agent.prompt("go")
    check_transcript(agent.messages)
    check_events(told.events)


async def test_a_loop_whose_listener_swallows_everything_is_still_left_in_bounded_time():
    reached = asyncio.Event()
    stubborn = Stubborn()

    async def emit(event: AgentEvent) -> None:
        if event.type == "tool_execution_end":
            reached.set()
            await stubborn({}, None)  # type: ignore[arg-type]

    model = ScriptedModel([says("", call(), call()), "never"])
    context = AgentContext(tools=[make_tool()])
    config = LoopConfig(stream=model.stream, model=model.model, grace=GRACE)
    task = asyncio.create_task(run_loop([UserMessage("go")], context, config, emit))
    await soon(reached.wait())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await soon(task)
    assert stubborn.cancelled == 1
    stubborn.end.set()
    async with asyncio.timeout(5):
        while len(results(context.messages)) < 2:
            await asyncio.sleep(0)
    check_transcript(context.messages)


@pytest.mark.parametrize(
    "moment", ["message_update", "tool_execution_start", "tool_execution_end", "turn_end"]
)
async def test_a_loop_whose_listener_hangs_leaves_a_whole_transcript_when_cancelled(moment: str):
    reached = asyncio.Event()

    async def emit(event: AgentEvent) -> None:
        if event.type == moment:
            reached.set()
            await asyncio.Event().wait()

    model = ScriptedModel([says("text", call(), call()), "never"])
    steering = MessageQueue()
    context = AgentContext(tools=[make_tool()])
    config = LoopConfig(stream=model.stream, model=model.model, grace=GRACE, steering=steering)
    task = asyncio.create_task(run_loop([UserMessage("go")], context, config, emit))
    await soon(reached.wait())
    steering.put(UserMessage("queued"))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await soon(task)
    check_transcript(context.messages)
    assert shape(context.messages).count("user queued") + len(steering) == 1
    if moment == "tool_execution_end":
        assert results(context.messages)[0].text == "echo: {}"


async def test_a_run_that_is_torn_off_keeps_what_it_had_taken_from_the_queues():
    reached = asyncio.Event()

    async def emit(event: AgentEvent) -> None:
        if event.type == "turn_start":
            reached.set()
            await asyncio.Event().wait()

    model = ScriptedModel(["never"])
    steering = MessageQueue("all")
    for text in "ab":
        steering.put(UserMessage(text))
    context = AgentContext()
    config = LoopConfig(stream=model.stream, model=model.model, grace=GRACE, steering=steering)
    task = asyncio.create_task(run_loop([UserMessage("go")], context, config, emit))
    await soon(reached.wait())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await soon(task)
    assert shape(context.messages) == ["user go", "user a", "user b"] and not steering


async def test_further_cancellations_do_not_wait_for_any_grace_and_still_leave_a_whole_transcript():
    tool = Hanging()
    agent, _, _ = make_agent([says("", call(), call()), "again"], [make_tool(execute=tool)], grace=30)
    task = asyncio.create_task(agent.prompt("go"))
    await soon(tool.begun.wait())
    for _ in range(5):
        task.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await soon(task)
    assert not agent.running and len(results(agent.messages)) == 2
    check_transcript(agent.messages)
    await agent.prompt("again")
    check_transcript(agent.messages)


async def test_no_task_is_left_after_a_run_however_it_ends():
    before = asyncio.all_tasks()
    for ending in ("abort", "cancel", "listener"):
        tool = Hanging()
        agent, _, _ = make_agent([says("", call(), call())], [make_tool(execute=tool)], grace=GRACE)

        def broken(event: AgentEvent, ending: str = ending) -> None:
            if ending == "listener" and event.type == "tool_execution_start":
                raise ValueError

        agent.subscribe(broken)
        task = asyncio.create_task(agent.prompt("go"))
        begun = asyncio.create_task(tool.begun.wait())
        await asyncio.wait([task, begun], return_when=asyncio.FIRST_COMPLETED, timeout=5)
        begun.cancel()
        if ending == "cancel":
            task.cancel()
        elif ending == "abort":
            agent.abort()
        await asyncio.wait([task], timeout=5)
        assert task.done()
        if not task.cancelled():
            task.exception()
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


# --- the waiting itself


async def test_patience_gives_a_plain_value_at_once():
    assert await patiently(5, AbortSignal(), 1) == 5


async def test_patience_returns_what_a_told_work_says():
    controller = AbortController()

    async def work() -> str:
        await controller.signal.wait()
        return "what I had"

    task = asyncio.create_task(patiently(work(), controller.signal, 5))
    await asyncio.sleep(0)
    controller.abort()
    assert await soon(task) == "what I had"


async def test_patience_ends():
    controller = AbortController()
    controller.abort("enough")
    with pytest.raises(AbortError, match="enough"):
        await soon(patiently(asyncio.Event().wait(), controller.signal, GRACE))
    stubborn = Stubborn()
    with pytest.raises(LeftBehindError):
        await soon(patiently(stubborn({}, None), controller.signal, GRACE))  # type: ignore[arg-type]
    stubborn.end.set()
    await soon(stubborn.ended.wait())


async def test_patience_tells_a_foreign_cancellation_from_its_own():
    async def work() -> None:
        raise asyncio.CancelledError

    with pytest.raises(WorkCancelledError):
        await patiently(work(), AbortSignal(), 1)
    task = asyncio.create_task(patiently(asyncio.Event().wait(), AbortSignal(), 1))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_listener_that_hangs_on_a_note_after_the_run_is_ended_by_the_abort() -> None:
    agent, _, told = make_agent(["done"], grace=GRACE)
    noted = UserMessage("a note")

    async def listener(event: AgentEvent) -> None:
        if isinstance(event, AgentEnd):
            await agent.add_message(noted)
            agent.abort()
        elif isinstance(event, MessageStart) and event.message is noted:
            await asyncio.Event().wait()

    agent.subscribe(listener)
    with pytest.raises(ListenerError, match="did not return"):
        await asyncio.wait_for(agent.prompt("go"), 5)
    assert not agent.running
    assert agent.messages[-1] is noted
    check_events(told.events)
