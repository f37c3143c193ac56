"""Listeners that hang, cancel, close or prompt, and calls from places where they cannot be waited for."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from cantle.errors import ModelSelectionError
from cantle.hub.events import AgentSettled, SessionEvent
from cantle_agent.errors import AgentBusyError, ListenerError
from cantle_agent.messages import AgentMessage
from cantle_ai.messages import AssistantMessage
from cantle_session.session import Session

OVERLOADED = {"error": {"status": 503, "message": "overloaded"}}
BASH = {"content": [{"type": "toolCall", "name": "bash", "arguments": {"command": "echo a"}}]}
KINDS = [
    "agent_start",
    "message_start",
    "message_update",
    "tool_execution_start",
    "turn_end",
    "agent_end",
    "agent_settled",
]
GRACE = 0.05
NewStage = Callable[..., Awaitable[Any]]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_listener_may_close_the_session(stage: NewStage, kind: str) -> None:
    on = await stage([BASH, "done"])

    async def close(event: SessionEvent) -> None:
        if event.type == kind:
            await on.session.close()

    on.session.subscribe(close)
    await on.session.prompt("go")
    assert isinstance(on.events[-1], AgentSettled)
    assert len([role for role in on.saved() if role == "user"]) == 1
    assert on.saved() == [described(message) for message in on.session.messages]
    with pytest.raises(RuntimeError, match="closed"):
        await on.session.prompt("again")
    assert on.session.session.file is not None
    Session.open(on.session.session.file).close()


def described(message: AgentMessage) -> str:
    return f"{message.role}:{message.stop_reason}" if isinstance(message, AssistantMessage) else message.role


@pytest.mark.parametrize("kind", KINDS)
async def test_a_listener_that_ends_cancelled_is_named_and_keeps_nobody_from_the_event(
    stage: NewStage, kind: str
) -> None:
    on = await stage([BASH, "done", "again"])
    after: list[str] = []

    async def cancelled(event: SessionEvent) -> None:
        if event.type == kind:
            raise asyncio.CancelledError

    on.session.subscribe(cancelled)
    on.session.subscribe(lambda event: after.append(event.type))
    with pytest.raises(ListenerError, match="cancelled failed on"):
        await on.session.prompt("go")
    assert after == [event.type for event in on.events]


@pytest.mark.parametrize("kind", ["message_update", "auto_retry_start", "agent_settled"])
async def test_an_abort_ends_though_a_listener_hangs(stage: NewStage, kind: str) -> None:
    on = await stage([OVERLOADED, "done", "again"])
    on.session.agent.grace = GRACE
    reached = asyncio.Event()

    async def hangs(event: SessionEvent) -> None:
        if event.type == kind:
            reached.set()
            await asyncio.Event().wait()

    stop = on.session.subscribe(hangs)
    run = asyncio.create_task(on.session.prompt("go"))
    await reached.wait()
    async with asyncio.timeout(20):
        await on.session.abort()
        with pytest.raises(ListenerError, match="hangs failed on"):
            await run
    stop()
    await on.session.prompt("again")


async def test_a_cancelled_wait_for_a_retry_is_an_abort(stage: NewStage) -> None:
    on = await stage([OVERLOADED, "done"], pause=lambda seconds, signal: asyncio.Event().wait())
    run = asyncio.create_task(on.session.prompt("go"))
    while "auto_retry_start" not in on.kinds:
        await asyncio.sleep(0)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert on.kinds[-2:] == ["auto_retry_end", "agent_settled"]
    assert on.events[-1] == AgentSettled(True)


async def test_a_listener_cannot_wait_for_a_run(stage: NewStage) -> None:
    on = await stage(["done"])
    refused: list[str] = []

    async def prompts(event: SessionEvent) -> None:
        if event.type == "session_info_changed":
            waits = (lambda: on.session.prompt("from here"), on.session.continue_, on.session.wait_idle)
            for wait in waits:
                with pytest.raises(AgentBusyError) as caught:
                    await wait()
                refused.append(str(caught.value))

    on.session.subscribe(prompts)
    on.session.set_name("a name")
    async with asyncio.timeout(5):
        while len(refused) < 3:
            await asyncio.sleep(0)
        await on.session.prompt("go")
    assert all("listener" in text for text in refused)


async def test_a_level_that_does_not_exist_is_named(stage: NewStage) -> None:
    with pytest.raises(ModelSelectionError, match='"huge"'):
        await stage([], thinking_level="huge")
    on = await stage([])
    with pytest.raises(ModelSelectionError, match='"huge"'):
        await on.session.set_thinking_level("huge")


async def test_a_single_text_is_a_list_of_one(stage: NewStage) -> None:
    on = await stage([], tools="b*", append_system_prompt="Be brief.")
    assert [tool.name for tool in on.session.agent.tools] == ["bash"]
    assert "Be brief." in on.session.system_prompt
    on = await stage([], exclude_tools="bash")
    assert "bash" not in [tool.name for tool in on.session.agent.tools]


@pytest.mark.parametrize("content", [["text"], [None], b"text", 5, None])
async def test_a_prompt_of_another_type_is_refused_before_anything_happens(
    stage: NewStage, content: object
) -> None:
    on = await stage(["done"])
    with pytest.raises(TypeError, match="prompt"):
        await on.session.prompt(content)
    assert (on.events, list(on.session.messages)) == ([], [])
