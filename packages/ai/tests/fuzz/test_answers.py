"""Whatever a server sends: no hang, no loose exception, a legal stream, and a history that can be sent again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cantle_ai.codec import decode_object, encode_json
from cantle_ai.content import TextContent
from cantle_ai.context import Context
from cantle_ai.messages import AssistantMessage, Message, ToolResultMessage, UserMessage, message_from_json
from cantle_ai.model import Model, Provider, StreamOptions
from cantle_ai.models import Models
from cantle_ai.testing.checker import checked
from cantle_ai.testing.response import Response
from cantle_ai.testing.server.dialects import DIALECTS
from packages.ai.tests.conformance.column import Column, columns
from packages.ai.tests.conformance.lab import READ
from packages.ai.tests.fuzz.mutations import Mutation, mutations
from packages.ai.tests.fuzz.replayed import Replayed
from packages.ai.tests.fuzz.wires import wire_of
from packages.ai.tests.oracles.answers import Kinds, answer
from tests.support.samples import samples

COLUMNS = [pytest.param(column, id=column.api) for column in columns()]
KINDS = Kinds(names=("read",))
PATIENCE = 20


class Fuzzed:
    """The runtime with one column's model, before a server that sends changed answers."""

    def __init__(self, column: Column, changes: Sequence[Mutation], cuts: Sequence[int], seed: int) -> None:
        wire = wire_of(column.api)

        def change(events: list[bytes]) -> list[bytes]:
            for mutation in changes:
                events = wire.apply(events, mutation)
            return events

        response = answer(Random(seed), KINDS)
        self._change = change
        self._answers = iter([change, lambda events: events])
        self.transport = Replayed(
            column.api,
            [response, Response(content="And so on.")],
            change=lambda events: next(self._answers)(events),
            cuts=cuts,
        )
        url = f"http://127.0.0.1:1{DIALECTS[column.api].root}"
        self.model = Model(
            **{"id": "m-1", "provider": "p", "api": column.api, "base_url": url, **column.model}
        )
        row = {"id": "p", "name": "P", "api": column.api, "base_url": url, "api_key": column.api_key}
        self.models = Models(environ=dict(column.environ), transport=self.transport)
        self.models.add_provider(Provider(**{**row, **column.provider}), [self.model])

    async def ask(self, *history: Message) -> AssistantMessage:
        context = Context("Be brief.", list(history), [READ])
        async with asyncio.timeout(PATIENCE):
            return await checked(self.models.stream(self.model, context, StreamOptions())).result()


@pytest.mark.parametrize("column", COLUMNS)
@settings(max_examples=samples(400, 40), suppress_health_check=list(HealthCheck))
@given(
    changes=mutations(),
    cuts=st.lists(st.integers(1, 64), min_size=1, max_size=5),
    seed=st.integers(0, 500),
)
async def test_any_answer_is_a_legal_stream_and_can_be_replayed(
    column: Column, changes: list[Mutation], cuts: list[int], seed: int
):
    fuzzed = Fuzzed(column, changes, cuts, seed)
    asked = UserMessage("Hi", timestamp=1)
    message = await fuzzed.ask(asked)
    assert message.stop_reason != "aborted"
    said = message.error_message or ""
    assert "Error(" not in said and "Traceback" not in said and "object has no" not in said
    stored = decode_object(encode_json(message.to_json()))
    assert decode_object(encode_json(message_from_json(stored).to_json())) == stored
    results = [
        ToolResultMessage(call.id, call.name, [TextContent("found")], timestamp=1)
        for call in message.tool_calls
    ]
    history: list[Message] = [asked, message, *results]
    if not results:
        history.append(UserMessage("Go on", timestamp=1))
    # The dialect raises for a request that it refuses, which would fail this answer.
    again = await fuzzed.ask(*history)
    assert again.text == "And so on.", again.error_message


@pytest.mark.parametrize("column", COLUMNS)
@settings(max_examples=samples(150, 15), suppress_health_check=list(HealthCheck))
@given(cuts=st.lists(st.integers(1, 9), min_size=1, max_size=7), seed=st.integers(0, 500))
async def test_where_a_stream_is_cut_makes_no_difference(column: Column, cuts: list[int], seed: int):
    cut = await Fuzzed(column, [], cuts, seed).ask(UserMessage("Hi", timestamp=1))
    whole = await Fuzzed(column, [], [1 << 20], seed).ask(UserMessage("Hi", timestamp=1))
    assert cut.error_message is None
    assert cut.content == whole.content
    assert (cut.stop_reason, cut.usage) == (whole.stop_reason, whole.usage)
