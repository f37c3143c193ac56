"""One stream, several views: what each reader sees, who sets the pace, how it ends."""

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator, Sequence

import pytest

from cantle_ai.abort import AbortController, AbortSignal
from cantle_ai.builder import AnswerBuilder
from cantle_ai.content import TextContent
from cantle_ai.errors import ProviderError
from cantle_ai.events import AssistantMessageEvent, Start, TextDelta
from cantle_ai.stream import AssistantMessageStream
from cantle_ai.testing.checker import check_events, checked
from packages.ai.tests.stream.sources import Batches, HandSource, forever, settle, stream_of

pytestmark = pytest.mark.usefixtures("nothing_left")


async def read(stream: AssistantMessageStream) -> list[AssistantMessageEvent]:
    return [event async for event in stream]


def types(events: Sequence[AssistantMessageEvent]) -> list[str]:
    return [event.type for event in events]


WHOLE = ["start", "text_start", "text_delta", "text_delta", "text_end", "done"]


async def test_readers_before_the_first_event_see_all():
    stream = HandSource("a", "b").stream()
    first, second = await asyncio.gather(read(stream), read(stream))
    assert types(first) == WHOLE
    assert first == second
    check_events(first)


async def test_nothing_is_asked_before_somebody_reads():
    source = HandSource("a")
    stream = source.stream()
    await settle()
    assert not source.started.is_set()
    assert not stream.ended
    await stream.result()
    assert source.started.is_set()
    assert stream.ended


async def test_result_drains_without_a_reader():
    message = await HandSource("a", "b", "c").stream().result()
    assert message.text == "abc"
    assert message.stop_reason == "stop"


async def test_result_and_readers_get_one_message():
    stream = checked(HandSource("a", "b").stream())
    events, message, again = await asyncio.gather(read(stream), stream.result(), stream.result())
    assert message is again is stream.partial
    assert check_events(events) is message


async def test_result_after_the_end_is_there_at_once():
    stream = HandSource("a").stream()
    await read(stream)
    assert (await stream.result()).text == "a"


async def test_the_slowest_live_reader_sets_the_pace():
    source = HandSource(*"abcdef")
    stream = source.stream()
    slow, fast = aiter(stream), aiter(stream)
    await anext(slow)
    reading = asyncio.create_task(collect(fast))
    await settle()
    # The slow one has begun the first batch and not finished it, so nobody gets a second.
    assert source.asked == 1
    await anext(slow)
    await anext(slow)
    await settle()
    assert source.asked == 2
    await slow.aclose()
    assert types(await reading)[-1] == "done"


async def collect(events: AsyncIterator[AssistantMessageEvent]) -> list[AssistantMessageEvent]:
    return [event async for event in events]


async def test_result_waits_for_a_reader_that_is_behind():
    source = HandSource(*"abcdef")
    stream = source.stream()
    taken = asyncio.Event()

    async def read_one() -> None:
        async for _ in stream:
            await taken.wait()

    reading = asyncio.create_task(read_one())
    waiting = asyncio.create_task(stream.result())
    await settle()
    assert source.asked == 1
    taken.set()
    assert (await waiting).text == "abcdef"
    await reading


async def test_leaving_the_loop_drops_that_reader():
    stream = HandSource(*"abc").stream()
    async for _ in stream:
        break
    assert (await stream.result()).text == "abc"


async def test_a_closed_reader_gives_nothing_more():
    stream = HandSource(*"abc").stream()
    reader = aiter(stream)
    await anext(reader)
    await reader.aclose()
    assert await collect(reader) == []
    assert (await stream.result()).text == "abc"


async def test_a_reader_kept_after_the_loop_holds_nobody_back():
    stream = HandSource(*"abc").stream()
    reader = aiter(stream)
    async for _ in reader:
        break
    assert (await stream.result()).text == "abc"
    assert types(await collect(reader))[-1] == "done"


async def test_a_reader_of_a_task_that_is_over_holds_nobody_back():
    stream = HandSource(*"abc").stream()
    reader = aiter(stream)

    async def one() -> None:
        await anext(reader)

    waiting = asyncio.create_task(stream.result())
    await asyncio.create_task(one())
    assert (await waiting).text == "abc"
    assert types(await collect(reader))[-1] == "done"


async def test_a_reader_that_never_began_holds_nobody_back_and_misses_nothing():
    stream = HandSource(*"ab").stream()
    reader = aiter(stream)
    assert (await stream.result()).text == "ab"
    assert types(await collect(reader)) == WHOLE


async def test_two_loops_in_one_task():
    stream = HandSource(*"abc").stream()
    outer: list[str] = []
    inner: list[str] = []
    async for event in stream:
        outer.append(event.type)
        if not inner:
            inner = types(await read(stream))
    assert inner[-1] == outer[-1] == "done"
    assert outer.count("text_delta") == 3


async def test_result_inside_the_loop_of_the_task_that_reads():
    stream = HandSource(*"abc").stream()
    seen: list[AssistantMessageEvent] = []
    async for event in stream:
        seen.append(event)
        if len(seen) == 2:
            assert (await stream.result()).text == "abc"
    check_events(seen)


async def test_result_inside_the_loop_waits_for_the_other_readers():
    source = HandSource(*"abcdef")
    stream = source.stream()
    other = aiter(stream)
    go_on = asyncio.Event()

    async def read_slowly() -> list[AssistantMessageEvent]:
        first = await anext(other)
        await go_on.wait()
        return [first, *await collect(other)]

    async def read_and_ask() -> str:
        async for _ in stream:
            return (await stream.result()).text
        return ""

    asking = asyncio.create_task(read_and_ask())
    reading = asyncio.create_task(read_slowly())
    await settle()
    assert source.asked == 1
    go_on.set()
    assert await asking == "abcdef"
    check_events(await reading)


async def test_a_late_reader_gets_start_with_the_partial_then_what_follows():
    stream = HandSource(*"abc").stream()
    early = aiter(stream)
    for _ in range(3):
        await anext(early)  # start, text_start, the delta "a"
    late = aiter(stream)
    first = await anext(late)
    assert isinstance(first, Start)
    assert first.partial.text == "a"
    rest, _ = await asyncio.gather(collect(late), collect(early))
    assert types(rest) == ["text_delta", "text_delta", "text_end", "done"]


async def test_a_reader_after_the_end_gets_start_and_the_end():
    stream = HandSource("a").stream()
    message = await stream.result()
    events = await read(stream)
    assert types(events) == ["start", "done"]
    assert events[0] == Start(message)


async def test_the_partial_grows():
    stream = HandSource(*"abc").stream()
    texts = [stream.partial.text async for event in stream if isinstance(event, TextDelta)]
    assert texts == ["a", "ab", "abc"]


async def test_a_forgotten_stream_closes_its_source():
    source = HandSource("a", ending=forever)
    stream = source.stream()
    async for _ in stream:
        break
    del stream
    gc.collect()
    await asyncio.wait_for(source.closed.wait(), 5)


async def test_a_stream_that_is_held_and_not_read_asks_for_no_more():
    source = HandSource(*"abcdef")
    stream = source.stream()
    async for _ in stream:
        break
    await settle()
    assert source.asked == 1
    await stream.aclose()
    assert (await stream.result()).stop_reason == "aborted"


async def test_a_stream_that_was_never_read_leaves_nothing():
    controller = AbortController()
    stream = HandSource("a").stream(controller.signal)
    gone = weakref.ref(stream)
    del stream
    gc.collect()
    assert gone() is None
    assert not controller.signal._callbacks


async def test_a_stream_that_ended_has_let_go_of_the_signal():
    controller = AbortController()
    stream = HandSource("a").stream(controller.signal)
    await stream.result()
    assert not controller.signal._callbacks


async def test_a_stream_forgotten_after_its_end_takes_no_later_stream_off_the_signal():
    controller = AbortController()
    old = HandSource("a").stream(controller.signal)
    await old.result()
    streams = [HandSource("b", ending=forever).stream(controller.signal) for _ in range(20)]
    waiting = [asyncio.create_task(stream.result()) for stream in streams]
    await settle()
    del old
    gc.collect()
    controller.abort()
    assert {message.stop_reason for message in await asyncio.gather(*waiting)} == {"aborted"}


async def test_closing_the_stream_waits_for_its_source():
    source = HandSource("a", ending=forever)
    stream = source.stream()
    async for _ in stream:
        break
    await stream.aclose()
    assert source.closed.is_set()
    message = await stream.result()
    assert (message.stop_reason, message.error_message, message.text) == ("aborted", "Operation aborted", "a")


async def test_closing_a_stream_that_ended_changes_nothing():
    stream = HandSource("a").stream()
    await stream.result()
    await stream.aclose()
    assert (await stream.result()).stop_reason == "stop"


async def test_a_source_that_raises():
    async def source(builder: AnswerBuilder, signal: AbortSignal) -> Batches:
        builder.text_delta(builder.text_start(), "kept")
        yield builder.take()
        raise ProviderError("The provider is on fire", status=503, retry_after=2)

    stream = checked(stream_of(source))
    message = check_events(await read(stream))
    assert message.stop_reason == "error"
    assert message.error_message == "The provider is on fire"
    assert message.text == "kept"
    assert message.extra == {
        "errorDetails": {"status": 503, "code": None, "retryAfterMs": 2000, "kind": "http"}
    }


class Odd(BaseException):
    """Neither an Exception nor one of Python's own."""


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError(), "ValueError"),
        (KeyError("id"), "KeyError: 'id'"),
        (Odd("odd"), "Odd: odd"),
        (GeneratorExit(), "GeneratorExit"),
        (TimeoutError("late"), "late"),
    ],
)
async def test_whatever_a_source_raises_is_an_error_event(error: BaseException, said: str):
    async def source(builder: AnswerBuilder, signal: AbortSignal) -> Batches:
        yield builder.take()
        raise error

    message = check_events(await read(stream_of(source)))
    assert message.stop_reason == "error"
    assert message.error_message == said


async def test_a_source_that_cannot_even_be_made():
    def source(builder: AnswerBuilder, signal: AbortSignal) -> Batches:
        raise ValueError("no source")

    message = check_events(await read(stream_of(source)))
    assert (message.stop_reason, message.error_message) == ("error", "ValueError: no source")


async def test_a_source_that_ends_early():
    async def source(builder: AnswerBuilder, signal: AbortSignal) -> Batches:
        builder.text_delta(builder.text_start(), "half")
        yield builder.take()

    message = check_events(await read(stream_of(source)))
    assert message.error_message == "The answer ended before it was complete"
    assert message.content == [TextContent("half")]


async def test_a_source_that_says_nothing():
    async def source(builder: AnswerBuilder, signal: AbortSignal) -> Batches:
        for _ in ():
            yield []

    assert types(await read(stream_of(source))) == ["start", "error"]


async def test_a_source_that_keeps_its_events_to_itself():
    async def source(builder: AnswerBuilder, signal: AbortSignal) -> Batches:
        builder.take()
        builder.done("stop")
        builder.take()
        for _ in ():
            yield []

    assert types(await read(stream_of(source))) == ["start", "done"]


async def test_a_source_whose_clean_up_fails_after_the_end():
    async def source(builder: AnswerBuilder, signal: AbortSignal) -> Batches:
        try:
            builder.done("stop")
            yield builder.take()
        finally:
            raise OSError("the socket is gone")

    message = check_events(await read(stream_of(source)))
    assert message.stop_reason == "stop"


async def test_a_source_whose_failure_comes_before_that_of_its_clean_up():
    class Source:
        """An iterator with a close of its own."""

        def __aiter__(self) -> "Source":
            return self

        async def __anext__(self) -> Sequence[AssistantMessageEvent]:
            raise ValueError("the first failure")

        async def aclose(self) -> None:
            raise OSError("the second failure")

    message = await stream_of(lambda builder, signal: Source()).result()
    assert message.error_message == "ValueError: the first failure"


async def test_a_source_that_is_a_plain_iterator():
    class Source:
        """An async iterator that cannot be closed."""

        def __init__(self, builder: AnswerBuilder) -> None:
            self.builder = builder

        def __aiter__(self) -> "Source":
            return self

        async def __anext__(self) -> Sequence[AssistantMessageEvent]:
            self.builder.done("stop")
            return self.builder.take()

    assert (await stream_of(lambda builder, signal: Source(builder)).result()).stop_reason == "stop"


async def test_empty_batches_are_nothing():
    async def source(builder: AnswerBuilder, signal: AbortSignal) -> Batches:
        yield []
        builder.done("stop")
        yield builder.take()
        yield []

    assert types(await read(stream_of(source))) == ["start", "done"]


async def test_each_batch_is_one_request_to_the_source_whatever_its_size():
    """The cost of an answer: steps of the source, not events times readers."""
    asked = 0

    async def source(builder: AnswerBuilder, signal: AbortSignal) -> Batches:
        nonlocal asked
        index = builder.text_start()
        for _ in range(100):
            asked += 1
            for _ in range(100):
                builder.text_delta(index, "x")
            yield builder.take()
        builder.done("stop")
        yield builder.take()

    stream = stream_of(source)
    events, _ = await asyncio.gather(read(stream), read(stream))
    assert asked == 100
    assert len(events) == 10_004


async def test_no_delta_joins_the_text_that_came_before():
    stream = HandSource(*"x" * 1000).stream()
    parts: list[int] = []
    async for event in stream:
        block = stream.partial.content[0] if stream.partial.content else None
        if isinstance(event, TextDelta) and isinstance(block, TextContent):
            parts.append(len(block._parts))
    assert parts == list(range(1, 1001))
