"""The builder turns what a wire protocol says into legal events, whatever order that comes in."""

import pytest
from msgspec.structs import replace

from cantle_ai.builder import AnswerBuilder
from cantle_ai.content import TextContent, ThinkingContent, ToolCall
from cantle_ai.events import Done, Error, Start, TextDelta, TextEnd, ToolCallEnd, ToolCallStart
from cantle_ai.messages import encode_message, message_from_json
from cantle_ai.testing.checker import check_events
from cantle_ai.testing.scripted import FREE, StepClock
from cantle_ai.usage import Cost, Price, Usage


def new(price: Price | None = None) -> AnswerBuilder:
    return AnswerBuilder(
        api="a", provider="p", model="m", price=price, thinking_level="high", clock=StepClock(10, 5)
    )


def test_the_start_comes_first_and_once():
    builder = new()
    assert builder.take() == [Start(builder.message)]
    assert builder.take() == []


def test_a_whole_answer():
    builder = new(FREE)
    thinking = builder.thinking_start(signature="s")
    builder.thinking_delta(thinking, "because")
    text = builder.text_start()
    builder.text_delta(text, "Hello")
    call = builder.tool_call_start("1", "read")
    builder.tool_call_delta(call, '{"path":')
    builder.tool_call_delta(call, '"a"}')
    builder.usage(Usage(3, 4, total_tokens=7))
    builder.done("toolUse", raw="tool_calls")
    message = check_events(builder.take())
    assert message.content == [
        ThinkingContent("because", signature="s"),
        TextContent("Hello"),
        ToolCall("1", "read", {"path": "a"}),
    ]
    assert (message.timestamp, message.duration_ms) == (10, 5)
    assert (message.stop_reason, message.raw_stop_reason) == ("toolUse", "tool_calls")
    assert message.thinking_level == "high"
    assert message.usage == Usage(3, 4, total_tokens=7, cost=Cost())
    assert message_from_json(message.to_json()) == message


def test_a06_interleaved_blocks_are_kept_apart():
    builder = new()
    text = builder.text_start()
    calls = [builder.tool_call_start(str(n), "read") for n in range(3)]
    for piece in ('{"n"', ":", "1", "}"):
        for call in calls:
            builder.tool_call_delta(call, piece)
        builder.text_delta(text, "x")
    builder.done("toolUse")
    message = check_events(builder.take())
    assert message.text == "xxxx"
    assert [call.arguments for call in message.tool_calls] == [{"n": 1}] * 3


def test_a15_the_start_of_a_call_carries_its_id_and_name():
    builder = new()
    builder.tool_call_start("call_1", "read")
    start = builder.take()[-1]
    assert isinstance(start, ToolCallStart)
    assert (start.id, start.tool_name) == ("call_1", "read")


def test_a09_no_scratch_of_the_stream_is_left_in_the_message():
    builder = new()
    builder.tool_call_delta(builder.tool_call_start("1", "read"), '{"a":1}')
    builder.done("toolUse")
    message = builder.message
    assert message.tool_calls[0].arguments_text == ""
    assert b"partial" not in encode_message(message)


def test_blocks_without_content():
    builder = new()
    builder.text_start()
    builder.thinking_start(signature="s", redacted=True)
    builder.tool_call_start("1", "now")
    builder.done("toolUse")
    message = check_events(builder.take())
    assert message.tool_calls[0].arguments == {}
    assert message.tool_calls[0].invalid_arguments is None


@pytest.mark.parametrize("text", ["{", "[1]", "null", '"x"', "{}{}", "nonsense", '{"a":1'])
def test_arguments_that_are_no_object_are_kept_aside(text: str):
    builder = new()
    builder.tool_call_delta(builder.tool_call_start("1", "read"), text)
    builder.done("toolUse")
    call = check_events(builder.take()).tool_calls[0]
    assert (call.arguments, call.invalid_arguments) == ({}, text)


def test_no_text_is_no_delta():
    builder = new()
    index = builder.text_start()
    builder.text_delta(index, "")
    call = builder.tool_call_start("1", "read")
    builder.tool_call_delta(call, "")
    assert [event.type for event in builder.take()] == ["start", "text_start", "toolcall_start"]


@pytest.mark.parametrize("split", range(1, 6))
def test_a_character_cut_between_its_surrogates_arrives_whole(split: int):
    halves = ["a", "\ud83d", "\ude00", "b", "\ud83d", "\ude00"]
    builder = new()
    index = builder.text_start()
    builder.text_delta(index, "".join(halves[:split]))
    builder.text_delta(index, "".join(halves[split:]))
    builder.done("stop")
    events = builder.take()
    message = check_events(events)
    joined = message.text.encode("utf-16", "surrogatepass").decode("utf-16")
    assert joined == "a😀b😀"
    deltas = [event.delta for event in events if isinstance(event, TextDelta)]
    assert not any("\ud800" <= delta[-1] <= "\udbff" for delta in deltas)


def test_one_character_in_two_deltas_is_one_character():
    builder = new()
    thinking, call = builder.thinking_start(), builder.tool_call_start("1", "read")
    for half in ('{"a":"\ud83d', '\ude00"}'):
        builder.thinking_delta(thinking, half)
        builder.tool_call_delta(call, half)
    builder.done("toolUse")
    message = check_events(builder.take())
    assert message.tool_calls[0].arguments == {"a": "😀"}
    assert encode_message(message).decode("utf-8").count("😀") == 2


def test_half_a_character_at_the_end_is_kept():
    builder = new()
    builder.text_delta(builder.text_start(), "x\ud83d")
    builder.fail("cut")
    message = check_events(builder.take())
    assert message.text == "x\ud83d"
    assert b"\\ud83d" in encode_message(message)


def test_ending_a_block_twice_is_ending_it_once():
    builder = new()
    index = builder.text_start()
    builder.text_delta(index, "x")
    builder.end(index)
    builder.end(index)
    builder.end(99)
    builder.done("stop")
    assert sum(isinstance(event, TextEnd) for event in builder.take()) == 1


def test_a_closed_block_takes_nothing_more():
    builder = new()
    index = builder.text_start()
    builder.end(index)
    with pytest.raises(ValueError, match="block 0 of the answer is not open"):
        builder.text_delta(index, "x")
    with pytest.raises(ValueError, match="block 7"):
        builder.tool_call_delta(7, "x")


def test_an_answer_ends_once():
    builder = new()
    builder.done("stop")
    builder.done("length")
    builder.fail("too late")
    events = builder.take()
    assert events[-1] == Done("stop", builder.message)
    assert len(events) == 2
    assert builder.message.error_message is None


def test_a_failed_answer_ends_once():
    builder = new()
    builder.fail("broken", raw="content_filter")
    builder.done("stop")
    builder.fail("again", aborted=True)
    events = builder.take()
    assert events[1:] == [Error("error", builder.message)]
    assert builder.message.error_message == "broken"
    assert builder.message.raw_stop_reason == "content_filter"


def test_an_aborted_answer_keeps_what_came():
    builder = new()
    builder.text_delta(builder.text_start(), "half")
    builder.fail("Operation aborted", aborted=True)
    message = check_events(builder.take())
    assert (message.stop_reason, message.text) == ("aborted", "half")


@pytest.mark.parametrize("reason", ["error", "aborted", "pending"])
def test_done_is_for_answers_that_are_done(reason: str):
    with pytest.raises(ValueError, match=reason):
        new().done(reason)  # type: ignore[arg-type]


def test_the_latest_usage_counts_and_is_priced():
    price = Price(input=1, output=2, cache_read=0.1, cache_write=1.25)
    builder = new(price)
    builder.usage(Usage(1_000_000, 0, total_tokens=1_000_000))
    builder.usage(Usage(1_000_000, 1_000_000, 1_000_000, total_tokens=3_000_000, extra={"x": 1}))
    builder.done("stop")
    usage = builder.message.usage
    assert usage.cost.total == pytest.approx(3.1)
    assert usage.extra == {"x": 1}


@pytest.mark.parametrize(
    "name", ["input", "output", "cache_read", "cache_write", "cache_write_1h", "reasoning", "total_tokens"]
)
def test_a_negative_figure_counts_as_none(name: str):
    builder = new(FREE)
    builder.usage(replace(Usage(2, 3, total_tokens=5), **{name: -1}))
    usage = builder.message.usage
    assert getattr(usage, name) == 0
    assert (usage.input, usage.output) == (2 * (name != "input"), 3 * (name != "output"))
    assert usage.cost == Cost()


def test_a_cost_that_came_with_the_usage_is_kept():
    builder = new(Price(input=1, output=1, cache_read=0, cache_write=0))
    builder.usage(Usage(10, cost=Cost(total=0.5)))
    assert builder.message.usage.cost.total == 0.5


def test_without_a_price_the_cost_is_unknown_and_the_counts_stay():
    builder = new()
    builder.usage(Usage(10, 5))  # a server that leaves the total out
    builder.done("stop")
    assert builder.message.usage == Usage(10, 5, cost=Cost(unknown=True))


def test_usage_that_never_came_has_an_unknown_cost_without_a_price():
    builder = new()
    builder.done("stop")
    assert builder.message.usage.cost.unknown


def test_a_message_encoded_while_it_grew_is_encoded_anew_at_its_end():
    builder = new()
    encode_message(builder.message)
    builder.text_delta(builder.text_start(), "x")
    builder.done("stop")
    assert b'"stopReason":"stop"' in encode_message(builder.message)


def test_the_ended_call_is_the_one_in_the_message():
    builder = new()
    builder.tool_call_delta(builder.tool_call_start("1", "read"), "{}")
    builder.done("toolUse")
    end = next(event for event in builder.take() if isinstance(event, ToolCallEnd))
    assert end.tool_call is builder.message.content[0]


def test_many_open_blocks_cost_as_much_as_they_are():
    builder = new()
    for number in range(20_000):
        builder.tool_call_start(str(number), "read")
    builder.done("toolUse")
    assert len(builder.take()) == 40_002
