"""Runs the demo and shows it: each step as it happens, or one JSON object at the end."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cantle.console import Results, notice
from cantle.demo.project_tests import Counts, run_tests
from cantle.demo.script import PROMPT, responses
from cantle.errors import UserError
from cantle.hub.agent_session import AgentSession
from cantle.hub.events import SessionEvent
from cantle.sdk import create_agent_session
from cantle_agent.events import MessageEnd, ToolExecutionEnd, ToolExecutionStart, TurnStart
from cantle_ai.codec import encode_json
from cantle_ai.messages import AssistantMessage
from cantle_ai.models import Models
from cantle_ai.system_errors import reason_of
from cantle_ai.testing.scripted import ScriptedModel
from cantle_session.session import Session

__all__ = ["run_demo"]


def run_demo(folder: Path | None, *, as_json: bool) -> int:
    """Run it in `folder`, or a new temporary one. Returns 0 only if the tests failed before and pass after.

    Raises UserError when `folder` cannot be used.
    """
    results = Results()
    say: Callable[[str], None] = _silent if as_json else lambda text: results.say(text + "\n")
    started = time.monotonic()
    root = _fresh(folder)
    project = root / "project"
    shutil.copytree(Path(__file__).parent / "project", project, ignore=shutil.ignore_patterns("__pycache__"))
    say(f"A small Python project with three bugs is in {project}")
    say("The model is scripted: it plays recorded answers, so no key and no network are needed.")
    say("The agent loop, the tools, the tests and the session file are real.\n")
    before = run_tests(project)
    say(f"Tests before: {before}\n")
    figures = _Figures(say)
    session = asyncio.run(_mend(project, root / "sessions", figures))
    after = run_tests(project)
    say(f"\nTests after: {after}")
    usage = session.usage
    seconds = time.monotonic() - started
    say(
        f"{figures.calls} tool calls in {figures.turns} turns, {seconds:.1f} s. Session: {session.session.file}"
    )
    if as_json:
        report = {
            "testsBefore": _counts(before),
            "testsAfter": _counts(after),
            "toolCalls": figures.calls,
            "turns": figures.turns,
            "tokens": usage.total_tokens,
            "cost": usage.cost.total,
            "seconds": round(seconds, 3),
            "folder": str(project),
        }
        results.say(encode_json(report).decode() + "\n")
    if before.ok or not after.ok:
        notice(f"the demo did not work: tests before: {before}; after: {after}. Look in {project}.")
        return 1
    return results.code


async def _mend(project: Path, sessions: Path, figures: _Figures) -> AgentSession:
    models = Models()
    scripted = ScriptedModel(responses())
    scripted.register(models)
    session = await create_agent_session(
        cwd=project,
        config_dir=project.parent / "config",
        models=models,
        model=scripted.model,
        session=Session.create(project, sessions),
        context_files=False,
    )
    session.subscribe(figures)
    try:
        await session.prompt(PROMPT)
    finally:
        await session.close()
    return session


class _Figures:
    """Counts what happens and shows it."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self.calls = 0
        self.turns = 0

    async def __call__(self, event: SessionEvent) -> None:
        match event:
            case TurnStart():
                self.turns += 1
            case MessageEnd(message=AssistantMessage() as message) if message.text:
                self._say(message.text)
            case ToolExecutionStart():
                self.calls += 1
                self._say(f"  > {event.tool_name} {_gist(event.args)}")
            case ToolExecutionEnd() if event.is_error or event.tool_name == "bash":
                lines = "\n".join(getattr(b, "text", "") for b in event.result.content).splitlines()
                self._say("".join(f"    | {line}\n" for line in _last(lines)).rstrip("\n"))


def _gist(args: dict[str, Any]) -> str:
    """The path or command a call is about, on one line."""
    text = str(args.get("path") or args.get("command") or "")
    return text if len(text) <= 90 else text[:87] + "..."


def _last(lines: list[str]) -> list[str]:
    return [line for line in lines if line.strip()][-4:]


def _counts(counts: Counts) -> dict[str, int]:
    return {"passed": counts.passed, "failed": counts.failed}


def _fresh(folder: Path | None) -> Path:
    if folder is None:
        return Path(tempfile.mkdtemp(prefix="cantle-demo-"))
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UserError(f"The folder {folder} is not empty.", "Name a folder that is new or empty.")
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"The folder {folder} cannot be used: {reason_of(error)}.", "Name another folder."
        ) from None
    return folder.resolve()


def _silent(text: str) -> None:
    return None
