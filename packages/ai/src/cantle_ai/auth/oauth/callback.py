"""A server on this machine's loopback interface that waits for a browser to come back with a code."""

from __future__ import annotations

import asyncio
import errno
from types import TracebackType

from cantle_ai.auth.login import LoginError
from cantle_ai.auth.oauth.redirect import Redirect, read_query

__all__ = ["CallbackServer", "PortBusyError"]

_HEAD_LIMIT = 16_384
_REQUEST_SECONDS = 10.0
_BUSY = (errno.EADDRINUSE, errno.EACCES)

_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>
<body style="font-family: sans-serif; margin: 4em auto; max-width: 30em"><h1>{title}</h1><p>{text}</p></body></html>
"""


class PortBusyError(LoginError):
    """Another program listens where the browser would come back to."""


class CallbackServer:
    """Listens while it is entered. Only a request for `path` that repeats `state` is taken; all others get a 404."""

    def __init__(self, *, port: int, path: str, state: str | None) -> None:
        """`port` 0 takes any that is free. With `state` None, `path` has to be the secret."""
        self.port = port
        self._path = path
        self._state = state
        self._servers: list[asyncio.Server] = []
        self._found: asyncio.Future[Redirect] | None = None

    async def __aenter__(self) -> CallbackServer:
        self._found = asyncio.get_running_loop().create_future()
        wanted = self.port
        try:
            await self._listen("127.0.0.1")
        except OSError as error:
            if error.errno not in _BUSY:
                raise
            raise PortBusyError(f"The port {self.port} of this machine is in use") from None
        try:
            await self._listen("::1")  # "localhost" may mean this one first
        except OSError as error:
            # Somebody else there would be given the code. Without that address, a browser tries the other.
            if wanted and error.errno in _BUSY:
                await self.__aexit__(None, None, None)
                raise PortBusyError(f"The port {self.port} of this machine is in use") from None
        return self

    async def _listen(self, address: str) -> None:
        server = await asyncio.start_server(self._serve, address, self.port, limit=_HEAD_LIMIT)
        self._servers.append(server)
        self.port = server.sockets[0].getsockname()[1]

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for server in self._servers:
            server.close()
        found = self._found
        if found is not None and not found.cancel() and not found.cancelled():
            found.exception()  # looked at, whoever waited for it or not

    async def wait(self) -> Redirect:
        """What the browser came back with. Raises :class:`LoginError` when that is a refusal."""
        assert self._found is not None
        return await asyncio.shield(self._found)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_REQUEST_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(self._answer(head))
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            pass  # whoever it was has left, or is no browser
        finally:
            writer.close()

    def _answer(self, head: bytes) -> bytes:
        """The answer to a request, after what it means was noted."""
        method, _, rest = head.decode("latin-1").partition(" ")
        path, _, query = rest.partition(" ")[0].partition("?")
        assert self._found is not None
        if method != "GET" or path != self._path:
            return _page("404 Not Found", "Nothing here", "This page belongs to a login.")
        try:
            redirect = read_query(query, self._state)
        except LoginError as error:
            if not self._found.done():
                self._found.set_exception(error)
            return _page("200 OK", "Not signed in", "The login was not completed. You can close this page.")
        if redirect is None:
            return _page(
                "400 Bad Request", "Not this login", "This page belongs to another attempt to sign in."
            )
        if not self._found.done():
            self._found.set_result(redirect)
        return _page("200 OK", "Signed in", "You can close this page and go back to the terminal.")


def _page(status: str, title: str, text: str) -> bytes:
    body = _PAGE.format(title=title, text=text).encode()
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
        "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n"
    )
    return head.encode("ascii") + body
