"""Aborted signals and cancelled tasks, at every place where a stream can wait."""

import asyncio
import gc

import pytest

from cantle_ai.abort import AbortController, AbortSignal
from cantle_ai.builder import AnswerBuilder
from cantle_ai.events import AssistantMessageEvent, TextDelta
from cantle_ai.stream import AssistantMessageStream
from cantle_ai.testing.checker import check_events, checked
from packages.ai.tests.stream.sources import Batches, HandSource, forever, settle, stream_of

pytestmark = pytest.mark.usefixtures("nothing_left")


async def read(stream: AssistantMessageStream) -> list[AssistantMessageEvent]:
    return [event async for event in stream]


async def test_an_abort_before_anybody_reads_asks_nothing():
    controller = AbortController()
    source = HandSource("a")
    stream = source.stream(controller.signal)
    controller.abort("No longer needed")
    assert stream.ended
    message = check_events(await read(stream))
    assert (message.stop_reason, message.error_message) == ("aborted", "No longer needed")
    assert not source.started.is_set()


async def test_a_signal_that_was_aborted_before_the_stream_was_made():
    controller = AbortController()
    controller.abort()
    stream = HandSource("a").stream(controller.signal)
    assert (await stream.result()).stop_reason == "aborted"


async def test_an_abort_between_the_first_wait_and_the_first_step():
    controller = AbortController()
    stream = HandSource("a").stream(controller.signal)
    waiting = asyncio.create_task(stream.result())
    asyncio.get_running_loop().call_soon(controller.abort)
    assert (await waiting).stop_reason in ("aborted", "stop")


@pytest.mark.parametrize("steps", range(12))
async def test_an_abort_at_any_step_of_the_loop(steps: int):
    controller = AbortController()
    source = HandSource("a", "b", ending=forever)
    stream = source.stream(controller.signal)
    reading = asyncio.create_task(read(stream))
    for _ in range(steps):
        await asyncio.sleep(0)
    controller.abort()
    message = check_events(await asyncio.wait_for(reading, 5))
    assert message.stop_reason == "aborted"
    assert source.closed.is_set() == source.started.is_set()


async def test_an_abort_while_the_source_waits_keeps_what_arrived():
    controller = AbortController()
    source = HandSource("a", "b", ending=forever)
    stream = source.stream(controller.signal)
    events: list[AssistantMessageEvent] = []
    async for event in stream:
        events.append(event)
        if isinstance(event, TextDelta) and event.delta == "b":
            asyncio.get_running_loop().call_later(0, controller.abort)
    assert check_events(events).text == "ab"
    assert source.closed.is_set()


async def test_an_abort_after_the_end_changes_nothing():
    controller = AbortController()
    stream = HandSource("a").stream(controller.signal)
    message = await stream.result()
    controller.abort()
    await settle()
    assert (await stream.result()) is message
    assert message.stop_reason == "stop"


async def test_an_abort_from_inside_the_loop():
    controller = AbortController()
    events: list[AssistantMessageEvent] = []
    async for event in HandSource(*"abc").stream(controller.signal):
        events.append(event)
        controller.abort()
    assert check_events(events).stop_reason == "aborted"


async def test_an_abort_with_an_empty_reason():
    controller = AbortController()
    stream = HandSource("a").stream(controller.signal)
    controller.abort("")
    assert (await stream.result()).error_message == "Operation aborted"


async def test_a_source_that_turns_the_cancellation_into_an_exception_is_aborted_all_the_same():
    async def source(builder: AnswerBuilder, signal: AbortSignal) -> Batches:
        yield builder.take()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ConnectionError("the socket was shut") from None

    controller = AbortController()
    stream = stream_of(source, controller.signal)
    reading = asyncio.create_task(read(stream))
    await settle()
    controller.abort()
    message = check_events(await reading)
    assert (message.stop_reason, message.error_message) == ("aborted", "Operation aborted")


async def test_a_source_that_ignores_the_abort_is_not_asked_again():
    asked = 0

    async def source(builder: AnswerBuilder, signal: AbortSignal) -> Batches:
        nonlocal asked
        index = builder.text_start()
        while True:
            asked += 1
            builder.text_delta(index, "x")
            yield builder.take()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                pass

    controller = AbortController()
    stream = stream_of(source, controller.signal)
    reading = asyncio.create_task(read(stream))
    await settle()
    controller.abort()
    message = check_events(await asyncio.wait_for(reading, 5))
    assert message.stop_reason == "aborted"
    assert message.text == "xx"
    assert asked == 2


async def test_a_source_that_finishes_in_spite_of_the_abort_is_believed():
    async def source(builder: AnswerBuilder, signal: AbortSignal) -> Batches:
        yield builder.take()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            builder.done("stop")
            yield builder.take()

    controller = AbortController()
    stream = stream_of(source, controller.signal)
    reading = asyncio.create_task(read(stream))
    await settle()
    controller.abort()
    assert check_events(await reading).stop_reason == "stop"


async def test_a_source_that_cancels_itself_is_aborted():
    async def source(builder: AnswerBuilder, signal: AbortSignal) -> Batches:
        yield builder.take()
        raise asyncio.CancelledError

    assert check_events(await read(stream_of(source))).stop_reason == "aborted"


async def test_the_only_waiter_cancelled_gives_the_answer_up():
    source = HandSource("a", ending=forever)
    stream = source.stream()
    waiting = asyncio.create_task(stream.result())
    await settle()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert (await stream.result()).stop_reason == "aborted"
    assert source.closed.is_set()


async def test_one_of_two_waiters_cancelled_leaves_the_answer():
    release = asyncio.Event()

    async def ending(builder: AnswerBuilder) -> None:
        await release.wait()

    stream = HandSource("a", ending=ending).stream()
    first, second = asyncio.create_task(stream.result()), asyncio.create_task(stream.result())
    await settle()
    first.cancel()
    await settle()
    release.set()
    assert (await second).stop_reason == "stop"


async def test_a_waiter_cancelled_while_somebody_reads_leaves_the_answer():
    release = asyncio.Event()

    async def ending(builder: AnswerBuilder) -> None:
        await release.wait()

    stream = checked(HandSource("a", ending=ending).stream())
    reading, waiting = asyncio.create_task(read(stream)), asyncio.create_task(stream.result())
    await settle()
    waiting.cancel()
    await settle()
    release.set()
    assert check_events(await reading).stop_reason == "stop"


async def test_the_only_reader_cancelled_gives_the_answer_up():
    source = HandSource("a", ending=forever)
    stream = source.stream()
    reading = asyncio.create_task(read(stream))
    await settle()
    reading.cancel()
    await asyncio.wait([reading])
    assert (await stream.result()).stop_reason == "aborted"


async def test_one_of_two_readers_cancelled_leaves_the_other():
    release = asyncio.Event()

    async def ending(builder: AnswerBuilder) -> None:
        await release.wait()

    stream = HandSource("a", ending=ending).stream()
    first, second = asyncio.create_task(read(stream)), asyncio.create_task(read(stream))
    await settle()
    first.cancel()
    await settle()
    release.set()
    assert check_events(await second).stop_reason == "stop"


async def test_a_task_cancelled_in_result_inside_its_own_loop_gives_the_answer_up():
    source = HandSource("a", ending=forever)
    stream = source.stream()

    async def read_and_ask() -> None:
        async for _ in stream:
            await stream.result()

    asking = asyncio.create_task(read_and_ask())
    await settle()
    asking.cancel()
    await asyncio.wait([asking])
    await asyncio.wait_for(source.closed.wait(), 5)
    assert (await asyncio.wait_for(stream.result(), 5)).stop_reason == "aborted"


async def test_a_time_out_around_result_gives_the_answer_up():
    source = HandSource("a", ending=forever)
    stream = source.stream()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await stream.result()
    assert (await stream.result()).stop_reason == "aborted"


async def test_a_cancelled_reader_gives_nothing_more():
    stream = HandSource("a", ending=forever).stream()
    reader = aiter(stream)
    for _ in range(3):
        await anext(reader)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await anext(reader)
    with pytest.raises(StopAsyncIteration):
        await anext(reader)
    assert (await stream.result()).stop_reason == "aborted"


async def test_a_reader_closed_by_another_task_holds_nobody_back():
    source = HandSource(*"abc")
    stream = source.stream()
    reader = aiter(stream)
    blocked = asyncio.Event()

    async def hold() -> None:
        await anext(reader)
        await blocked.wait()

    holding, waiting = asyncio.create_task(hold()), asyncio.create_task(stream.result())
    await settle()
    assert source.asked == 1
    await reader.aclose()
    assert (await waiting).text == "abc"
    blocked.set()
    await holding


async def test_closing_a_source_is_not_cut_short_by_a_late_abort():
    closing, go_on = asyncio.Event(), asyncio.Event()
    closed = False

    class Source:
        """Fails, and takes its time to close."""

        def __aiter__(self) -> "Source":
            return self

        async def __anext__(self) -> list[AssistantMessageEvent]:
            raise ValueError("broken")

        async def aclose(self) -> None:
            nonlocal closed
            closing.set()
            await go_on.wait()
            closed = True

    controller = AbortController()
    stream = stream_of(lambda builder, signal: Source(), controller.signal)
    waiting = asyncio.create_task(stream.result())
    await closing.wait()
    controller.abort()
    await settle()
    go_on.set()
    await waiting
    assert closed


def test_a_loop_that_ends_closes_the_source_whole():
    closed: list[str] = []

    async def source(builder: AnswerBuilder, signal: AbortSignal) -> Batches:
        try:
            yield builder.take()
            await asyncio.Event().wait()
        finally:
            for _ in range(3):
                await asyncio.sleep(0)
            closed.append("whole")

    stream: AssistantMessageStream | None = None

    async def main() -> None:
        nonlocal stream
        stream = stream_of(source)
        reader = aiter(stream)
        await anext(reader)
        waiting = asyncio.create_task(stream.result())
        await settle()
        del waiting

    asyncio.run(main())
    assert closed == ["whole"]
    assert stream is not None
    assert stream.partial.stop_reason == "aborted"


def test_a_stream_forgotten_after_its_loop_was_closed_is_quiet():
    async def main() -> AssistantMessageStream:
        stream = HandSource(*"abc").stream()
        async for _ in stream:
            break
        return stream

    stream = asyncio.run(main())
    del stream
    gc.collect()


async def test_a_stream_forgotten_in_another_thread_closes_its_source():
    source = HandSource("a", ending=forever)
    streams = [source.stream()]
    async for _ in streams[0]:
        break
    await asyncio.to_thread(streams.clear)
    await asyncio.wait_for(source.closed.wait(), 5)
