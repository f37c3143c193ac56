"""Faults of an agent's loop, with the real tools, real processes and a session file."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from cantle.hub.events import SessionEvent
from cantle_agent.errors import AgentBusyError
from cantle_ai.messages import ToolResultMessage, UserMessage
from cantle_session.session import Session

NewStage = Callable[..., Awaitable[Any]]
posix = pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")


def call(name: str, arguments: Any) -> dict[str, Any]:
    return {"type": "toolCall", "name": name, "arguments": arguments}


def calls(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"content": list(blocks)}


def bash(command: str) -> dict[str, Any]:
    return call("bash", {"command": command})


def results(it: Any) -> list[ToolResultMessage]:
    """The results that the session file has, in its order."""
    with Session.open(it.session.session.file) as session:
        return [m for m in session.context().messages if isinstance(m, ToolResultMessage)]


async def until(file: Path) -> None:
    async with asyncio.timeout(20):
        while not file.exists():
            await asyncio.sleep(0.01)


@posix
@pytest.mark.fault("E01")
async def test_an_abort_in_a_batch_of_commands_leaves_a_result_for_each_call(stage: NewStage) -> None:
    it = await stage(
        [
            calls(
                bash("touch begun; sleep 60"),
                call("write", {"path": "never", "content": ""}),
                bash("sleep 60"),
            )
        ]
    )
    running = asyncio.create_task(it.session.prompt("go"))
    cwd = Path(it.session.session.header.cwd)
    await until(cwd / "begun")
    await it.session.abort()
    await running
    asked = [block.id for block in it.session.messages[1].content]
    assert [result.tool_call_id for result in results(it)] == asked
    assert all(result.is_error for result in results(it) if result.tool_name == "bash")
    assert it.saved()[-1] == "assistant:aborted"
    it.scripted.extend(["going on"])
    await it.session.prompt("and now?")
    assert it.session.last_answer.text == "going on"


@posix
@pytest.mark.fault("E02")
async def test_steering_lets_the_commands_of_the_batch_run(stage: NewStage) -> None:
    it = await stage([calls(bash("touch a"), bash("touch b"), bash("touch c")), "done"])

    def steer(event: SessionEvent) -> None:
        if event.type == "tool_execution_start" and not it.session.agent.steering:
            it.session.steer("wait")

    it.session.subscribe(steer)
    await it.session.prompt("go")
    cwd = Path(it.session.session.header.cwd)
    assert {path.name for path in cwd.iterdir()} == {"a", "b", "c"}
    assert it.saved()[1:6] == ["assistant:toolUse", *["toolResult"] * 3, "user"]


@posix
@pytest.mark.fault("E03")
async def test_results_are_in_the_file_as_asked_and_told_as_they_finish(stage: NewStage) -> None:
    it = await stage([calls(bash("until [ -e next ]; do sleep 0.01; done; echo a"), bash("echo b")), "done"])

    def let_the_other_end(event: SessionEvent) -> None:
        if event.type == "tool_execution_end":
            (Path(it.session.session.header.cwd) / "next").touch()

    it.session.subscribe(let_the_other_end)
    await it.session.prompt("go")
    told = [event.result.content[0].text for event in it.events if event.type == "tool_execution_end"]
    assert told == ["b\n", "a\n"]
    assert [result.text for result in results(it)] == ["a\n", "b\n"]


@posix
@pytest.mark.fault("E04")
async def test_a_message_that_only_adds_comes_behind_the_results_in_the_file(stage: NewStage) -> None:
    it = await stage([calls(bash("true"), bash("true")), "done"])

    async def add(event: SessionEvent) -> None:
        if event.type == "tool_execution_start" and event.args == {"command": "true"}:
            await it.session.agent.add_message(UserMessage("by the way"))

    it.session.subscribe(add)
    await it.session.prompt("go")
    assert it.saved()[1:6] == ["assistant:toolUse", "toolResult", "toolResult", "user", "user"]


@posix
@pytest.mark.fault("E05")
async def test_with_slow_listeners_every_message_is_in_the_file_before_they_are_told(stage: NewStage) -> None:
    it = await stage([calls(*[bash("true")] * 3), "done"])
    counts: list[tuple[int, int]] = []

    async def slow(event: SessionEvent) -> None:
        if event.type == "message_end":
            for _ in range(20 if event.message.role == "assistant" else 2):
                await asyncio.sleep(0)
            counts.append((len(counts) + 1, len(it.saved())))

    it.session.subscribe(slow)
    await it.session.prompt("go")
    assert counts == [(number, number) for number in range(1, 7)]
    assert it.saved() == ["user", "assistant:toolUse", *["toolResult"] * 3, "assistant:stop"]


@pytest.mark.fault("E06", "E07")
@pytest.mark.parametrize("moment", ["message_update", "tool_execution_start", "message_end"])
async def test_a_second_prompt_or_a_reset_is_refused_at_every_moment(stage: NewStage, moment: str) -> None:
    it = await stage([calls(call("ls", {}), call("read", {"path": "x"})), "done"], tools=["ls", "read"])
    refused: list[str] = []

    async def another() -> None:
        for attempt in (it.session.prompt("more"), it.session.continue_()):
            with pytest.raises(AgentBusyError):
                await attempt
        with pytest.raises(AgentBusyError):
            it.session.agent.reset()
        refused.append(moment)

    async def elsewhere(event: SessionEvent) -> None:
        if event.type == moment:
            await asyncio.create_task(another())

    it.session.subscribe(elsewhere)
    await it.session.prompt("go")
    assert refused
    assert it.saved() == ["user", "assistant:toolUse", "toolResult", "toolResult", "assistant:stop"]


ODD = [
    ("read", {"path": "file", "limit": "1"}, "one"),
    ("read", {"path": "file", "offset": "2", "limit": None}, "two"),
    ("read", {"path": ["file"]}, "path: expected string"),
    ("read", {}, "path: missing"),
    ("read", "", "path: missing"),
    ("read", "{", "not a JSON object"),
    ("read", "[]", "not a JSON object"),
    ("bash", {"command": "echo ran", "timeout": "30"}, "ran"),
    ("bash", {"command": ["echo", "ran"]}, "command: expected string"),
    ("bash", {"script": "echo ran"}, "command: missing"),
    ("write", {"path": "made", "content": {"a": 1}}, "content: expected string"),
    ("write", {"path": "made"}, "content: missing"),
    ("edit", {"path": "file", "edits": '[{"oldText": "one", "newText": "1"}]'}, "file"),
    ("edit", {"path": "file", "edits": {"oldText": "two", "newText": "2"}}, "file"),
    ("edit", {"path": "file", "edits": [["one", "1"]]}, "edits"),
    ("edit", {"path": "file", "edits": "one"}, "edits"),
    ("nothing", {}, "nothing"),
]


@posix
@pytest.mark.fault("E08")
async def test_odd_arguments_of_the_real_tools_are_mended_or_refused_in_words(stage: NewStage) -> None:
    it = await stage([*(calls(call(name, arguments)) for name, arguments, _ in ODD), "done"])
    file = Path(it.session.session.header.cwd) / "file"
    file.write_text("one\ntwo\n")
    await it.session.prompt("go")
    answers = [result.text for result in results(it)]
    assert [answer for answer, (*_, words) in zip(answers, ODD, strict=True) if words not in answer] == []
    assert file.read_text() == "1\n2\n"
    assert not (file.parent / "made").exists()
    assert not any("Traceback" in answer or "Error:" in answer for answer in answers)


@pytest.mark.fault("E09")
@pytest.mark.parametrize("moment", ["turn_end", "agent_end"])
async def test_what_is_queued_as_a_run_ends_is_answered_before_the_session_settles(
    stage: NewStage, moment: str
) -> None:
    it = await stage(["one", "two", "three"])
    queued: list[str] = []

    def late(event: SessionEvent) -> None:
        if event.type == moment and len(queued) < 2:
            queued.append(f"more {len(queued)}")
            (it.session.steer if queued == ["more 0"] else it.session.follow_up)(queued[-1])

    it.session.subscribe(late)
    await it.session.prompt("go")
    assert [message.text for message in it.session.messages] == [
        "go",
        "one",
        "more 0",
        "two",
        "more 1",
        "three",
    ]
    assert it.kinds.count("agent_settled") == 1 and it.kinds[-1] == "agent_settled"


@pytest.mark.fault("E09")
async def test_what_is_queued_when_it_has_settled_is_kept_for_the_next_prompt(stage: NewStage) -> None:
    it = await stage(["one", "two", "three"])

    def late(event: SessionEvent) -> None:
        if event.type == "agent_settled" and len(it.session.messages) == 2:
            it.session.follow_up("later")

    it.session.subscribe(late)
    await it.session.prompt("go")
    await it.session.prompt("again")
    assert [message.text for message in it.session.messages] == [
        "go",
        "one",
        "again",
        "two",
        "later",
        "three",
    ]
