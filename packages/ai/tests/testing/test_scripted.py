"""The scripted model: what a script says is what arrives, the same on every machine."""

import asyncio
from typing import Any

import pytest

from cantle_ai.abort import AbortController
from cantle_ai.content import TextContent
from cantle_ai.context import Context, ToolDefinition
from cantle_ai.events import AssistantMessageEvent, TextDelta
from cantle_ai.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from cantle_ai.model import StreamOptions
from cantle_ai.models import Models
from cantle_ai.testing.checker import check_events, checked_function
from cantle_ai.testing.response import Answer, CallBlock, Response, TextBlock
from cantle_ai.testing.scripted import ScriptedModel, StepClock, scripted_model
from cantle_ai.testing.server.server import StrictServer
from cantle_ai.usage import Price


def told(*texts: str) -> Context:
    return Context("Be brief.", [UserMessage(text, timestamp=1) for text in texts])


async def ask(
    scripted: ScriptedModel, context: Context | None = None, options: StreamOptions | None = None
) -> AssistantMessage:
    stream = checked_function(scripted.stream)
    return await stream(scripted.model, context or told("hi"), options or StreamOptions()).result()


async def events_of(
    scripted: ScriptedModel, options: StreamOptions | None = None
) -> list[AssistantMessageEvent]:
    stream = scripted.stream(scripted.model, told("hi"), options or StreamOptions())
    return [event async for event in stream]


@pytest.mark.parametrize(
    "answer",
    [
        "Hello",
        {"content": "Hello"},
        Response(content="Hello"),
        TextBlock(text="Hello"),
        [TextBlock(text="Hel"), TextBlock(text="lo")],
    ],
    ids=repr,
)
async def test_what_a_response_can_be_written_as(answer: Answer):
    assert (await ask(ScriptedModel([answer]))).text == "Hello"


async def test_responses_are_played_in_order():
    scripted = ScriptedModel(["one", "two"])
    assert [(await ask(scripted)).text for _ in range(2)] == ["one", "two"]
    assert scripted.left == 0


async def test_a_whole_response():
    scripted = ScriptedModel(
        [
            {
                "content": [
                    {"type": "thinking", "thinking": "hm", "thinkingSignature": "s", "redacted": True},
                    {"type": "text", "text": "yes", "textSignature": "t"},
                    {
                        "type": "toolCall",
                        "name": "read",
                        "arguments": {"path": "ü"},
                        "id": "call_1",
                        "thoughtSignature": "c",
                    },
                ],
                "usage": {"input": 1, "output": 20, "cacheRead": 300, "cacheWrite": 4000, "reasoning": 5},
                "rawStopReason": "tool_calls",
            }
        ]
    )
    message = await ask(scripted)
    assert message.to_json() == {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hm", "thinkingSignature": "s", "redacted": True},
            {"type": "text", "text": "yes", "textSignature": "t"},
            {
                "type": "toolCall",
                "id": "call_1",
                "name": "read",
                "arguments": {"path": "ü"},
                "thoughtSignature": "c",
            },
        ],
        "api": "scripted",
        "provider": "scripted",
        "model": "scripted",
        "usage": {
            "input": 1,
            "output": 20,
            "cacheRead": 300,
            "cacheWrite": 4000,
            "reasoning": 5,
            "totalTokens": 4321,
            "cost": {"input": 0.0, "output": 0.0, "cacheRead": 0.0, "cacheWrite": 0.0, "total": 0.0},
        },
        "stopReason": "toolUse",
        "rawStopReason": "tool_calls",
        "timestamp": 1_700_000_000_000,
        "durationMs": 1000,
        "thinkingLevel": "off",
    }


@pytest.mark.parametrize("reason", ["stop", "length", "toolUse", "deferred"])
async def test_each_stop_reason(reason: str):
    assert (await ask(ScriptedModel([{"content": "x", "stopReason": reason}]))).stop_reason == reason


async def test_a_deferred_response():
    handle = {"provider": "scripted", "modelId": "m", "api": "scripted", "id": "batch_1", "pollAfterMs": 10}
    message = await ask(ScriptedModel([{"deferred": handle}]))
    assert (message.stop_reason, message.deferred) == ("deferred", handle)


async def test_arguments_that_are_no_json():
    message = await ask(
        ScriptedModel([{"content": [{"type": "toolCall", "name": "x", "arguments": "{bad"}]}])
    )
    assert message.tool_calls[0].invalid_arguments == "{bad"


async def test_one_seed_one_stream():
    call = CallBlock(name="read", arguments={"a": "b" * 50})
    responses: list[Answer] = [{"content": "a sentence of some length"}, call]

    async def play(seed: int) -> list[str]:
        scripted = ScriptedModel(responses, seed=seed)
        return [repr(event) for _ in range(2) for event in await events_of(scripted)]

    assert await play(1) == await play(1)
    assert await play(1) != await play(2)


@pytest.mark.parametrize(("chunk", "sizes"), [(4, [4, 4, 2]), (None, [10]), (1, [1] * 10)])
async def test_chunk_sizes(chunk: int | None, sizes: list[int]):
    events = await events_of(ScriptedModel(["0123456789"], chunk=chunk))
    assert [len(event.delta) for event in events if isinstance(event, TextDelta)] == sizes


async def test_a_responses_own_chunk_size_goes_first():
    events = await events_of(ScriptedModel([{"content": "0123456789", "chunk": [5, 5]}], chunk=1))
    assert [event.delta for event in events if isinstance(event, TextDelta)] == ["01234", "56789"]


@pytest.mark.parametrize("chunk", [0, -1, (0, 3), (5, 2)])
def test_a_chunk_that_cannot_be(chunk: int | tuple[int, int]):
    with pytest.raises(ValueError, match="`chunk` must be"):
        ScriptedModel(["x"], chunk=chunk)


async def test_the_rate_waits_through_the_injected_sleep():
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    scripted = ScriptedModel([{"content": "0123", "delayMs": 250}], chunk=1, rate=50, sleep=sleep)
    await ask(scripted)
    assert waits == [0.25, 0.02, 0.02, 0.02, 0.02]


async def test_batches_hand_over_several_deltas_and_wait_as_long():
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    scripted = ScriptedModel(["012345678"], chunk=1, rate=10, batch=4, sleep=sleep)
    assert (await ask(scripted)).text == "012345678"
    assert waits == [0.4, 0.4, 0.1]


async def test_running_out_says_so():
    message = await ask(ScriptedModel())
    assert message.stop_reason == "error"
    assert message.error_message == (
        "The script has no response left for request 1, which ends with message 1: add one to it"
    )


async def test_an_error_in_place_of_an_answer():
    error = {"message": "Slow down", "status": 429, "code": "rate_limited", "retryAfterMs": 1500}
    events = await events_of(ScriptedModel([{"error": error}]))
    message = check_events(events)
    assert [event.type for event in events] == ["start", "error"]
    assert message.error_message == "Slow down"
    assert message.extra == {
        "errorDetails": {"status": 429, "code": "rate_limited", "retryAfterMs": 1500, "kind": "http"}
    }


@pytest.mark.parametrize("fault", [{"error": {"status": 500}}, {"cut": True}, {"cut": "quiet"}], ids=repr)
@pytest.mark.parametrize(("after", "text"), [(0, ""), (1, "0"), (3, "012"), (99, "0123"), (None, "0123")])
async def test_faults_at_a_chosen_delta(fault: dict[str, object], after: int | None, text: str):
    place = {} if after is None else {"after": after}
    message = await ask(ScriptedModel([{"content": "0123", **fault, **place}], chunk=1))
    assert (message.stop_reason, message.text) == ("error", text)


async def test_a_cut_is_a_failure_of_the_network():
    message = await ask(ScriptedModel([{"content": "x", "cut": True}]))
    assert message.extra is not None
    assert message.extra["errorDetails"] == {
        "status": None,
        "code": None,
        "retryAfterMs": None,
        "kind": "network",
    }


async def test_a_stall_lasts_until_the_abort():
    controller = AbortController()
    scripted = ScriptedModel([{"content": "0123", "stall": True, "after": 2}], chunk=1)
    stream = scripted.stream(scripted.model, told("hi"), StreamOptions(signal=controller.signal))
    events: list[AssistantMessageEvent] = []
    async for event in stream:
        events.append(event)
        if len(events) == 4:
            asyncio.get_running_loop().call_later(0.01, controller.abort)
    message = check_events(events)
    assert (message.stop_reason, message.text) == ("aborted", "01")
    assert message.usage.output == 1


async def test_an_answer_from_the_context():
    async def later(context: Context) -> str:
        await asyncio.sleep(0)
        return f"{len(context.messages)} messages"

    scripted = ScriptedModel([lambda context: f"told: {context.messages[-1].text}", later])
    assert (await ask(scripted, told("a"))).text == "told: a"
    assert (await ask(scripted, told("a", "b"))).text == "2 messages"
    assert scripted.left == 0


async def test_one_function_for_every_request():
    scripted = ScriptedModel(lambda context: {"content": "again", "stopReason": "length"})
    for _ in range(3):
        assert (await ask(scripted)).text == "again"


async def test_a_function_that_fails_is_an_error_event():
    def broken(context: Context) -> str:
        raise KeyError("nothing")

    message = await ask(ScriptedModel([broken, lambda context: {"contnt": "x"}]))
    assert message.error_message == "KeyError: 'nothing'"
    scripted = ScriptedModel([lambda context: {"contnt": "x"}])
    assert "unknown field `contnt`" in str((await ask(scripted)).error_message)


def test_a_response_that_is_none_is_refused_at_once():
    with pytest.raises(ValueError, match="unknown field `contnt`"):
        ScriptedModel([{"contnt": "x"}])


@pytest.mark.parametrize("maker", [ScriptedModel, StrictServer])
@pytest.mark.parametrize(
    ("responses", "said"),
    [
        ("abc", "the responses must be a list, even of one"),
        (b"abc", "the responses must be a list, even of one"),
        ({"content": "x"}, "the responses must be a list, even of one"),
        (None, "the responses must be a list, even of one"),
        (["ok", None], "response 2: a response is a text, .* not NoneType"),
        ([5], "response 1: a response is a text, .* not int"),
        ([["a"]], "response 1: .* a list of blocks, not str"),
        (["ok", "ok", {"contnt": "x"}], "response 3: Object contains unknown field"),
    ],
)
def test_what_is_no_script_is_refused_with_a_sentence(maker: Any, responses: object, said: str):
    with pytest.raises(ValueError, match=said):
        maker(responses)
    with pytest.raises(ValueError, match=said):
        maker().extend(responses)


def result(text: str, tool: str = "read", *, is_error: bool = False) -> ToolResultMessage:
    return ToolResultMessage("1", tool, [TextContent(text)], is_error=is_error, timestamp=1)


@pytest.mark.parametrize(
    ("when", "last", "fits"),
    [
        ({}, UserMessage("hi"), True),
        ({"role": "user"}, UserMessage("hi"), True),
        ({"role": "user"}, result("hi"), False),
        ({"role": "toolResult"}, result("hi"), True),
        ({"contains": "fix"}, UserMessage("please fix it"), True),
        ({"contains": "fix"}, UserMessage("please mend it"), False),
        ({"matches": "^pass(ed)?$"}, result("passed"), True),
        ({"matches": "^pass(ed)?$"}, result("not passed"), False),
        ({"tool": "bash"}, result("x", "bash"), True),
        ({"tool": "bash"}, result("x", "read"), False),
        ({"isError": True}, result("", is_error=True), True),
        ({"isError": False}, result("", is_error=True), False),
        ({"isError": False}, UserMessage("hi"), False),
        ({"role": "user", "contains": "no"}, UserMessage("hi"), False),
    ],
)
async def test_when(when: dict[str, object], last: Message, fits: bool):
    scripted = ScriptedModel([{"content": "fits", "when": when}, "else"])
    message = await ask(scripted, Context("", [last]))
    assert message.text == ("fits" if fits else "else")
    assert scripted.left == 1


async def test_a_loop_by_repetition():
    call = {"type": "toolCall", "name": "bash", "arguments": {"command": "test"}}
    scripted = ScriptedModel(
        [
            {"when": {"role": "toolResult", "contains": "passed"}, "content": "Done."},
            {"when": {"role": "toolResult"}, "content": [call], "repeat": "forever"},
            {"content": [call], "repeat": 2},
        ]
    )
    for context, text in (
        (told("go"), ""),
        (Context("", [result("failed")]), ""),
        (Context("", [result("failed")]), ""),
        (told("again"), ""),
        (Context("", [result("passed")]), "Done."),
    ):
        message = await ask(scripted, context)
        assert (message.text, bool(message.tool_calls)) == (text, not text)
    assert scripted.left == 1
    message = await ask(scripted, told("more"))
    assert "None of the 1 responses left in the script fits request 6" in str(message.error_message)


async def test_the_ids_of_calls_do_not_come_twice():
    scripted = ScriptedModel([{"content": [{"type": "toolCall", "name": "x"}] * 3, "repeat": 100}])
    ids = [call.id for _ in range(100) for call in (await ask(scripted)).tool_calls]
    assert len(set(ids)) == 300


async def test_requests_are_recorded_as_they_were():
    messages: list[Message] = [UserMessage("one", timestamp=1)]
    scripted = ScriptedModel(["a", "b"])
    await ask(scripted, Context("s", messages))
    messages.append(UserMessage("two", timestamp=1))
    await ask(scripted, Context("s", messages))
    assert [len(context.messages) for context in scripted.requests] == [1, 2]


async def test_a_stream_that_nobody_reads_is_no_request():
    scripted = ScriptedModel(["a"])
    scripted.stream(scripted.model, told("hi"), StreamOptions())
    await asyncio.sleep(0)
    assert (scripted.requests, scripted.left) == ([], 1)


async def test_without_a_session_nothing_is_cached():
    usage = (await ask(ScriptedModel(["0123"]), told("x" * 400))).usage
    assert usage.input > 100
    assert (usage.output, usage.cache_read, usage.cache_write) == (1, 0, 0)
    assert usage.total_tokens == usage.input + 1


async def test_the_cache_reads_the_common_prefix_of_a_session():
    scripted = ScriptedModel("answer" for _ in range(6))
    options = StreamOptions(session_id="a")
    first = (await ask(scripted, told("x" * 400), options)).usage
    assert (first.input, first.cache_read) == (0, 0)
    longer = (await ask(scripted, told("x" * 400, "y" * 40), options)).usage
    assert abs(longer.cache_read - first.cache_write) <= 1
    assert 0 < longer.cache_write < 40
    assert longer.cache_read + longer.cache_write == longer.total_tokens - longer.output
    other = (await ask(scripted, told("x" * 400), StreamOptions(session_id="b"))).usage
    assert other.cache_read == 0
    none = StreamOptions(session_id="a", cache_retention="none")
    assert (await ask(scripted, told("x" * 400), none)).usage.cache_read == 0
    changed = Context("Another prompt", told("x" * 400).messages)
    assert (await ask(scripted, changed, options)).usage.cache_read < 5
    tools = Context("Another prompt", changed.messages, [ToolDefinition("read", "Reads", {"type": "object"})])
    assert (await ask(scripted, tools, options)).usage.cache_read == 0


async def test_usage_is_priced_by_the_model():
    price = Price(input=1_000_000, output=2_000_000, cache_read=0, cache_write=0)
    scripted = ScriptedModel(
        [{"content": "x", "usage": {"input": 3, "output": 4}}], model=scripted_model(price=price)
    )
    assert (await ask(scripted)).usage.cost.total == 11


async def test_time_comes_from_the_clock():
    scripted = ScriptedModel(["a", "b"], clock=StepClock(100, 7))
    messages = [await ask(scripted) for _ in range(2)]
    assert [(m.timestamp, m.duration_ms) for m in messages] == [(100, 7), (114, 7)]


async def test_models_serve_a_registered_scripted_model():
    models = Models(environ={})
    scripted = ScriptedModel(["Hello"])
    row = scripted.register(models)
    assert models.find("scripted", "scripted") == row
    assert models.configured("scripted")
    assert (await models.complete(row, told("hi"))).text == "Hello"
    await models.aclose()


async def test_http_answers_are_for_the_server():
    message = await ask(ScriptedModel([{"http": {"body": "<html>"}}]))
    assert "strict server" in str(message.error_message)
