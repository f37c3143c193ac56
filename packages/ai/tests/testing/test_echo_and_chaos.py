"""Models without a script: one that says back what it was told, one that does anything that is legal."""

import asyncio
from collections import Counter

import pytest

from cantle_ai.abort import AbortController
from cantle_ai.content import TextContent
from cantle_ai.context import Context, ToolDefinition
from cantle_ai.events import AssistantMessageEvent, Error
from cantle_ai.messages import AssistantMessage, ToolResultMessage, UserMessage
from cantle_ai.model import StreamOptions
from cantle_ai.testing.chaos import FAULTS, ChaosModel
from cantle_ai.testing.checker import check_events
from cantle_ai.testing.echo import EchoModel

TOLD = Context("", [UserMessage("hi", timestamp=1)])


async def echoed(*messages: UserMessage | ToolResultMessage) -> AssistantMessage:
    echo = EchoModel()
    return await echo.stream(echo.model, Context("", messages), StreamOptions()).result()


async def test_an_echo():
    assert (await echoed(UserMessage("Hello,\nyou"))).text == "Hello,\nyou"


async def test_an_echo_of_nothing():
    assert (await echoed()).content == []


async def test_an_echo_thinks_and_calls():
    message = await echoed(
        UserMessage('?? because\nI call:\n>> read {"path": "a b"}\n>> ls\n>> bad {"x"\n>> two words here')
    )
    assert [block.type for block in message.content] == ["thinking", "text", *["toolCall"] * 4]
    assert [(c.name, c.arguments, c.invalid_arguments) for c in message.tool_calls] == [
        ("read", {"path": "a b"}, None),
        ("ls", {}, None),
        ("bad", {}, '{"x"'),
        ("two", {}, "words here"),
    ]
    assert message.stop_reason == "toolUse"


async def test_an_echo_says_what_the_tools_said():
    results = [
        ToolResultMessage(str(number), "read", [TextContent(text)]) for number, text in enumerate("abc")
    ]
    assert (await echoed(UserMessage(">> read"), *results)).text == "a\nb\nc"


async def chaos_events(model: ChaosModel, context: Context = TOLD) -> list[AssistantMessageEvent]:
    return [event async for event in model.stream(model.model, context, StreamOptions())]


@pytest.mark.parametrize("seed", range(20))
async def test_one_seed_one_chaos(seed: int):
    async def play() -> list[str]:
        model = ChaosModel(seed, faults=("error", "cut", "bug"))
        return [repr(event) for _ in range(3) for event in await chaos_events(model)]

    assert await play() == await play()


async def test_chaos_does_everything_it_promises():
    seen: Counter[str] = Counter()
    for seed in range(200):
        events = await chaos_events(ChaosModel(seed, faults=("error", "cut", "bug")))
        message = check_events(events)
        starts = [event.type for event in events if event.type.endswith("_start")]
        ends = [event.type for event in events if event.type.endswith("_end")]
        seen[message.stop_reason] += 1
        seen["many blocks"] += len(starts) >= 40
        seen["no block"] += not starts
        seen["empty block"] += any(b.type == "text" and not b.text for b in message.content)
        seen["interleaved"] += [s.partition("_")[0] for s in starts] != [e.partition("_")[0] for e in ends]
        seen["invalid arguments"] += any(call.invalid_arguments for call in message.tool_calls)
        seen["surrogate"] += "\ud800" in message.text
        seen["cut"] += message.error_message == "The answer ended before it was complete"
        seen["bug"] += message.error_message in ("RuntimeError", "The chaos source is broken")
    for name in (
        *("stop", "toolUse", "length", "error", "many blocks", "no block", "empty block"),
        *("interleaved", "invalid arguments", "surrogate", "cut", "bug"),
    ):
        assert seen[name], name


async def test_chaos_without_faults_never_fails():
    for seed in range(60):
        events = await chaos_events(ChaosModel(seed, faults=()))
        assert not isinstance(events[-1], Error)


@pytest.mark.parametrize("fault", FAULTS)
async def test_each_fault_alone(fault: str):
    controller = AbortController()
    model = ChaosModel(3, faults=[fault], fault_rate=1)  # type: ignore[list-item]
    stream = model.stream(model.model, TOLD, StreamOptions(signal=controller.signal))
    if fault == "stall":
        asyncio.get_running_loop().call_later(0.05, controller.abort)
    message = await stream.result()
    assert message.stop_reason == ("aborted" if fault == "stall" else "error")


async def test_chaos_calls_the_tools_that_there_are():
    context = Context("", TOLD.messages, [ToolDefinition("only", "The only one", {"type": "object"})])
    names: set[str] = set()
    for seed in range(40):
        model = ChaosModel(seed, faults=())
        names |= {call.name for call in check_events(await chaos_events(model, context)).tool_calls}
    assert names == {"only"}


async def test_chaos_without_calls():
    for seed in range(40):
        model = ChaosModel(seed, faults=(), calls=False)
        assert not check_events(await chaos_events(model)).tool_calls
