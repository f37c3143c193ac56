"""A session in a folder of its own, with a scripted model, the real tools, and all its events in a list."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from cantle.hub.agent_session import AgentSession
from cantle.hub.events import SessionEvent
from cantle.sdk import create_agent_session
from cantle_ai.abort import AbortSignal
from cantle_ai.model import Model
from cantle_ai.models import Models
from cantle_ai.testing.scripted import ScriptedModel


class Stage:
    """A session, the model behind it, and what happened."""

    def __init__(self, session: AgentSession, scripted: ScriptedModel, waits: list[float]) -> None:
        self.session = session
        self.scripted = scripted
        self.waits = waits
        """Seconds of each wait for a retry; nobody really waits."""
        self.events: list[SessionEvent] = []
        session.subscribe(self.events.append)

    @property
    def kinds(self) -> list[str]:
        """The types of the events so far, updates left out."""
        return [event.type for event in self.events if not event.type.endswith("_update")]

    def entries(self) -> list[dict[str, Any]]:
        """The lines of the session file."""
        file = self.session.session.file
        assert file is not None
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]

    def saved(self) -> list[str]:
        """The roles of the messages in the session file, with how answers ended."""
        messages = [entry["message"] for entry in self.entries() if entry["type"] == "message"]
        return [f"{m['role']}:{m['stopReason']}" if "stopReason" in m else m["role"] for m in messages]


NewStage = Callable[..., Awaitable[Stage]]


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[NewStage]:
    """Makes a session whose model gives `responses`. All are closed at the end of the test."""
    opened: list[AgentSession] = []

    async def make(responses: Iterable[Any] = (), row: Model | None = None, **options: Any) -> Stage:
        scripted = ScriptedModel(responses, model=row)
        models = Models(environ={})
        scripted.register(models)
        waits: list[float] = []

        async def no_pause(seconds: float, signal: AbortSignal) -> None:
            waits.append(seconds)

        options = {"models": models, "config_dir": tmp_path / "config", "pause": no_pause, **options}
        if "session" not in options:
            (tmp_path / "work").mkdir(exist_ok=True)
            options.setdefault("cwd", tmp_path / "work")
        session = await create_agent_session(**options)
        opened.append(session)
        return Stage(session, scripted, waits)

    yield make
    for session in opened:
        await session.close()
