"""What a tool is: a name and a schema for the model, a function for us, a result for both.

A tool's failure is a value that the model reads: `execute` raises, or returns a result with `is_error`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from cantle_ai.abort import AbortSignal
from cantle_ai.codec import Json, JsonObject
from cantle_ai.content import TextContent, UserContent
from cantle_ai.context import ToolDefinition
from cantle_ai.usage import Usage

__all__ = ["ExecutionMode", "Tool", "ToolContext", "ToolError", "ToolResult", "not_a_tool"]

ExecutionMode: TypeAlias = Literal["parallel", "sequential"]


class ToolError(Exception):
    """A tool could not do what was asked. The text is what the model reads; `details` go with it for people."""

    def __init__(self, text: str, *, details: Json = None) -> None:
        super().__init__(text)
        self.details = details


class ToolResult(Struct, frozen=True, kw_only=True):
    """What a tool answers, in the end or as progress."""

    content: Sequence[UserContent] = ()
    """What the model reads."""
    details: Json = None
    """What people and programs may look at; never sent to a model. Any JSON."""
    usage: Usage | None = None
    """Model work that the tool did itself; counts in every total."""
    is_error: bool = False
    terminate: bool = False
    """Asks to end the run after this batch. It ends if every result of the batch says so."""

    @classmethod
    def of(cls, text: str, *, details: Json = None, is_error: bool = False) -> ToolResult:
        """A result of one text block."""
        return cls(content=(TextContent(text),), details=details, is_error=is_error)

    def to_json(self) -> JsonObject:
        raw: JsonObject = {"content": [block.to_json() for block in self.content]}
        if self.details is not None:
            raw["details"] = self.details
        if self.usage is not None:
            raw["usage"] = self.usage.to_json()
        if self.terminate:
            raw["terminate"] = True
        return raw


class ToolContext(Protocol):
    """What a running tool gets beside its arguments."""

    @property
    def tool_call_id(self) -> str: ...
    @property
    def tool_name(self) -> str: ...

    @property
    def signal(self) -> AbortSignal:
        """Aborted when the run is. A tool stops soon after, by returning, raising or being told so by a child."""
        ...

    def progress(self, partial: ToolResult) -> None:
        """Show what there is so far. Never blocks; delivered before the call's end; ignored once it has settled."""
        ...


class Tool(Struct, frozen=True, kw_only=True):
    """A tool that an agent may call."""

    name: str
    description: str
    parameters: JsonObject
    """The JSON schema of its arguments, an object."""
    execute: Callable[[JsonObject, ToolContext], Awaitable[ToolResult]]
    """Runs one call with validated arguments. Raises :class:`ToolError`, or anything, for a failure."""
    label: str = ""
    """What a person sees; the name when empty."""
    prepare: Callable[[JsonObject], JsonObject] | None = None
    """Mends the arguments before they are validated, for shapes that models are known to send."""
    execution_mode: ExecutionMode = "parallel"
    """`sequential` makes every batch that holds a call of it run one call at a time."""
    prompt_snippet: str = ""
    """One line about the tool for the system prompt; none when empty."""
    prompt_guidelines: tuple[str, ...] = ()
    """Rules for the system prompt while the tool is active, a line each."""

    def definition(self) -> ToolDefinition:
        """What a model is told of it."""
        return ToolDefinition(self.name, self.description, self.parameters)


def not_a_tool(thing: object) -> str:
    """What is wrong with `thing` among tools, and what to do."""
    name = getattr(thing, "__qualname__", None) or repr(thing)
    return f"{name} is not a tool. Make one of a function with @tool, from cantle_agent.function_tool."
