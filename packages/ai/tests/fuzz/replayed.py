"""A transport that answers with a dialect's events, changed on the way and cut into blocks. No sockets."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from urllib.parse import urlsplit

from cantle_ai.abort import AbortSignal
from cantle_ai.model import Model, Provider
from cantle_ai.models import Models
from cantle_ai.testing.playback import seeded
from cantle_ai.testing.response import Response
from cantle_ai.testing.server.dialects import DIALECTS, dialect
from cantle_ai.testing.server.dialects.port import Play
from cantle_ai.testing.server.exchange import Call
from cantle_ai.testing.server.strictness import Strictness
from cantle_ai.transport.port import HttpRequest, HttpResponse, Transport
from packages.ai.tests.conformance.column import Column

__all__ = ["Replayed", "runtime"]


class Replayed:
    """Answers each request with the next of `responses`; the dialect of `api` checks it and makes the events.

    `change` gets the events of an answer and gives those that are sent; `cuts` are sizes of blocks, used in turn.
    """

    def __init__(
        self,
        api: str,
        responses: Sequence[Response],
        *,
        change: Callable[[list[bytes]], list[bytes]] = lambda events: events,
        cuts: Sequence[int] = (1 << 16,),
        newline: str = "\n",
    ) -> None:
        self._dialect = dialect(api)
        self.responses = iter(responses)
        self.change = change
        self._cuts = cuts
        self._newline = newline
        self.instead: tuple[int, str, bytes] | None = None
        """Status, content type and body of what is answered in place of a stream."""
        self.ending = 0
        """How many of the last answer's events close it."""

    async def send(self, request: HttpRequest, *, signal: AbortSignal | None = None) -> HttpResponse:
        url = urlsplit(request.url)
        headers = {name.lower(): value for name, value in request.headers.items()}
        call = Call(request.method, url.path, headers, request.body, url.query)
        asked = self._dialect.check(call, Strictness())
        if self.instead is not None:
            status, kind, other = self.instead
            return HttpResponse(status, {"content-type": kind}, self._blocks(other))
        response = next(self.responses)
        play = Play(
            response=response, asked=asked, random=seeded("replayed"), chunk=(1, 16), newline=self._newline
        )
        playback = self._dialect.play(play)
        events, ending = list(playback.events()), list(playback.ending())
        self.ending = len(ending)
        events += ending
        body = b"".join(self.change(events))
        return HttpResponse(200, {"content-type": self._dialect.content_type}, self._blocks(body))

    async def aclose(self) -> None:
        """Nothing is held."""

    async def _blocks(self, body: bytes) -> AsyncIterator[bytes]:
        place = turn = 0
        while place < len(body):
            size = self._cuts[turn % len(self._cuts)]
            yield body[place : place + size]
            place, turn = place + size, turn + 1


def runtime(column: Column, transport: Transport) -> tuple[Models, Model]:
    """The runtime with the column's provider, and its model."""
    url = f"http://127.0.0.1:1{DIALECTS[column.api].root}"
    model = Model(**{"id": "m-1", "provider": "p", "api": column.api, "base_url": url, **column.model})
    row = {"id": "p", "name": "P", "api": column.api, "base_url": url, "api_key": column.api_key}
    models = Models(environ=dict(column.environ), transport=transport)
    models.add_provider(Provider(**{**row, **column.provider}), [model])
    return models, model
