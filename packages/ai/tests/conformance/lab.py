"""Asks a model of one column for an answer, over real HTTP and under the rules of the event stream."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from cantle_ai.content import ImageContent, TextContent, UserContent
from cantle_ai.context import Context, ToolDefinition
from cantle_ai.errors import ErrorDetails
from cantle_ai.events import AssistantMessageEvent
from cantle_ai.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from cantle_ai.model import Model, Provider, StreamOptions
from cantle_ai.models import Models
from cantle_ai.testing.checker import checked
from cantle_ai.testing.server.server import StrictServer
from packages.ai.tests.conformance.column import Column

__all__ = ["PIXEL", "READ", "Answer", "Lab", "result", "user"]

PIXEL = ImageContent("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
                     "image/png")  # fmt: skip
READ = ToolDefinition(
    "read",
    "Reads a file.",
    {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)


def user(*blocks: str | UserContent) -> UserMessage:
    """What a person says; a text may stand for its block."""
    return UserMessage(
        [TextContent(block) if isinstance(block, str) else block for block in blocks], timestamp=1
    )


def result(call_id: str, *blocks: str | UserContent, is_error: bool = False) -> ToolResultMessage:
    """What a call of `read` gave."""
    content = [TextContent(block) if isinstance(block, str) else block for block in blocks]
    return ToolResultMessage(call_id, "read", content, is_error=is_error, timestamp=1)


@dataclass
class Answer:
    """What came of a request."""

    events: list[AssistantMessageEvent]
    message: AssistantMessage

    @property
    def details(self) -> ErrorDetails:
        details = self.message.error_details
        assert details is not None, self.message.error_message
        return details


class Lab:
    """The models of one column."""

    def __init__(self, column: Column) -> None:
        self.column = column

    @asynccontextmanager
    async def serving(self, *responses: Any, **options: Any) -> AsyncIterator[StrictServer]:
        """A strict server with these responses, which must have found nothing wrong at the end."""
        async with StrictServer(responses, **options) as server:
            yield server
            server.assert_clean()

    def model(self, server: StrictServer, **fields: Any) -> Model:
        given = {**self.column.model, **fields}
        base_url = server.base_url_for(self.column.api)
        return Model(**{"id": "m-1", "provider": "p", "api": self.column.api, "base_url": base_url, **given})

    def models(self, model: Model) -> Models:
        """The runtime with the column's provider in it."""
        row: dict[str, Any] = {"id": "p", "name": "P", "api": model.api, "base_url": model.base_url}
        models = Models(environ=dict(self.column.environ))
        models.add_provider(
            Provider(**{**row, "api_key": self.column.api_key, **self.column.provider}), [model]
        )
        return models

    async def ask(
        self,
        server: StrictServer,
        *history: str | Message,
        tools: Sequence[ToolDefinition] = (),
        system: str = "Be brief.",
        see: Callable[[AssistantMessageEvent], None] | None = None,
        model: dict[str, Any] | None = None,
        through: Models | None = None,
        **options: Any,
    ) -> Answer:
        """Ask once. `model` changes the row, `options` are the stream's, `see` is shown each event as it comes.

        `through` is a runtime that goes on being used; otherwise the request has one of its own.
        """
        asked = self.model(server, **(model or {}))
        models = through or self.models(asked)
        messages = [user(message) if isinstance(message, str) else message for message in history]
        try:
            stream = checked(
                models.stream(asked, Context(system, messages, list(tools)), StreamOptions(**options))
            )
            events = []
            async for event in stream:
                events.append(event)
                if see is not None:
                    see(event)
            return Answer(events, await stream.result())
        finally:
            if through is None:
                await models.aclose()
