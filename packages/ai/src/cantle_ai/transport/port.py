"""The HTTP port: what a wire API needs of HTTP, and no more.

One request goes out whole, and its answer comes back as a status, headers and an iterator over the body's
bytes as they arrive. An implementation never follows redirects (a key must not travel to another host), never
decides what a status means, and never waits to fill a buffer before it hands bytes on.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from cantle_ai.abort import AbortSignal
from cantle_ai.errors import ProviderError

__all__ = ["HttpRequest", "HttpResponse", "Transport", "TransportError", "TransportErrorKind"]

TransportErrorKind: TypeAlias = Literal["network", "timeout", "protocol"]


class TransportError(ProviderError):
    """No answer, or half of one. `kind` says whether the connection failed, time ran out or HTTP was violated."""

    def __init__(self, text: str, *, kind: TransportErrorKind) -> None:
        super().__init__(text, kind=kind)


class HttpRequest(Struct, frozen=True):
    """One request. `url` is absolute.

    `timeout` is in seconds, for connecting, for the head of the answer, and for each wait for more of its
    body. None takes the transport's defaults; 0 means that nothing is ever cut.
    """

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes = b""
    timeout: float | None = None


class HttpResponse:
    """The answer's head, and its body as it arrives.

    `headers` has lower-case names; a repeated one is joined with commas. `chunks` gives bytes as soon as there
    are any, decompressed, and can be read once; it raises :class:`TransportError` when the body breaks off.
    """

    __slots__ = ("_close", "_release", "chunks", "headers", "status")

    def __init__(
        self,
        status: int,
        headers: Mapping[str, str],
        chunks: AsyncIterator[bytes],
        close: Callable[[], Awaitable[None]] | None = None,
        release: Callable[[], None] | None = None,
    ) -> None:
        """`close` lets go of the connection, whatever state it is in; `release` is for one that is as good as done."""
        self.status = status
        self.headers = headers
        self.chunks = chunks
        self._close = close
        self._release = release

    async def aclose(self) -> None:
        """Let go of the connection. Closing twice, or after the body's end, does nothing."""
        close, self._close = self._close, None
        if close is not None:
            await close()

    def release(self) -> None:
        """Say that nothing more of the body is wanted, and that its end is near.

        The transport may wait for that end in the background, in order to use the connection again.
        """
        release, self._release = self._release, None
        if release is not None:
            self._close = None
            release()

    async def read(self, limit: int) -> bytes:
        """The body's first bytes: at least `limit` of them if there are so many, cut to `limit`."""
        parts: list[bytes] = []
        size = 0
        async for chunk in self.chunks:
            parts.append(chunk)
            size += len(chunk)
            if size >= limit:
                break
        return b"".join(parts)[:limit]


class Transport(Protocol):
    """Sends requests. One transport serves any number of them at once."""

    async def send(self, request: HttpRequest, *, signal: AbortSignal | None = None) -> HttpResponse:
        """Send it and return when the answer's head is there.

        Raises :class:`TransportError`, or :class:`cantle_ai.abort.AbortError` once `signal` is aborted; the
        same goes for reading the body. Cancelling the calling task closes the connection as well.
        """
        ...

    async def aclose(self) -> None:
        """Close idle connections. Requests that are on their way go on."""
        ...
