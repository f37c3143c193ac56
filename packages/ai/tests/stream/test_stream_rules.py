"""The rules of the twelve events: random streams keep them, with an abort anywhere; the checker knows each."""

import asyncio
from collections.abc import Callable, Iterator
from random import Random

import pytest

from cantle_ai.abort import AbortController
from cantle_ai.content import TextContent, ThinkingContent, ToolCall
from cantle_ai.context import Context
from cantle_ai.events import (
    AssistantMessageEvent,
    Done,
    Error,
    Start,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from cantle_ai.messages import AssistantMessage, UserMessage, encode_message
from cantle_ai.model import StreamOptions
from cantle_ai.stream import AssistantMessageStream
from cantle_ai.testing.chaos import ChaosModel
from cantle_ai.testing.checker import (
    RULES,
    RuleChecker,
    RuleViolation,
    check_events,
    checked,
    checked_function,
)
from cantle_ai.testing.scripted import ScriptedModel
from cantle_ai.usage import Usage
from tests.support.samples import samples

CONTEXT = Context("Be brief.", [UserMessage("hi", timestamp=1)])
RANDOM_STREAMS = samples(1000, 150)


def random_stream(seed: int, controller: AbortController) -> AssistantMessageStream:
    """A chaos stream, or a scripted one, by the seed."""
    options = StreamOptions(signal=controller.signal, session_id="s")
    if seed % 3:
        chaos = ChaosModel(seed)
        return chaos.stream(chaos.model, CONTEXT, options)
    scripted = ScriptedModel([random_response(Random(seed))], seed=seed, batch=1 + seed % 4)
    return scripted.stream(scripted.model, CONTEXT, options)


def random_response(random: Random) -> dict[str, object]:
    blocks: list[dict[str, object]] = []
    for _ in range(random.randrange(5)):
        words = "".join(random.choices(("word ", "👩‍👩‍👧", "\n", '"', "\\", "é"), k=random.randrange(30)))
        block: dict[str, object]
        match random.randrange(3):
            case 0:
                block = {"type": "text", "text": words}
            case 1:
                block = {"type": "thinking", "thinking": words}
            case _:
                arguments = random.choice(({"a": words, "b": [1, {}]}, words, "{", ""))
                block = {"type": "toolCall", "name": "read", "arguments": arguments}
        blocks.append(block)
    fault = random.choice(({}, {}, {"error": {"status": 500}}, {"cut": True}, {"stall": True}))
    after = random.choice(({}, {"after": random.randrange(12)}))
    return {"content": blocks, **fault, **after}


async def read_until_stalled(
    stream: AssistantMessageStream, controller: AbortController, position: int | None = None
) -> list[AssistantMessageEvent]:
    """All events. The answer is aborted at `position`, and when nothing can come any more."""
    events: list[AssistantMessageEvent] = []

    async def read() -> None:
        async for event in stream:
            if len(events) == position:
                controller.abort()
            events.append(event)

    reading = asyncio.create_task(read())
    seen, still = -1, 0
    while not reading.done():
        await asyncio.sleep(0)
        still = still + 1 if len(events) == seen else 0
        seen = len(events)
        if still > 30:
            controller.abort()
    await reading
    return events


@pytest.mark.usefixtures("nothing_left")
async def test_random_streams_keep_the_rules():
    ends: set[str] = set()
    for seed in range(RANDOM_STREAMS):
        controller = AbortController()
        stream = checked(random_stream(seed, controller))
        events = await read_until_stalled(stream, controller)
        message = check_events(events)
        assert message is await stream.result()
        ends.add(message.stop_reason)
        encode_message(message)
    assert ends == {"stop", "toolUse", "length", "error", "aborted"}


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("seed", range(samples(60, 12)))
async def test_random_streams_keep_the_rules_when_aborted_at_any_event(seed: int):
    controller = AbortController()
    whole = await read_until_stalled(random_stream(seed, controller), controller)
    for position in range(0, len(whole), max(1, len(whole) // samples(120, 40))):
        controller = AbortController()
        stream = checked(random_stream(seed, controller))
        events = await read_until_stalled(stream, controller, position)
        message = check_events(events)
        assert message is await stream.result()
        assert len(events) > position


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("seed", range(samples(100, 15)))
async def test_late_readers_and_several_readers_see_legal_streams(seed: int):
    controller = AbortController()
    stream = checked(random_stream(seed, controller))
    random = Random(seed)

    async def read(steps: int) -> AssistantMessageEvent | None:
        for _ in range(steps):
            await asyncio.sleep(0)
        last = None
        async for event in stream:
            last = event
            if random.random() < 0.1:
                await asyncio.sleep(0)
        return last

    readers = [asyncio.create_task(read(steps)) for steps in (0, 0, 1, 5, 30)]
    for _ in range(3000):
        await asyncio.sleep(0)
    controller.abort()
    last = await asyncio.gather(*readers)
    assert len({repr(event) for event in last}) == 1
    assert await stream.result() is stream.partial


# --- the checker knows each rule ---------------------------------------------------------------


def message(*content: TextContent | ThinkingContent | ToolCall, reason: str = "stop") -> AssistantMessage:
    return AssistantMessage(list(content), "a", "p", "m", stop_reason=reason, timestamp=1)  # type: ignore[arg-type]


def text_events(m: AssistantMessage) -> list[AssistantMessageEvent]:
    return [Start(m), TextStart(0, m), TextDelta(0, "hi", m), TextEnd(0, "hi", m), Done("stop", m)]


def call_events(m: AssistantMessage, call: ToolCall, delta: str) -> list[AssistantMessageEvent]:
    start, more = ToolCallStart(0, "1", "read", m), ToolCallDelta(0, delta, m)
    return [Start(m), start, more, ToolCallEnd(0, call, m), Done("toolUse", m)]


Sequence_ = Callable[[], Iterator[AssistantMessageEvent]]
ILLEGAL: list[tuple[str, str, Sequence_]] = []


def illegal(rule: str) -> Callable[[Sequence_], Sequence_]:
    def add(function: Sequence_) -> Sequence_:
        ILLEGAL.append((rule, function.__name__, function))
        return function

    return add


@illegal("start-first")
def no_start():
    yield from text_events(message(TextContent("hi")))[1:]


@illegal("start-first")
def end_without_start():
    yield Done("stop", message())


@illegal("one-start")
def two_starts():
    m = message()
    yield from (Start(m), Start(m), Done("stop", m))


@illegal("one-end")
def an_event_after_done():
    m = message(TextContent("hi"))
    yield from (*text_events(m), TextStart(1, m))


@illegal("one-end")
def done_twice():
    m = message()
    yield from (Start(m), Done("stop", m), Done("stop", m))


@illegal("has-end")
def no_end():
    yield from text_events(message(TextContent("hi")))[:-1]


@illegal("has-end")
def nothing():
    yield from ()


@illegal("one-message")
def another_partial():
    m, other = message(TextContent("hi")), message(TextContent("hi"))
    yield from (Start(m), TextStart(0, other))


@illegal("one-message")
def another_final():
    yield from (Start(message()), Done("stop", message()))


@illegal("pending")
def the_reason_changes():
    m = message(TextContent("hi"))
    first, *rest = text_events(m)[:-1]
    yield first
    yield from rest
    m.stop_reason = "length"
    yield Done("length", m)


@illegal("done-reason")
def pending_at_the_end():
    m = message(reason="pending")
    yield from (Start(m), Done("pending", m))


@illegal("done-reason")
def done_for_another_reason():
    m = message(reason="stop")
    yield from (Start(m), Done("length", m))


@illegal("done-reason")
def done_with_error_inside():
    m = message(reason="error")
    yield from (Start(m), Done("stop", m))


@illegal("error-reason")
def error_without_a_failure():
    m = message(reason="stop")
    m.error_message = "no"
    yield from (Start(m), Error("error", m))


@illegal("error-message")
def error_without_a_text():
    m = message(reason="error")
    yield from (Start(m), Error("error", m))


@illegal("error-message")
def a_text_without_an_error():
    m = message()
    m.error_message = "odd"
    yield from (Start(m), Done("stop", m))


@illegal("block-order")
def a_block_is_skipped():
    m = message(TextContent(), TextContent())
    yield from (Start(m), TextStart(1, m))


@illegal("block-order")
def a_block_begins_twice():
    m = message(TextContent())
    yield from (Start(m), TextStart(0, m), TextStart(0, m))


@illegal("block-open")
def a_delta_before_the_start():
    m = message(TextContent())
    yield from (Start(m), TextDelta(0, "x", m))


@illegal("block-open")
def a_delta_after_the_end():
    m = message(TextContent("hi"))
    yield from (*text_events(m)[:-1], TextDelta(0, "x", m))


@illegal("block-open")
def ended_twice():
    m = message(TextContent("hi"))
    yield from (*text_events(m)[:-1], TextEnd(0, "hi", m))


@illegal("block-open")
def a_negative_block():
    m = message(TextContent("hi"))
    yield from (*text_events(m)[:3], TextEnd(-1, "hi", m))


@illegal("block-kind")
def thinking_in_text():
    m = message(TextContent())
    yield from (Start(m), TextStart(0, m), ThinkingDelta(0, "x", m))


@illegal("block-kind")
def a_call_ends_as_text():
    m = message(ToolCall("1", "read"))
    yield from (Start(m), ToolCallStart(0, "1", "read", m), TextEnd(0, "", m))


@illegal("block-closed")
def open_at_the_end():
    m = message(TextContent("hi"))
    first_three = text_events(m)[:3]
    yield from (*first_three, Done("stop", m))


@illegal("deltas-join")
def the_end_has_other_text():
    m = message(TextContent("hi"))
    yield from (*text_events(m)[:3], TextEnd(0, "ho", m))


@illegal("deltas-join")
def the_end_has_other_thoughts():
    m = message(ThinkingContent("hi"))
    yield from (Start(m), ThinkingStart(0, m), ThinkingDelta(0, "hi", m), ThinkingEnd(0, "", m))


@illegal("call-identity")
def the_call_changes_its_name():
    call = ToolCall("1", "write", {"a": 1})
    yield from call_events(message(call, reason="toolUse"), call, '{"a":1}')


@illegal("call-identity")
def the_call_changes_its_id():
    call = ToolCall("2", "read", {"a": 1})
    yield from call_events(message(call, reason="toolUse"), call, '{"a":1}')


@illegal("call-arguments")
def other_arguments():
    call = ToolCall("1", "read", {"a": 2})
    yield from call_events(message(call, reason="toolUse"), call, '{"a":1}')


@illegal("call-arguments")
def more_than_nulls_left_out():
    call = ToolCall("1", "read", {"a": [{}]})
    yield from call_events(message(call, reason="toolUse"), call, '{"a":[{"b":null,"c":0}]}')


@illegal("call-arguments")
def a_null_that_nobody_has_said():
    call = ToolCall("1", "read", {"a": None})
    yield from call_events(message(call, reason="toolUse"), call, "{}")


@illegal("call-arguments")
def invalid_arguments_passed_as_none():
    call = ToolCall("1", "read", {})
    yield from call_events(message(call, reason="toolUse"), call, '{"a":')


@illegal("call-arguments")
def the_final_call_differs():
    ended = ToolCall("1", "read", {"a": 1})
    final = ToolCall("1", "read", {"a": 3})
    yield from call_events(message(final, reason="toolUse"), ended, '{"a":1}')


@illegal("final-content")
def the_message_has_less():
    yield from text_events(message())


@illegal("final-content")
def the_message_has_more():
    yield from text_events(message(TextContent("hi"), TextContent("more")))


@illegal("final-content")
def the_message_has_other_text():
    yield from text_events(message(TextContent("ho")))


@illegal("final-content")
def the_message_has_another_kind():
    yield from text_events(message(ThinkingContent("hi")))


@illegal("usage")
def negative_usage():
    m = message()
    m.usage = Usage(input=-1)
    yield from (Start(m), Done("stop", m))


@pytest.mark.parametrize(("rule", "name", "events"), ILLEGAL, ids=[f"{r}:{n}" for r, n, _ in ILLEGAL])
def test_the_checker_refuses(rule: str, name: str, events: Sequence_):
    with pytest.raises(RuleViolation) as caught:
        check_events(events())
    assert caught.value.rule == rule
    assert RULES[rule] in str(caught.value)


def test_the_checker_refuses_a_result_that_is_another_message():
    m = message(TextContent("hi"))
    checker = RuleChecker()
    for event in text_events(m):
        checker.check(event)
    with pytest.raises(RuleViolation, match="'result'"):
        checker.finish(message(TextContent("hi")))


def test_every_rule_has_a_sequence_that_breaks_it():
    assert {rule for rule, _, _ in ILLEGAL} | {"result"} == set(RULES)


def test_the_checker_takes_legal_events():
    check_events(text_events(message(TextContent("hi"))))
    call = ToolCall("1", "read", {"a": float("nan")})
    check_events(call_events(message(call, reason="toolUse"), call, '{"a": NaN}'))
    bad = ToolCall("1", "read", invalid_arguments="[1]")
    check_events(call_events(message(bad, reason="toolUse"), bad, "[1]"))


def test_the_checker_of_a_late_reader_takes_what_it_did_not_see():
    m = message(TextContent("hidden, told"), TextContent("closed"), TextContent("new"))
    started = AssistantMessage(m.content[:2], "a", "p", "m", stop_reason="pending", timestamp=1)
    checker = RuleChecker(late=True)
    checker.check(Start(started))
    started.content.append(m.content[2])
    for event in (
        TextDelta(0, "told", started),
        TextStart(2, started),
        TextDelta(2, "new", started),
        TextEnd(0, "hidden, told", started),
        TextEnd(2, "new", started),
    ):
        checker.check(event)
    started.stop_reason = "stop"
    checker.check(Done("stop", started))
    assert checker.finish() is started


@pytest.mark.usefixtures("nothing_left")
async def test_a_checked_function_raises_at_the_reader():
    def broken(*_: object) -> AssistantMessageStream:
        scripted = ScriptedModel(["hi"])
        stream = scripted.stream(scripted.model, CONTEXT, StreamOptions())
        stream.partial.error_message = "left from before"
        return stream

    model = ScriptedModel().model
    with pytest.raises(RuleViolation, match="error-message"):
        await checked_function(broken)(model, CONTEXT, StreamOptions()).result()
    with pytest.raises(RuleViolation, match="error-message"):
        async for _ in checked_function(broken)(model, CONTEXT, StreamOptions()):
            pass


@pytest.mark.usefixtures("nothing_left")
async def test_a_checked_stream_that_is_dropped_gives_its_answer_up():
    scripted = ScriptedModel([{"content": "hello", "stall": True}])
    controller = AbortController()
    stream = checked(scripted.stream(scripted.model, CONTEXT, StreamOptions(signal=controller.signal)))
    async for _ in stream:
        break
    assert controller.signal._callbacks
    del stream
    for _ in range(20):
        await asyncio.sleep(0)
    assert not controller.signal._callbacks


@pytest.mark.usefixtures("nothing_left")
async def test_a_checked_reader_may_leave_before_the_end():
    scripted = ScriptedModel([{"content": "hello", "stall": True}])
    stream = checked(scripted.stream(scripted.model, CONTEXT, StreamOptions()))
    reader = aiter(stream)
    for _ in range(3):
        await anext(reader)
    reading = asyncio.create_task(anext(reader, None))
    await asyncio.sleep(0)
    await reader.aclose()
    await stream.aclose()
    assert await reading is None
