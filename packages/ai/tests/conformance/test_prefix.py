"""Requests of one conversation, whatever is in it: each begins, byte for byte, as the one before went."""

from __future__ import annotations

from random import Random
from urllib.parse import urlsplit

import pytest

from cantle_ai.abort import AbortSignal
from cantle_ai.context import Context
from cantle_ai.messages import Message
from cantle_ai.model import StreamOptions
from cantle_ai.testing.server.dialects import dialect
from cantle_ai.testing.server.exchange import Call
from cantle_ai.testing.server.prefix import PrefixRule
from cantle_ai.testing.server.strictness import Strictness
from cantle_ai.transport.port import HttpRequest, HttpResponse, TransportError
from packages.ai.tests.conformance.column import Column, columns
from packages.ai.tests.fuzz.replayed import runtime
from packages.ai.tests.oracles.histories import TOOLS, history
from tests.support.samples import samples

COLUMNS = [pytest.param(column, id=column.api) for column in columns()]


class Watched:
    """A transport that holds each request against the rules, and answers none."""

    def __init__(self, api: str) -> None:
        self.taken = 0
        self._dialect = dialect(api)
        self._rule = PrefixRule()

    async def send(self, request: HttpRequest, *, signal: AbortSignal | None = None) -> HttpResponse:
        url = urlsplit(request.url)
        headers = {name.lower(): value for name, value in request.headers.items()}
        call = Call(request.method, url.path, headers, request.body, url.query)
        self._rule.check(self._dialect.check(call, Strictness()))
        self.taken += 1
        raise TransportError("not answered", kind="network")

    async def aclose(self) -> None:
        """Nothing is held."""


def stages(messages: list[Message]) -> list[list[Message]]:
    """The conversation as it was at each request: what comes next is not a result that is still awaited."""
    after = [*messages[1:], None]
    return [
        messages[: place + 1]
        for place, (message, then) in enumerate(zip(messages, after, strict=True))
        if message.role != "assistant" and (then is None or then.role != "toolResult")
    ]


@pytest.mark.parametrize("retention", ["none", "short", "long"])
@pytest.mark.parametrize("column", COLUMNS)
async def test_each_request_extends_the_one_before(column: Column, retention):
    random = Random(f"{column.api} {retention}")
    own = (column.api, "p", "m-1")
    authors = [
        own,
        own,
        own,
        (column.api, "p", "m-0"),
        ("openai-completions", "q", "m-1"),
        ("anthropic-messages", "q", "c"),
    ]
    for _ in range(samples(60, 6)):
        transport = Watched(column.api)
        models, model = runtime(column, transport)
        conversation = stages(history(random, authors))
        options = StreamOptions(
            session_id="s", cache_retention=retention, thinking=random.choice(["off", "high"])
        )
        for messages in conversation:
            message = await models.complete(model, Context("Be brief.", messages, list(TOOLS)), options)
            assert message.error_message == "not answered"
        assert transport.taken == len(conversation)
