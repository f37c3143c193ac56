"""Whatever a person, a model and a provider do to one session in whatever order: the file only grows, it opens to the
same conversation, and a strict server takes every request that is made of it.
"""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from random import Random
from typing import Any

import pytest

from cantle.errors import CompactionError
from cantle.hub.agent_session import AgentSession
from cantle.sdk import create_agent_session
from cantle.settings import Settings
from cantle_agent.errors import ContinueError
from cantle_ai.abort import AbortSignal
from cantle_ai.model import Model, Provider
from cantle_ai.models import Models
from cantle_ai.testing.server.server import StrictServer
from cantle_session.session import Session
from packages.ai.tests.conformance.column import Column, columns
from packages.cantle.tests.hub.history import SUMMARY, TOO_LONG
from tests.support.samples import samples

COLUMNS = {column.api: column for column in columns()}
APIS = ("openai-completions", "anthropic-messages", "mistral-conversations", "google-generative-ai")
STEPS = 12
USAGE = {"input": 100, "output": 10}
FULL = {"input": 120_000, "output": 10}


class Provided:
    """What the provider answers, drawn. Every call has an id of its own."""

    def __init__(self, draw: Random) -> None:
        self._draw = draw
        self._calls = 0

    def __call__(self, asked: Any) -> Any:
        if "<conversation>" in str(asked):
            return self._draw.choice([SUMMARY] * 4 + [{"error": {"status": 503, "message": "overloaded"}}])
        usage = self._draw.choice([USAGE, USAGE, FULL])
        self._calls += 1
        call = {
            "type": "toolCall",
            "id": f"call{self._calls:05}",
            "name": "bash",
            "arguments": {"command": "true"},
        }
        return self._draw.choice(
            [
                {"content": "An answer.", "usage": usage},
                {"content": "Another answer, which is somewhat longer.", "usage": usage},
                {"content": [call], "usage": usage},
                {"content": "Half of", "stopReason": "length", "usage": usage},
                {"content": "Broken", "error": {"status": 500, "message": "server error"}, "after": 1},
                {"error": {"status": 400, "message": "no"}},
                TOO_LONG,
            ]
        )


class Person:
    """Does one thing after another with a session."""

    def __init__(self, session: AgentSession, draw: Random) -> None:
        self._session = session
        self._draw = draw

    async def act(self) -> None:
        session, draw = self._session, self._draw
        text = f"Do this: {draw.random()} " * draw.choice([1, 20])
        match draw.choice(["prompt", "prompt", "prompt", "compact", "navigate", "continue", "hurry", "stop"]):
            case "prompt":
                await session.prompt(text)
            case "compact":
                with contextlib.suppress(CompactionError):
                    await session.compact(draw.choice([None, "Mind the birds."]))
            case "navigate":
                ids = [link.id for link in session.session.links()]
                with contextlib.suppress(CompactionError):
                    await session.navigate(draw.choice(ids), summarize=draw.random() < 0.5)
            case "continue":
                with contextlib.suppress(ContinueError):
                    await session.continue_()
            case "hurry":
                work = asyncio.create_task(session.prompt(text))
                for _ in range(draw.randrange(60)):
                    await asyncio.sleep(0)
                session.steer("Faster.")
                await work
            case "stop":
                wish = session.prompt(text) if draw.random() < 0.5 else session.compact()
                stopped: asyncio.Task[object] = asyncio.create_task(wish)
                for _ in range(draw.randrange(300)):
                    await asyncio.sleep(0)
                await session.abort()
                with contextlib.suppress(CompactionError):
                    await stopped


def runtime(column: Column, server: StrictServer) -> Models:
    models = Models(environ=dict(column.environ))
    url = server.base_url_for(column.api)
    model = Model(**{"id": "m", "provider": "on", "api": column.api, "base_url": url, **column.model})
    row = {"id": "on", "name": "on", "api": column.api, "base_url": url, "api_key": column.api_key}
    models.add_provider(Provider(**{**row, **column.provider}), [model])
    return models


async def no_pause(seconds: float, signal: AbortSignal) -> None:
    await asyncio.sleep(0)


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("seed", range(samples(60, 3)))
async def test_any_sequence_keeps_the_session_sound(api: str, seed: int, tmp_path: Path) -> None:
    draw = Random(f"{api} {seed}")
    async with StrictServer(Provided(draw), prefix=False) as server:
        session = await create_agent_session(
            models=runtime(COLUMNS[api], server),
            model="on/m",
            cwd=tmp_path,
            session=Session.create(tmp_path, tmp_path / "sessions"),
            config_dir=tmp_path / "config",
            tools=["bash"],
            settings=Settings({"compaction": {"keepRecentTokens": 60}, "retry": {"maxRetries": 2}}),
            pause=no_pause,
        )
        file = session.session.file
        assert file is not None
        async with session:
            person, before = Person(session, draw), b""
            await session.prompt("Begin.")
            for _ in range(STEPS):
                async with asyncio.timeout(20):
                    await person.act()
                now = file.read_bytes()
                assert now.startswith(before)
                before = now
                assert not session.running
                assert list(session.messages) == session.session.context().messages
            session.session.append_custom("end")
            told = list(session.messages)
        server.assert_clean()
    with Session.open(file) as again:
        assert again.warnings == []
        assert again.context().messages == told
