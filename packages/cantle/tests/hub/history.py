"""What the tests of compaction, recovery and navigation have in common."""

from __future__ import annotations

import asyncio
from typing import Any

from cantle.hub.events import CompactionEnd, CompactionStart, SessionEvent
from cantle.settings import Settings
from cantle_ai.context import Context
from cantle_ai.model import Model
from cantle_ai.testing.scripted import scripted_model

SMALL = {"input": 100, "output": 10}
FULL = {"input": 120_000, "output": 10}
"""Of a window of 128,000 tokens this leaves less than the reserve."""
OVER = {"input": 130_000, "output": 10}
NONE = {"input": 0, "output": 0}

TOO_LONG = {"error": {"message": "prompt is too long", "status": 400, "code": "context_length_exceeded"}}
BUSY = {"error": {"message": "Overloaded, try again later", "status": 503}}
REFUSED = {"error": {"message": "no", "status": 400}}
SUMMARY = {"content": "## Goal\nTo greet.", "usage": {"input": 50, "output": 5}}

HELLO = "Hello there. " * 30
MORE = "And more of it. " * 30


def said(text: str, usage: dict[str, int] = SMALL) -> dict[str, Any]:
    return {"content": text, "usage": usage}


def call(command: str = "true", usage: dict[str, int] = SMALL, number: int = 1) -> dict[str, Any]:
    block = {"type": "toolCall", "name": "bash", "id": f"c{number}", "arguments": {"command": command}}
    return {"content": [block], "usage": usage}


def keeping(tokens: int = 10, **more: Any) -> Settings:
    """Settings with which nearly nothing is kept, so that short conversations can be compacted."""
    return Settings({"compaction": {"keepRecentTokens": tokens, **more}})


def model_with(window: int) -> Model:
    from msgspec.structs import replace

    return replace(scripted_model(), context_window=window, max_tokens=1000)


class Held:
    """A response that does not come before `go`."""

    def __init__(self, response: Any) -> None:
        self.response = response
        self.asked = asyncio.Event()
        self.go = asyncio.Event()

    async def __call__(self, context: Context) -> Any:
        self.asked.set()
        await self.go.wait()
        return self.response


def compactions(it: Any) -> list[SessionEvent]:
    return [event for event in it.events if isinstance(event, CompactionStart | CompactionEnd)]


def ends(it: Any) -> list[CompactionEnd]:
    return [event for event in it.events if isinstance(event, CompactionEnd)]


def kinds(it: Any) -> list[str]:
    """The types of the entries in the session, without what every session begins with."""
    return [entry.type for entry in it.session.session.entries()][2:]


def asked(it: Any, index: int = -1) -> list[str]:
    """The texts of a request's messages, each by its first words."""
    return [message.text[:40] for message in it.scripted.requests[index].messages]
