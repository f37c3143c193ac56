"""Whatever a server sends: no hang, no loose exception, a legal stream, and a history that can be sent again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cantle_ai.codec import decode_object, encode_json
from cantle_ai.content import TextContent
from cantle_ai.context import Context
from cantle_ai.messages import AssistantMessage, Message, ToolResultMessage, UserMessage, message_from_json
from cantle_ai.model import StreamOptions
from cantle_ai.testing.checker import checked
from cantle_ai.testing.response import Response
from packages.ai.tests.conformance.column import Column, columns
from packages.ai.tests.conformance.lab import READ
from packages.ai.tests.fuzz.mutations import Mutation, hostile_texts, mutations
from packages.ai.tests.fuzz.replayed import Replayed, runtime
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

        # Few events, so that a mutation more often meets the one that matters.
        response = replace(answer(Random(seed), KINDS), chunk=(4, 40))
        self._answers = iter([change, lambda events: events])
        self.transport = Replayed(
            column.api,
            [response, Response(content="And so on.")],
            change=lambda events: next(self._answers)(events),
            cuts=cuts,
        )
        self.models, self.model = runtime(column, self.transport)

    async def ask(self, *history: Message) -> AssistantMessage:
        context = Context("Be brief.", list(history), [READ])
        async with asyncio.timeout(PATIENCE):
            return await checked(self.models.stream(self.model, context, StreamOptions())).result()


@pytest.mark.parametrize("column", COLUMNS)
@settings(max_examples=samples(400, 30), suppress_health_check=list(HealthCheck))
@given(
    changes=mutations(),
    cuts=st.lists(st.integers(1, 64), min_size=1, max_size=5),
    seed=st.integers(0, 500),
)
def test_any_answer_is_a_legal_stream_and_can_be_replayed(
    column: Column, changes: list[Mutation], cuts: list[int], seed: int
):
    # A loop for each: a time-out of the whole test, which breaks one off anywhere, leaves the next one sound.
    asyncio.run(_replayed(Fuzzed(column, changes, cuts, seed)))


async def _replayed(fuzzed: Fuzzed) -> None:
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
@settings(max_examples=samples(100, 8), suppress_health_check=list(HealthCheck))
@given(cuts=st.lists(st.integers(1, 9), min_size=1, max_size=7), seed=st.integers(0, 500))
def test_where_a_stream_is_cut_makes_no_difference(column: Column, cuts: list[int], seed: int):
    asked = UserMessage("Hi", timestamp=1)
    cut = asyncio.run(Fuzzed(column, [], cuts, seed).ask(asked))
    whole = asyncio.run(Fuzzed(column, [], [1 << 20], seed).ask(asked))
    assert cut.error_message is None
    assert cut.content == whole.content
    assert (cut.stop_reason, cut.usage) == (whole.stop_reason, whole.usage)


@pytest.mark.parametrize("column", COLUMNS)
@settings(max_examples=samples(150, 10), suppress_health_check=list(HealthCheck))
@given(
    body=st.one_of(st.binary(max_size=200), hostile_texts()),
    kind=st.sampled_from(
        ["application/json", "text/html", "text/event-stream", "", "application/json; charset=x"]
    ),
    status=st.sampled_from([200, 200, 204, 302, 400, 401, 404, 413, 429, 500, 529, 599]),
)
def test_any_other_answer_is_an_error_that_says_so(column: Column, body: bytes, kind: str, status: int):
    fuzzed = Fuzzed(column, [], [7], 0)
    fuzzed.transport.instead = (status, kind, body)
    message = asyncio.run(fuzzed.ask(UserMessage("Hi", timestamp=1)))
    assert message.stop_reason == "error" or 200 <= status < 300
    if message.stop_reason == "error":
        assert message.error_message and message.error_details is not None
        assert column.api_key is None or column.api_key not in message.error_message
