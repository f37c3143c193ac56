"""Tools as an agent calls them, without an agent."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cantle.tools.builtin import BUILTIN_TOOLS
from cantle.tools.environment import ToolEnvironment
from cantle_agent.tool import ToolContext, ToolError, ToolResult
from cantle_ai.abort import AbortController, AbortSignal
from cantle_ai.codec import Json, JsonObject
from cantle_ai.content import TextContent


class FakeContext:
    """What a running call gets, with an abort that the test holds and a list of what was shown."""

    tool_call_id = "call-1"
    tool_name = "tool"

    def __init__(self) -> None:
        self.controller = AbortController()
        self.shown: list[ToolResult] = []
        self.has_shown = asyncio.Event()

    @property
    def signal(self) -> AbortSignal:
        return self.controller.signal

    def progress(self, partial: ToolResult) -> None:
        self.shown.append(partial)
        self.has_shown.set()

    async def shows(self, text: str) -> None:
        """Wait until progress has shown that text."""
        while not any(text in text_of(partial) for partial in self.shown):
            self.has_shown.clear()
            await asyncio.wait_for(self.has_shown.wait(), 20)


_: type[ToolContext] = FakeContext


class Tools:
    """The built-in tools in one folder."""

    def __init__(self, folder: Path, **settings: object) -> None:
        self.folder = folder
        self.environment = ToolEnvironment(folder, **settings)  # type: ignore[arg-type]
        self.tools = {name: make(self.environment) for name, make in BUILTIN_TOOLS.items()}

    async def call(self, name: str, arguments: JsonObject, context: FakeContext | None = None) -> ToolResult:
        tool = self.tools[name]
        if tool.prepare is not None:
            arguments = tool.prepare(arguments)
        return await tool.execute(arguments, context or FakeContext())

    async def read(self, path: str, **more: Json) -> ToolResult:
        return await self.call("read", {"path": path, **more})

    async def edit(self, path: str, *edits: tuple[str, str]) -> ToolResult:
        return await self.call("edit", {"path": path, "edits": [edit_json(*edit) for edit in edits]})

    async def write(self, path: str, content: str) -> ToolResult:
        return await self.call("write", {"path": path, "content": content})

    async def bash(self, command: str, **more: Json) -> ToolResult:
        return await self.call("bash", {"command": command, **more})

    async def failure(self, name: str, **arguments: Json) -> str:
        """What a model reads of a call that can't be done."""
        try:
            result = await self.call(name, arguments)
        except ToolError as problem:
            return str(problem)
        raise AssertionError(f"{name} did not fail: {text_of(result)}")


def edit_json(old: str, new: str) -> JsonObject:
    return {"oldText": old, "newText": new}


def text_of(result: ToolResult) -> str:
    """The text that a model reads."""
    return "".join(block.text for block in result.content if isinstance(block, TextContent))


def details_of(result: ToolResult) -> JsonObject:
    assert isinstance(result.details, dict)
    return result.details


def detail(result: ToolResult, *names: str) -> Json:
    """The value in a result's details under these names."""
    value: Json = result.details
    for name in names:
        assert isinstance(value, dict)
        value = value[name]
    return value


def as_nobody(work: Callable[[], object]) -> None:
    """Do the work in a child without rights of its own. Raises AssertionError with what it raised."""
    if os.geteuid() != 0:
        pytest.skip("needs the super-user, to become someone else")
    ear, mouth = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            work()
        except BaseException as problem:
            os.write(mouth, repr(problem).encode())
        finally:
            os._exit(0)
    os.close(mouth)
    with os.fdopen(ear, "rb") as file:
        said = file.read().decode()
    os.waitpid(pid, 0)
    assert said == "", said


def alive(pid: int) -> bool:
    """Whether a process runs; one that nobody has waited for does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text(encoding="utf-8").rpartition(")")[2].split()[0] not in "ZX"
