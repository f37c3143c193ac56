"""Holds the request that a session's context makes against the rules of every wire API's strict server."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cache
from urllib.parse import urlsplit

from cantle_agent.messages import AgentMessage, convert_to_llm
from cantle_ai.abort import AbortSignal
from cantle_ai.context import Context
from cantle_ai.messages import UserMessage
from cantle_ai.model import Model, StreamOptions
from cantle_ai.models import Models
from cantle_ai.testing.server.dialects import dialect
from cantle_ai.testing.server.exchange import Call
from cantle_ai.testing.server.strictness import Strictness
from cantle_ai.transport.port import HttpRequest, HttpResponse, TransportError
from packages.ai.tests.conformance.column import APIS, columns
from packages.ai.tests.fuzz.replayed import runtime
from packages.ai.tests.oracles.histories import TOOLS

__all__ = ["APIS", "check_request"]


class _Judging:
    """A transport that lets the API's dialect refuse a request, and answers none."""

    def __init__(self, api: str) -> None:
        self._dialect = dialect(api)
        self.taken = 0

    async def send(self, request: HttpRequest, *, signal: AbortSignal | None = None) -> HttpResponse:
        url = urlsplit(request.url)
        headers = {name.lower(): value for name, value in request.headers.items()}
        self._dialect.check(Call(request.method, url.path, headers, request.body, url.query), Strictness())
        self.taken += 1
        raise TransportError("not answered", kind="network")

    async def aclose(self) -> None:
        """Nothing is held."""


def check_request(messages: Sequence[AgentMessage], api: str) -> None:
    """Ask the model of `api` to go on from `messages`. Raises the server's `Refusal` when the request breaks a rule."""
    models, model, judge = _asked(api)
    history = [*convert_to_llm(messages), UserMessage("Go on.", timestamp=1)]
    before = judge.taken
    options = StreamOptions(session_id="s", cache_retention="short", thinking="low")
    answer = asyncio.run(models.complete(model, Context("Be brief.", history, list(TOOLS)), options))
    assert answer.error_message == "not answered", answer.error_message
    assert judge.taken == before + 1


@cache
def _asked(api: str) -> tuple[Models, Model, _Judging]:
    (column,) = [column for column in columns() if column.api == api]
    judge = _Judging(api)
    models, model = runtime(column, judge)
    return models, model, judge
