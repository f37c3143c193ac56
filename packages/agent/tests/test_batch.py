"""Several calls of one answer: what runs together, and in which order things are told and recorded."""

import asyncio
import threading
from typing import Any

import pytest

from cantle_agent.config import FinishedToolCall, RequestedToolCall
from cantle_agent.events import AgentEvent, ToolExecutionEnd, ToolExecutionUpdate
from cantle_agent.tool import ToolContext, ToolResult
from packages.agent.tests.support import Doors, call, make_tool, results, run, says


async def within(seconds: float, work: Any) -> Any:
    async with asyncio.timeout(seconds):
        return await work


@pytest.mark.parity("loop.finish-order")
async def test_ends_are_told_as_calls_finish_and_results_recorded_as_they_were_asked():
    doors = Doors()
    tools = [doors.tool("slow"), doors.tool("quick")]
    finished: list[str] = []

    async def emit(event: AgentEvent) -> None:
        if isinstance(event, ToolExecutionEnd):
            finished.append(event.tool_name)
            doors.open("slow")

    task = asyncio.create_task(run([says("", call("slow"), call("quick")), "done"], tools, emit=emit))
    await within(5, doors.begun("slow"))
    await within(5, doors.begun("quick"))
    doors.open("quick")
    context, told, _ = await within(5, task)
    assert finished == ["quick", "slow"]
    assert [result.tool_name for result in results(context.messages)] == ["slow", "quick"]
    ends = [place for place, name in enumerate(told.types) if name == "tool_execution_end"]
    assert told.types.index("message_start toolResult") > max(ends)


async def test_preparation_goes_in_order_and_before_any_call_runs():
    log: list[str] = []

    async def hook(request: RequestedToolCall) -> None:
        log.append(f"prepare {request.call.name}")
        await asyncio.sleep(0)

    async def execute(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        log.append(f"run {context.tool_name}")
        return ToolResult()

    tools = [make_tool("a", execute), make_tool("b", execute)]
    await run([says("", call("a"), call("b")), "done"], tools, before_tool_call=[hook])
    assert log == ["prepare a", "prepare b", "run a", "run b"]


@pytest.mark.parametrize("by", ["setting", "tool"])
async def test_a_sequential_batch_takes_one_call_after_the_other(by: str):
    doors = Doors()
    mode = "sequential" if by == "tool" else "parallel"
    tools = [doors.tool("a"), doors.tool("b", execution_mode=mode)]
    setting = "sequential" if by == "setting" else "parallel"
    task = asyncio.create_task(run([says("", call("a"), call("b")), "done"], tools, tool_execution=setting))
    await within(5, doors.begun("a"))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not doors.has_begun("b")
    doors.open("a")
    doors.open("b")
    _, told, _ = await within(5, task)
    one_call = [
        "tool_execution_start",
        "tool_execution_end",
        "message_start toolResult",
        "message_end toolResult",
    ]
    start = told.types.index("tool_execution_start")
    assert told.types[start : start + 8] == one_call * 2


async def test_a_sequential_tool_that_is_not_called_changes_nothing():
    doors = Doors()
    tools = [doors.tool("a"), doors.tool("b"), make_tool("c", execution_mode="sequential")]
    task = asyncio.create_task(run([says("", call("a"), call("b")), "done"], tools))
    await within(5, doors.begun("b"))
    doors.open("a")
    doors.open("b")
    await within(5, task)


async def test_progress_is_delivered_and_awaited_before_the_end():
    awaited: list[str] = []

    async def execute(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        for number in range(3):
            context.progress(ToolResult.of(f"part {number}"))
        return ToolResult.of("whole")

    async def emit(event: AgentEvent) -> None:
        if isinstance(event, ToolExecutionUpdate):
            await asyncio.sleep(0)
            awaited.append(event.partial_result.content[0].text)  # type: ignore[union-attr]
        elif isinstance(event, ToolExecutionEnd):
            awaited.append("end")

    _, told, _ = await run([says("", call()), "done"], [make_tool(execute=execute)], emit=emit)
    assert awaited == ["part 0", "part 1", "part 2", "end"]
    update = told.of(ToolExecutionUpdate)[0]
    assert (update.tool_name, update.args) == ("echo", {})


async def test_progress_shows_while_the_tool_still_runs():
    shown = asyncio.Event()

    async def execute(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        context.progress(ToolResult.of("so far"))
        await within(5, shown.wait())
        return ToolResult()

    async def emit(event: AgentEvent) -> None:
        if isinstance(event, ToolExecutionUpdate):
            shown.set()

    context, _, _ = await run([says("", call()), "done"], [make_tool(execute=execute)], emit=emit)
    assert not results(context.messages)[0].is_error


async def test_progress_after_a_tool_has_settled_is_ignored():
    contexts: list[ToolContext] = []

    async def execute(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        contexts.append(context)
        return ToolResult()

    async def emit(event: AgentEvent) -> None:
        if event.type in ("tool_execution_end", "turn_end"):
            contexts[0].progress(ToolResult.of("too late"))

    _, told, _ = await run([says("", call()), "done"], [make_tool(execute=execute)], emit=emit)
    assert not told.of(ToolExecutionUpdate)


async def test_progress_of_a_settled_call_is_ignored_while_others_run_and_while_hooks_do():
    doors = Doors()
    contexts: list[ToolContext] = []

    async def execute(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        contexts.append(context)
        return ToolResult()

    def hook(finished: FinishedToolCall) -> None:
        if finished.call.name == "quick":
            contexts[0].progress(ToolResult.of("from a hook"))

    async def emit(event: AgentEvent) -> None:
        if isinstance(event, ToolExecutionEnd):
            contexts[0].progress(ToolResult.of("too late"))
            doors.open("slow")

    _, told, _ = await within(
        5,
        run(
            [says("", call("quick"), call("slow")), "done"],
            [make_tool("quick", execute), doors.tool("slow")],
            emit=emit,
            after_tool_call=[hook],
        ),
    )
    assert told.finished == ["quick", "slow"] and not told.of(ToolExecutionUpdate)


async def test_progress_from_another_thread_comes_before_the_end():
    def work(context: ToolContext) -> None:
        for number in range(100):
            context.progress(ToolResult.of(str(number)))

    async def execute(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        await asyncio.to_thread(work, context)
        return ToolResult()

    _, told, _ = await run([says("", call()), "done"], [make_tool(execute=execute)])
    shown = [event.partial_result.content[0].text for event in told.of(ToolExecutionUpdate)]
    assert shown == [str(number) for number in range(100)]


async def test_late_progress_from_a_thread_is_ignored():
    settled, gone = threading.Event(), threading.Event()

    def work(context: ToolContext) -> None:
        settled.wait(5)
        context.progress(ToolResult.of("too late"))
        gone.set()

    async def execute(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        threading.Thread(target=work, args=[context], daemon=True).start()
        return ToolResult()

    async def emit(event: AgentEvent) -> None:
        if event.type == "tool_execution_end":
            settled.set()
            await asyncio.to_thread(gone.wait, 5)

    _, told, _ = await run([says("", call()), "done"], [make_tool(execute=execute)], emit=emit)
    assert gone.is_set() and not told.of(ToolExecutionUpdate)


async def test_progress_that_is_no_result_is_the_tools_own_error():
    async def execute(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        context.progress("half")  # type: ignore[arg-type]
        return ToolResult()

    context, _, _ = await run([says("", call()), "done"], [make_tool(execute=execute)])
    assert "progress takes a ToolResult" in results(context.messages)[0].text


async def test_one_failing_call_leaves_the_others_alone():
    async def broken(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        raise OSError("disk full")

    context, told, _ = await run(
        [says("", call("a"), call("broken"), call("a")), "done"],
        [make_tool("a"), make_tool("broken", broken)],
    )
    assert [result.is_error for result in results(context.messages)] == [False, True, False]
    assert told.types.count("tool_execution_end") == 3
