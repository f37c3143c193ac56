"""What one request tells a model: instructions, conversation, tools. A view, made anew for each request."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from cantle_ai.codec import JsonObject
from cantle_ai.messages import Message

__all__ = ["Context", "ToolDefinition"]


class ToolDefinition(Struct, frozen=True):
    """A tool as a model sees it. `parameters` is the JSON schema of an object."""

    name: str
    description: str
    parameters: JsonObject


class Context(Struct, frozen=True):
    """The input of one generation. The system prompt is a field, never a message."""

    system_prompt: str = ""
    messages: Sequence[Message] = ()
    tools: Sequence[ToolDefinition] = ()
