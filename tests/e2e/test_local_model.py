"""The model in the box with the rest: the loop runs a real tool for it, and behind the command line a signal ends it."""

import asyncio
import json
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from cantle.tools.environment import ToolEnvironment
from cantle.tools.read.tool import read_tool
from cantle_agent.agent import Agent
from cantle_agent.config import FinishedTurn
from cantle_ai.messages import AssistantMessage, ToolResultMessage
from cantle_ai.model import StreamOptions
from cantle_ai.models import Models
from tests.support.cli import Cli
from tests.support.extras import needs

pytestmark = [needs("local"), pytest.mark.timeout(180)]  # it shares the processor with other tests


@pytest.fixture
def models() -> Iterator[Models]:
    models = Models(environ={})
    yield models
    asyncio.run(models.aclose())


async def test_the_loop_runs_a_tool_that_it_calls_and_it_goes_on_with_the_result(
    models: Models, tmp_path: Path
) -> None:
    (tmp_path / "notes.txt").write_text("The password is swordfish.\n", "utf-8")
    model = models.find("local", "smollm2-135m")
    assert model is not None
    turns: list[FinishedTurn] = []

    def second(turn: FinishedTurn) -> bool:
        turns.append(turn)
        return len(turns) == 2

    agent = Agent(
        stream=models.stream,
        model=msgspec.structs.replace(model, context_window=2048),
        system_prompt="You are a helpful assistant.",
        tools=[read_tool(ToolEnvironment(tmp_path))],
        options=StreamOptions(temperature=0, max_tokens=40),
        should_stop_after_turn=second,
    )
    await agent.prompt("What is in notes.txt?")
    messages = agent.messages
    call, result, answer = messages[1:4]
    assert isinstance(call, AssistantMessage) and call.stop_reason == "toolUse"
    assert [(each.name, each.arguments["path"]) for each in call.tool_calls] == [("read", "notes.txt")]
    assert isinstance(result, ToolResultMessage) and not result.is_error and "swordfish" in result.text
    assert isinstance(answer, AssistantMessage) and not answer.failed
    assert answer.usage.cache_read > 50 and answer.usage.cost.total == 0


@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal")
def test_a_signal_ends_it_and_standard_output_is_json(cli: Cli) -> None:
    """What it answers is its own affair: the real instructions name the folder, which changes."""
    with cli.started("--provider", "local", "--mode", "json", "-p", "Write a long story.") as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if b'"message_update"' in line:
                break
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        rest, err = process.communicate(timeout=100)
        took = time.monotonic() - began
    assert process.returncode == 130 and b"llama" not in err and b"Traceback" not in err
    events = [json.loads(line) for line in [*lines, *rest.splitlines()]]
    assert events[-1]["type"] == "agent_settled"
    assert took < 20
