"""Images on their way into the transcript: each door, and what a hook may do there."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from cantle_agent.config import FinishedToolCall, ResultChange
from cantle_agent.events import MessageEnd, ToolExecutionEnd
from cantle_agent.messages import AgentMessage
from cantle_agent.tool import ToolContext, ToolResult
from cantle_ai.abort import AbortSignal
from cantle_ai.content import ImageContent, TextContent, ToolCall, UserContent
from cantle_ai.messages import AssistantMessage, ToolResultMessage, UserMessage
from cantle_ai.model import Model
from packages.agent.tests.support import call, check_transcript, make_agent, make_tool, results, says

GOOD = ImageContent("iVBORw0KGgoAAAAN", "image/png")
MISNAMED = ImageContent("iVBORw0KGgoAAAAN", "image/jpeg")
BAD = ImageContent("***", "image/png")


def shown(content: Any) -> list[str]:
    return [block.mime_type if isinstance(block, ImageContent) else block.text[:7] for block in content]


ENTERED = ["look", "image/png", "image/png", "[An ima"]
BLOCKS: list[UserContent] = [TextContent("look"), GOOD, MISNAMED, BAD]


def content(message: AgentMessage) -> Sequence[UserContent]:
    assert isinstance(message, UserMessage | ToolResultMessage) and not isinstance(message.content, str)
    return message.content


def gives(*blocks: UserContent) -> Any:
    async def execute(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        return ToolResult(content=blocks)

    return make_tool("gives", execute)


@pytest.mark.fault("J03")
async def test_j03_a_prompt_enters_without_a_bad_block():
    agent, model, told = make_agent(["done"])
    await agent.prompt(UserMessage(BLOCKS))
    (message, _) = agent.messages
    assert isinstance(message, UserMessage) and shown(message.content) == ENTERED
    assert told.of(MessageEnd)[0].message is message
    assert model.requests[0].messages[0] is message


@pytest.mark.fault("J03")
@pytest.mark.parametrize("door", ["steer", "follow_up"])
async def test_j03_a_queued_message_enters_without_a_bad_block(door: str):
    agent, _, _ = make_agent(["done", "done"])
    getattr(agent, door)(UserMessage(BLOCKS))
    await agent.prompt("go")
    said = [m for m in agent.messages if isinstance(m, UserMessage) and not isinstance(m.content, str)]
    assert [shown(message.content) for message in said] == [ENTERED]


@pytest.mark.fault("J03")
async def test_j03_a_note_enters_without_a_bad_block():
    agent, _, _ = make_agent([says("", call("noting")), "done"])

    async def noting(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        await agent.add_message(UserMessage(BLOCKS))
        return ToolResult.of("noted")

    agent.tools = [make_tool("noting", noting)]
    await agent.add_message(UserMessage(BLOCKS))
    await agent.prompt("go")
    said = [m for m in agent.messages if isinstance(m, UserMessage) and not isinstance(m.content, str)]
    assert [shown(message.content) for message in said] == [ENTERED, ENTERED]


@pytest.mark.fault("J03")
async def test_j03_a_result_enters_without_a_bad_block_and_its_event_says_the_same():
    agent, _, told = make_agent([says("", call("gives")), "done"], [gives(*BLOCKS)])
    await agent.prompt("go")
    assert shown(results(agent.messages)[0].content) == ENTERED
    assert shown(told.of(ToolExecutionEnd)[0].result.content) == ENTERED


@pytest.mark.fault("J03")
async def test_j03_what_a_hook_makes_of_a_result_is_checked_too():
    def spoil(finished: FinishedToolCall) -> ResultChange:
        return ResultChange(content=BLOCKS)

    agent, _, _ = make_agent([says("", call("gives")), "done"], [gives(GOOD)], after_tool_call=spoil)
    await agent.prompt("go")
    assert shown(results(agent.messages)[0].content) == ENTERED


async def test_a_message_of_sound_images_stays_the_same_object():
    agent, _, _ = make_agent(["done"])
    message = UserMessage([TextContent("look"), GOOD])
    await agent.prompt(message)
    assert agent.messages[0] is message


async def test_a_result_that_comes_by_another_way_is_admitted():
    agent, _, _ = make_agent(["done"])
    answer = AssistantMessage([ToolCall("c", "gives")], "a", "p", "m", stop_reason="toolUse")
    agent.messages = [UserMessage("go"), answer, UserMessage("meanwhile")]
    agent.steer(ToolResultMessage("c", "gives", BLOCKS))
    await agent.continue_()
    assert ENTERED in [shown(result.content) for result in results(agent.messages)]


class Hook:
    """Counts what it is asked, and lets nothing but text in."""

    def __init__(self) -> None:
        self.asked: list[tuple[list[str], str]] = []

    async def __call__(
        self, blocks: Sequence[UserContent], model: Model, signal: AbortSignal
    ) -> Sequence[UserContent]:
        self.asked.append((shown(blocks), model.id))
        return [block for block in blocks if isinstance(block, TextContent)]


async def test_a_hook_decides_once_for_each_message_that_holds_an_image():
    hook = Hook()
    agent, model, _ = make_agent([says("", call("gives")), "done", "done"], [gives(TextContent("r"), GOOD)])
    agent.admit_images = hook
    await agent.prompt(UserMessage([TextContent("look"), GOOD]))
    await agent.prompt("no image")
    name = model.model.id
    assert hook.asked == [(["look", "image/png"], name), (["r", "image/png"], name)]
    assert shown(results(agent.messages)[0].content) == ["r"]


@pytest.mark.parametrize("returned", [RuntimeError("no decoder"), SystemExit(3), ["text"], None])
async def test_a_hook_that_fails_lets_no_image_in_and_ends_nothing(returned: Any):
    def hook(blocks: Sequence[UserContent], model: Model, signal: AbortSignal) -> Any:
        if isinstance(returned, BaseException):
            raise returned
        return returned

    agent, _, _ = make_agent([says("", call("gives")), "done"], [gives(TextContent("r"), GOOD)])
    agent.admit_images = hook
    await agent.prompt(UserMessage([TextContent("look"), GOOD]))
    check_transcript(agent.messages)
    for message in (agent.messages[0], results(agent.messages)[0]):
        _, note = content(message)
        assert isinstance(note, TextContent) and note.text.startswith("[An image was left out: ")
    assert agent.last_error is None


async def test_an_abort_reaches_the_hook_of_a_result_but_what_was_said_enters_whole():
    began = asyncio.Event()
    seen: list[bool] = []

    async def hook(blocks: Sequence[UserContent], model: Model, signal: AbortSignal) -> Sequence[UserContent]:
        began.set()
        await aborted.wait()
        seen.append(signal.aborted)
        return blocks

    for prompt, told in (UserMessage([TextContent("look"), GOOD]), False), ("go", True):
        agent, _, _ = make_agent([says("", call("gives")), "done"], [gives(GOOD)], admit_images=hook)
        aborted = asyncio.Event()
        task = asyncio.create_task(agent.prompt(prompt))
        await began.wait()
        agent.abort()
        aborted.set()
        await task
        assert seen.pop() is told
        check_transcript(agent.messages)
        began.clear()
        if not told:
            assert shown(content(agent.messages[0])) == ["look", "image/png"]


async def test_a_hook_that_does_not_end_costs_its_image_and_the_grace():
    async def hook(blocks: Sequence[UserContent], model: Model, signal: AbortSignal) -> Sequence[UserContent]:
        agent.abort()
        await asyncio.Event().wait()
        return blocks

    agent, _, _ = make_agent(["never"], admit_images=hook, grace=0.01)
    await agent.prompt(UserMessage([TextContent("look"), GOOD]))
    assert shown(content(agent.messages[0])) == ["look", "[An ima"]
