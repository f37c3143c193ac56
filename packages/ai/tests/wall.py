"""A transport that takes requests, and lets none through."""

from __future__ import annotations

from cantle_ai.abort import AbortSignal
from cantle_ai.errors import ProviderError
from cantle_ai.transport.port import HttpRequest, HttpResponse, Transport

__all__ = ["Wall"]


class Wall:
    """Keeps every request; each fails as if nobody were there."""

    def __init__(self) -> None:
        self.requests: list[HttpRequest] = []

    async def send(self, request: HttpRequest, *, signal: AbortSignal | None = None) -> HttpResponse:
        self.requests.append(request)
        raise ProviderError("a wall", kind="network")

    async def aclose(self) -> None:
        pass


_proof: type[Transport] = Wall
