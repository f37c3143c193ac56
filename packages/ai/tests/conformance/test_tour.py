"""One conversation that visits every wire API in turn and comes back, each time before a server that refuses what
the vendor would.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from cantle_ai.abort import AbortController
from cantle_ai.context import Context
from cantle_ai.events import AssistantMessageEvent
from cantle_ai.history import ProjectionReport
from cantle_ai.messages import AssistantMessage, Message, encode_message
from cantle_ai.model import Model, Provider, StreamOptions
from cantle_ai.models import Models
from cantle_ai.testing.checker import checked
from cantle_ai.testing.server.server import StrictServer
from packages.ai.tests.conformance.cases import call, text, thinking
from packages.ai.tests.conformance.column import Column, columns
from packages.ai.tests.conformance.lab import PIXEL, READ, Lab, result, user

ORDER = (
    "openai-completions",
    "anthropic-messages",
    "google-generative-ai",
    "openai-responses",
    "mistral-conversations",
    "bedrock-converse-stream",
)


def stay(api: str) -> list[dict[str, Any]]:
    """What one API answers: calls, a text, an error, half an answer, a text."""
    return [
        {"content": [thinking(f"{api} thinks"), text(f"{api} looks"), call("a"), call("b"), call("c")]},
        {"content": [thinking(f"{api} thinks again"), call("d")]},
        {"content": f"{api} says: two dots 🎉"},
        {"error": {"status": 500, "message": "Internal server error"}},
        {"content": [thinking("half"), text("half an answer"), call("e")], "stall": True, "chunk": 4},
        {"content": [thinking("last"), text(f"{api} is done")], "usage": {"input": 5, "output": 5}},
    ]


class Traveller:
    """One history and the runtime with a provider for each column."""

    def __init__(self, server: StrictServer, tour: list[Column]) -> None:
        self.history: list[Message] = []
        self.report: Counter[str] = Counter()
        self._models = Models(environ={name: v for column in tour for name, v in column.environ.items()})
        self._rows: dict[str, Model] = {}
        for column in tour:
            model = Lab(column).model(server, provider=column.api)
            row = {"id": column.api, "name": "P", "api": column.api, "base_url": model.base_url}
            self._models.add_provider(
                Provider(**{**row, "api_key": column.api_key, **column.provider}), [model]
            )
            self._rows[column.api] = model

    async def ask(self, api: str, *, abort_at: str | None = None) -> AssistantMessage:
        """One request with all of the history; the answer goes into it."""
        before = [encode_message(message) for message in self.history]
        controller = AbortController()
        options = StreamOptions(
            session_id="tour", thinking="low", signal=controller.signal, on_projection=self._note
        )
        context = Context("Be brief.", list(self.history), [READ])
        stream = checked(self._models.stream(self._rows[api], context, options))
        async for event in stream:
            if _is_said(event, abort_at):
                controller.abort()
        message = await stream.result()
        for stored, was in zip(self.history, before, strict=True):
            stored.wire.clear()
            assert encode_message(stored) == was, "a stored message was changed"
        self.history.append(message)
        return message

    async def aclose(self) -> None:
        await self._models.aclose()

    def _note(self, report: ProjectionReport) -> None:
        self.report.update({str(kind): number for kind, number in report.counts.items()})


def _is_said(event: AssistantMessageEvent, words: str | None) -> bool:
    return words is not None and event.type == "text_delta" and words in event.partial.text


async def visit(traveller: Traveller, api: str) -> None:
    """All that can happen in a conversation, with this API."""
    traveller.history.append(user(f"What does {api} see?", PIXEL))
    first = await traveller.ask(api)
    assert first.stop_reason == "toolUse", first.error_message
    asked = first.tool_calls
    traveller.history += [
        result(asked[0].id, "two dots", PIXEL),
        result(asked[1].id, "no such file", is_error=True),
        result(asked[2].id, ""),
    ]
    second = await traveller.ask(api)
    traveller.history.append(result(second.tool_calls[0].id, PIXEL))
    third = await traveller.ask(api)
    assert third.text == f"{api} says: two dots 🎉", third.error_message
    traveller.history.append(user("And this?"))
    failed = await traveller.ask(api)
    assert failed.stop_reason == "error" and "Internal server error" in str(failed.error_message)
    aborted = await traveller.ask(api, abort_at="half")
    assert aborted.stop_reason == "aborted", aborted.error_message
    traveller.history.append(user("Never mind."))
    last = await traveller.ask(api)
    assert last.text == f"{api} is done", last.error_message


@pytest.mark.parametrize("rounds", [2])
async def test_a_conversation_visits_every_api_in_turn_and_none_refuses_a_request(rounds: int):
    tour = [column for api in ORDER for column in columns() if column.api == api]
    assert [column.api for column in tour] == list(ORDER)
    script = [answer for _ in range(rounds) for column in tour for answer in stay(column.api)]
    async with StrictServer(script) as server:
        traveller = Traveller(server, tour)
        for _ in range(rounds):
            for column in tour:
                await visit(traveller, column.api)
        server.assert_clean()
        assert len(server.requests) == 6 * rounds * len(tour)
        assert [request.api for request in server.requests[::6]] == [column.api for column in tour] * rounds
        await traveller.aclose()
    assert traveller.report["failed_answers"] and traveller.report["thinking_as_text"]
    # What one API thought is text to the next.
    assert "openai-completions thinks" in json.dumps(json.loads(server.bodies[6]))
