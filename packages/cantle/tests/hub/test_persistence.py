"""What is in the session file, when it cannot be written, and going on from it."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from cantle.errors import SessionError, WorkingDirectoryError
from cantle.sdk import create_agent_session
from cantle_agent.messages import AgentMessage
from cantle_agent.tool import Tool, ToolContext, ToolResult
from cantle_ai.codec import JsonObject
from cantle_ai.messages import ToolResultMessage
from cantle_ai.models import Models
from cantle_ai.testing.scripted import ScriptedModel
from cantle_session.entries import MessageEntry
from cantle_session.errors import SessionFileError
from cantle_session.session import Session
from tests.support.samples import full_run

NewStage = Callable[..., Awaitable[Any]]

CALL = {"content": [{"type": "toolCall", "name": "bash", "arguments": {"command": "echo hi"}}]}


def roles(messages: list[AgentMessage]) -> list[str]:
    return [message.role for message in messages]


@pytest.mark.parity("sessions.state-at-the-start")
async def test_a_new_session_begins_with_header_model_and_level(stage: NewStage) -> None:
    it = await stage(["Hello."])
    assert not it.session.session.file.exists()
    await it.session.prompt("go")
    entries = it.entries()
    assert [entry["type"] for entry in entries] == [
        *["session", "model_change", "thinking_level_change", "message", "message"]
    ]
    assert entries[1]["provider"], entries[1]["modelId"] == ("scripted", "scripted")
    assert entries[2]["thinkingLevel"] == "medium"
    assert entries[3]["message"]["content"] == [{"type": "text", "text": "go"}]
    assert [entry["parentId"] for entry in entries[2:]] == [entry["id"] for entry in entries[1:-1]]


async def test_a_session_in_memory_leaves_no_file_and_commands_are_told_of_none(
    stage: NewStage, tmp_path: Path
) -> None:
    command = 'echo "[$CANTLE_SESSION_FILE] [$CANTLE_SESSION_ID]"'
    call = {"content": [{"type": "toolCall", "name": "bash", "arguments": {"command": command}}]}
    session = Session.in_memory(tmp_path)
    it = await stage([call, "Done."], session=session)
    await it.session.prompt("go")
    assert it.session.messages[2].text.strip() == f"[] [{session.id}]"
    assert not (tmp_path / "config").exists()


# --- going on --------------------------------------------------------------------------------


@pytest.mark.fault("F10")
async def test_f10_going_on_restores_messages_model_and_level(stage: NewStage) -> None:
    it = await stage([CALL, "Done."], thinking_level="high")
    await it.session.prompt("go")
    await it.session.close()
    file = it.session.session.file
    before = file.read_bytes()
    again = await stage(["Welcome back."], session=Session.open(file))
    assert file.read_bytes() == before  # opening changes nothing
    assert again.session.thinking_level == "high"
    assert again.session.model.key == "scripted/scripted"
    assert list(again.session.messages) == list(it.session.messages)
    assert again.session.usage == it.session.usage
    assert again.session.warnings == []
    await again.session.prompt("on")
    assert file.read_bytes().startswith(before)
    assert [entry["type"] for entry in again.entries()[-2:]] == ["message", "message"]
    assert [entry["type"] for entry in again.entries()].count("model_change") == 1
    asked = again.scripted.requests[0].messages
    assert roles(list(asked)) == ["user", "assistant", "toolResult", "assistant", "user"]


async def test_going_on_counts_what_was_used_before_failed_answers_included(stage: NewStage) -> None:
    broken = {"content": "Half", "usage": {"input": 5, "output": 1}, "error": {"status": 500}, "after": 1}
    it = await stage([broken, CALL, "Whole."])
    await it.session.prompt("go")
    used = it.session.usage
    await it.session.close()
    assert it.session.usage == used
    again = await stage(
        [{"content": "More.", "usage": {"input": 7, "output": 2}}],
        session=Session.open(it.session.session.file),
    )
    assert again.session.usage == used
    await again.session.prompt("on")
    assert again.session.usage.total_tokens == used.total_tokens + 9
    assert again.session.usage == Session.open(it.session.session.file).usage()


async def test_going_on_with_another_model_or_level_is_recorded(stage: NewStage) -> None:
    it = await stage(["One."])
    await it.session.prompt("go")
    await it.session.close()
    again = await stage(["Two."], session=Session.open(it.session.session.file), thinking_level="low")
    await again.session.prompt("on")
    levels = [e["thinkingLevel"] for e in again.entries() if e["type"] == "thinking_level_change"]
    assert levels == ["medium", "low"]


async def test_a_sessions_model_that_is_gone_is_named_and_replaced(stage: NewStage, tmp_path: Path) -> None:
    session = Session.in_memory(tmp_path)
    session.append_model_change("closed", "old-1")
    it = await stage(["Hello."], session=session)
    assert it.session.model.key == "scripted/scripted"
    assert it.session.warnings == [
        "The model closed/old-1 of the session does not exist any more; using scripted/scripted."
    ]


@pytest.mark.fault("F09")
async def test_f09_a_sessions_folder_that_is_gone_is_a_clear_error(stage: NewStage, tmp_path: Path) -> None:
    it = await stage(["Hello."])
    await it.session.prompt("go")
    await it.session.close()
    shutil.rmtree(tmp_path / "work")
    with pytest.raises(
        WorkingDirectoryError, match=r"The session's working directory .*work is gone\. Restore"
    ):
        await stage([], session=Session.open(it.session.session.file))
    elsewhere = await stage(["Hello."], session=Session.open(it.session.session.file), cwd=tmp_path)
    await elsewhere.session.prompt("on")
    assert elsewhere.session.messages[-1].text == "Hello."


async def test_c07_a_call_without_a_result_is_settled_before_the_next_request(stage: NewStage) -> None:
    it = await stage([CALL, "Done."])
    await it.session.prompt("go")
    await it.session.close()
    file = it.session.session.file
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:5]))  # as if it had been killed after the call was recorded
    again = await stage(["I see."], session=Session.open(file))
    await again.session.prompt("on")
    assert again.saved() == ["user", "assistant:toolUse", "toolResult", "user", "assistant:stop"]
    assert again.scripted.requests[0].messages[2].is_error


async def test_an_aborted_or_failed_answer_is_kept_as_it_ended(stage: NewStage) -> None:
    it = await stage([{"content": "Half of", "error": {"message": "no", "status": 400}, "after": 2}, "Fine."])
    await it.session.prompt("go")
    await it.session.prompt("on")
    failed = it.entries()[4]["message"]
    assert (failed["stopReason"], failed["errorMessage"]) == ("error", "no")
    assert it.saved() == ["user", "assistant:error", "user", "assistant:stop"]


# --- a file that cannot be written ---------------------------------------------------------------


class Failing(Session):
    """A session whose file refuses a message of one role, as a full disk would."""

    refuses: str | None = None

    def append_message(self, message: AgentMessage) -> MessageEntry:
        if message.role == self.refuses:
            raise SessionFileError(self.file or Path("memory"), "no space left on the device")
        return super().append_message(message)


@pytest.mark.parametrize(
    ("role", "kept"),
    [
        ("user", []),
        ("assistant", ["user"]),
        ("toolResult", ["user", "assistant"]),
    ],
)
async def test_a_message_that_cannot_be_saved_ends_the_run_and_memory_agrees_with_the_disk(
    stage: NewStage, tmp_path: Path, role: str, kept: list[str]
) -> None:
    session = Failing.create(tmp_path, tmp_path / "sessions")
    it = await stage([CALL, "Done.", "Done again."], session=session)
    assert session.file is not None
    session.refuses = role
    with pytest.raises(SessionError, match=r"The session could not be saved\. .*no space left"):
        await it.session.prompt("go")
    assert it.kinds[-2:] == ["agent_end", "agent_settled"]
    assert roles(it.session.messages) == kept
    assert roles(session.context().messages) == kept
    on_disk = Session.open(session.file).context().messages if session.file.exists() else []
    assert on_disk == list(it.session.messages)
    session.refuses = None
    await it.session.prompt("again")
    assert it.session.messages[-1].stop_reason == "stop"
    assert Session.open(session.file).context().messages == list(it.session.messages)


@pytest.mark.skipif(os.name == "nt", reason="POSIX file system")
async def test_a_folder_that_cannot_be_made_is_named(stage: NewStage, tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config/sessions").write_text("in the way", encoding="utf-8")
    it = await stage(["Hello."])
    with pytest.raises(SessionError, match="sessions"):
        await it.session.prompt("go")
    assert list(it.session.messages) == []
    assert (tmp_path / "config/sessions").read_text(encoding="utf-8") == "in the way"
    assert it.kinds[-1] == "agent_settled"


async def test_details_that_are_not_json_are_told_to_be_lost_and_cost_nothing_else(stage: NewStage) -> None:
    async def odd(arguments: JsonObject, context: ToolContext) -> ToolResult:
        return ToolResult(details=object())  # type: ignore[arg-type]

    tool = Tool(name="odd", description="", parameters={"type": "object"}, execute=odd)
    call = {"content": [{"type": "toolCall", "name": "odd", "arguments": {}}]}
    it = await stage([call, "Done.", "Fine."], tools=[tool])
    await it.session.prompt("go")
    (result,) = (message for message in it.session.messages if isinstance(message, ToolResultMessage))
    assert isinstance(result.details, dict) and "not JSON" in str(result.details["lost"])
    await it.session.prompt("again")
    assert it.session.messages[-1].stop_reason == "stop"
    assert it.session.session.context().messages == list(it.session.messages)


async def test_the_name_and_the_model_cannot_be_saved_either(stage: NewStage, tmp_path: Path) -> None:
    it = await stage(["Hello."])
    await it.session.prompt("go")
    it.session.session.close()
    with pytest.raises(SessionError, match="closed"):
        it.session.set_name("late")
    with pytest.raises(SessionError, match="closed"):
        await it.session.set_thinking_level("high")


async def test_a_session_that_cannot_be_read_is_a_clear_error(stage: NewStage) -> None:
    it = await stage(["Hello."])
    await it.session.prompt("go")
    await it.session.close()
    session = Session.open(it.session.session.file)
    session.close()
    with pytest.raises(SessionError, match="The session cannot be read"):
        await stage([], session=session)


async def test_lines_that_others_overwrote_are_named_in_a_warning(stage: NewStage) -> None:
    it = await stage(["Hello."])
    await it.session.prompt("go")
    await it.session.close()
    session = Session.open(it.session.session.file)
    size = it.session.session.file.stat().st_size
    it.session.session.file.write_bytes(b"x" * size)
    again = await stage([], session=session)
    assert any("can no longer be read" in warning for warning in again.session.warnings)


# --- a process that dies -------------------------------------------------------------------------

DYING = """
import asyncio, os, signal, sys
from pathlib import Path
from cantle.sdk import create_agent_session
from cantle_ai.models import Models
from cantle_ai.testing.scripted import ScriptedModel

CALL = {"content": [{"type": "text", "text": "Let me look."},
                    {"type": "toolCall", "name": "bash", "arguments": {"command": "echo hi"}}]}

async def main():
    models = Models(environ={})
    ScriptedModel([CALL, CALL, "Done."]).register(models)
    session = await create_agent_session(cwd=sys.argv[1], config_dir=sys.argv[2], models=models)
    left = int(sys.argv[3])
    def die(event):
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
    session.subscribe(die)
    await session.prompt("go")
asyncio.run(main())
"""


@pytest.mark.skipif(os.name == "nt", reason="SIGKILL")
async def test_a_session_goes_on_after_its_process_was_killed_at_any_event(tmp_path: Path) -> None:
    step = 3 if full_run() else 9
    for number in range(1, 60, step):
        home = tmp_path / str(number)
        home.mkdir()
        done = subprocess.run(
            [sys.executable, "-c", DYING, str(home), str(home / "config"), str(number)],
            timeout=30,
            check=False,
        )
        files = list(home.glob("config/sessions/*/*.jsonl"))
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL
        if not files:
            continue  # it died before the first message
        lines = [json.loads(line) for line in files[0].read_bytes().split(b"\n") if line]
        assert all(line.get("message", {}).get("stopReason") != "pending" for line in lines)
        scripted = ScriptedModel(["Here I am."])
        models = Models(environ={})
        scripted.register(models)
        async with create_agent_session(
            session=Session.open(files[0]), config_dir=home / "config", models=models
        ) as session:
            await session.prompt("on")
            assert session.last_answer is not None
            assert session.last_answer.text == "Here I am."
            asked = scripted.requests[0].messages
            calls = [call.id for m in asked if m.role == "assistant" for call in m.tool_calls]
            assert [m.tool_call_id for m in asked if m.role == "toolResult"] == calls
    else:
        pytest.fail("the run never came to its end")
