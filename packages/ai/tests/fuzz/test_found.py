"""What the fuzz has found, so that it is looked for in every run."""

from __future__ import annotations

import asyncio
import re

import pytest

from cantle_ai.messages import UserMessage
from cantle_ai.testing.response import Count, Response, response_of
from packages.ai.tests.conformance.cases import call
from packages.ai.tests.conformance.column import Column, columns
from packages.ai.tests.conformance.lab import result
from packages.ai.tests.fuzz.test_answers import Fuzzed
from packages.ai.tests.fuzz.wires import wire_of

COLUMNS = [pytest.param(column, id=column.api) for column in columns()]


@pytest.mark.parametrize("id", ["", " ", "\n", "a b", "\ud800", "x" * 500, "|", "null"])
@pytest.mark.parametrize("column", COLUMNS)
def test_ids_of_calls_that_no_endpoint_takes_back(column: Column, id: str):
    async def talk() -> None:
        fuzzed = Fuzzed(column, [], [1 << 16], 0)
        fuzzed.transport.responses = iter(
            [response_of({"content": [call("a", id=id)]}), Response(content="Well.")]
        )
        asked = UserMessage("Hi", timestamp=1)
        message = await fuzzed.ask(asked)
        (made,) = message.tool_calls
        again = await fuzzed.ask(asked, message, result(made.id, "found"))
        assert again.text == "Well.", again.error_message

    asyncio.run(talk())


@pytest.mark.parametrize("count", [-7, 0, 10**12, 10**25])
@pytest.mark.parametrize("column", COLUMNS)
def test_counts_that_no_server_should_give(column: Column, count: int):
    wire = wire_of(column.api)

    def counted(event: bytes) -> bytes:
        said = wire.read(event)
        if said is None or "oken" not in said:
            return event
        return wire.write(event, re.sub(r'(?i)("\w*tokens?\w*": ?)\d+', rf"\g<1>{count}", said))

    async def talk() -> None:
        fuzzed = Fuzzed(column, [], [1 << 16], 0)
        fuzzed.transport.responses = iter(
            [Response(content="Well.", usage=Count(input=5, output=5, cache_read=5))]
        )
        fuzzed.transport.change = lambda events: [counted(event) for event in events]
        message = await fuzzed.ask(UserMessage("Hi", timestamp=1))
        assert message.text == "Well."
        assert message.stop_reason == "stop" or count > 2**63

    asyncio.run(talk())
