"""One request and its answer: a thread that does the work, and the side of the event loop that waits for it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from cantle_ai.abort import AbortError, AbortSignal
from cantle_ai.errors import CantleAIError
from cantle_ai.transport.port import HttpRequest, HttpResponse, TransportError

if TYPE_CHECKING:
    import http.client
    import socket
    import ssl

    from cantle_ai.transport._connection import Connection, Target
    from cantle_ai.transport._failures import Stage
    from cantle_ai.transport.framing import Framing
    from cantle_ai.transport.proxies import Proxy

__all__ = ["Exchange", "Services"]

_BLOCK = 64 * 1024
_UNREAD = 256 * 1024
"""The thread stops reading when so many bytes wait for the event loop."""
_LINGER = 1.0
"""Seconds that a connection is given to end a body that nobody reads any more."""
_GRACE = 0.5
"""Seconds that giving up waits for the thread to let go. One in a name lookup cannot be hurried."""


class Services(Protocol):
    """What an exchange needs of its transport."""

    environ: Mapping[str, str]
    connect_timeout: float

    def take_idle(self, target: Target) -> Connection | None: ...
    def give_back(self, connection: Connection) -> None: ...
    def tls_context(self) -> ssl.SSLContext: ...
    def linger(self, exchange: Exchange) -> None: ...


class Exchange:
    """Runs one request. Made and used in the event loop's thread; `_work` and what it calls run in its own."""

    def __init__(self, request: HttpRequest, services: Services) -> None:
        self._request = request
        self._services = services
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Condition()
        self._head: tuple[int, dict[str, str]] | None = None
        self._blocks: list[bytes] = []
        self._unread = 0
        self._failure: BaseException | None = None
        self._given_up: BaseException | None = None
        self._ended = False
        self._released = False
        self._woken = False
        self._guard: socket.socket | None = None
        self._waiters: list[asyncio.Future[None]] = []
        self._stage: Stage = "connect"
        self._unlink: Callable[[], None] | None = None

    # --- the event loop's side

    async def run(self, signal: AbortSignal | None) -> HttpResponse:
        """Start the thread and wait for the head of the answer."""
        if signal is not None:
            self._unlink = signal.add_callback(lambda: self.give_up(AbortError(signal.reason or "aborted")))
        threading.Thread(target=self._work, name="cantle-http", daemon=True).start()
        try:
            status, headers = await self._wait_for_head()
        except BaseException:  # raised again, a cancellation too: the thread is not left behind
            await self.close()
            raise
        return HttpResponse(status, headers, _Chunks(self), self.close, self.release)

    async def _wait_for_head(self) -> tuple[int, dict[str, str]]:
        while True:
            self._raise_given_up()
            ended = self._ended  # asked first: the thread may set the head and end between the two questions
            if self._head is not None:
                return self._head
            if ended:
                raise self._failure or TransportError("The request came to nothing", kind="network")
            await self._wait()

    async def next_block(self) -> bytes | None:
        """What has arrived since the last call; None at the end of the body. Raises what went wrong."""
        while True:
            self._raise_given_up()
            with self._lock:
                blocks, self._blocks = self._blocks, []
                self._unread = 0
                self._lock.notify()
                ended = self._ended
            if blocks:
                return blocks[0] if len(blocks) == 1 else b"".join(blocks)
            if ended:
                self._let_go()
                if self._failure is not None:
                    raise self._failure
                return None
            await self._wait()

    async def close(self) -> None:
        """Give up what is not finished, and wait a moment until the socket is closed."""
        if self._running():
            self.give_up(TransportError("The answer was closed before it was read", kind="network"))
            deadline = self._loop.time() + _GRACE
            while self._running() and (left := deadline - self._loop.time()) > 0:
                await self._wait(left)
        self._let_go()

    def release(self) -> None:
        """Let the body come to its end unread, and with it the connection to the next request."""
        with self._lock:
            self._released = True
            self._blocks, self._unread = [], 0
            self._lock.notify()
        self._let_go()
        if self._running():
            self._services.linger(self)
            self._loop.call_later(
                _LINGER, self.give_up, TransportError("The body did not end", kind="network")
            )

    def dropped(self) -> None:
        """Nobody can read the body any more."""
        if not self._released:
            self.give_up(TransportError("The answer was dropped", kind="network"))
            self._let_go()

    def give_up(self, reason: BaseException) -> None:
        """Shut the socket. `reason` is what a reader gets. Safe in any thread, and more than once."""
        with self._lock:
            if self._given_up is not None or self._ended:
                return
            self._given_up = reason
            if self._guard is not None:
                _shut(self._guard)
            self._lock.notify()
        self._wake_loop()

    def _running(self) -> bool:
        return not self._ended

    def _raise_given_up(self) -> None:
        if self._given_up is not None:
            raise self._given_up

    def _let_go(self) -> None:
        unlink, self._unlink = self._unlink, None
        if unlink is not None:
            unlink()

    async def _wait(self, timeout: float | None = None) -> None:
        """Until the other side has news, or `timeout` seconds."""
        waiter = self._loop.create_future()
        self._waiters.append(waiter)
        timer = None if timeout is None else self._loop.call_later(timeout, self._resolve)
        try:
            await waiter
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
            if timer is not None:
                timer.cancel()

    def _resolve(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _on_news(self) -> None:
        self._woken = False
        self._resolve()

    def _wake_loop(self) -> None:
        if self._woken:
            return
        self._woken = True
        try:
            self._loop.call_soon_threadsafe(self._on_news)
        except RuntimeError:
            return  # the loop is closed: nobody waits any more

    # --- the thread's side

    def attach(self, sock: socket.socket) -> None:
        """Watch this socket from now on."""
        import socket as sockets

        # By its descriptor: a socket that speaks TLS cannot be duplicated, and only the connection below is shut.
        guard = sockets.fromfd(sock.fileno(), sockets.AF_INET, sockets.SOCK_STREAM)
        with self._lock:
            previous, self._guard = self._guard, guard
            if self._given_up is not None:
                _shut(guard)
        if previous is not None:
            previous.close()
        self._check()

    def detach(self) -> None:
        with self._lock:
            guard, self._guard = self._guard, None
        if guard is not None:
            guard.close()

    def _check(self) -> None:
        if self._given_up is not None:
            raise _GivenUp

    def _work(self) -> None:
        try:
            self._attempt()
        except _GivenUp:
            pass
        except CantleAIError as error:
            self._failure = error
        except Exception as error:  # noqa: BLE001 - the end of a thread: whatever it is, the reader gets it
            self._failure = self._describe(error)
        finally:
            self.detach()
            with self._lock:
                self._ended = True
            self._wake_loop()

    def _describe(self, error: Exception) -> Exception:
        from cantle_ai.transport._failures import transport_error

        waited = self._connect_wait if self._stage == "connect" else self._request.timeout
        return transport_error(error, self._request, self._stage, waited)

    @property
    def _connect_wait(self) -> float | None:
        timeout = self._request.timeout
        return self._services.connect_timeout if timeout is None else timeout or None

    def _attempt(self) -> None:
        from cantle_ai.transport._connection import Connection, Target, parse_target

        scheme, host, port, path = parse_target(self._request.url)
        services = self._services
        target = Target(scheme, host, port, _proxy_for(scheme, host, port, services.environ))
        connection = services.take_idle(target)
        if connection is not None:
            try:
                connection.reuse(self)
                answer = self._exchange(connection, path)
            except Exception as error:  # raised again, unless it says that the idle connection was dead
                connection.close()
                self._check()
                if connection.answered or not _was_stale(error):
                    raise
            else:
                self._read(connection, answer)
                return
        connection = Connection(target, services.tls_context, self._connect_wait)
        try:
            self._stage = "connect"
            connection.open(self)
            self._check()
            answer = self._exchange(connection, path)
        except BaseException:  # raised again: a connection of unknown state is not used again
            connection.close()
            raise
        self._read(connection, answer)

    def _exchange(self, connection: Connection, path: str) -> http.client.HTTPResponse:
        self._stage = "head"
        request = self._request
        return connection.exchange(
            request.method, path, request.headers, request.body, request.timeout or None
        )

    def _read(self, connection: Connection, answer: http.client.HTTPResponse) -> None:
        """Publish the head, then the body as it comes. Keeps the connection if it can carry another request."""
        keep = False
        self._stage = "body"
        try:
            headers: dict[str, str] = {}
            for name, value in answer.headers.items():
                name = name.lower()
                headers[name] = f"{headers[name]}, {value}" if name in headers else value
            framing = _framing(answer)
            decode = _decoder(headers.get("content-encoding", ""))
            with self._lock:
                self._head = (answer.status, headers)
            self._wake_loop()
            self._read_body(answer, framing, decode)
            keep = framing.clean and not answer.will_close
        finally:
            self.detach()
            answer.close()
            if keep and self._given_up is None:
                self._services.give_back(connection)
            else:
                connection.close()

    def _read_body(
        self, answer: http.client.HTTPResponse, framing: Framing, decode: Callable[[bytes], bytes] | None
    ) -> None:
        read = answer.fp.read1
        while not framing.done:
            data = read(_BLOCK)
            if not data:
                if not framing.finish():
                    raise TransportError(
                        "The connection was closed before the answer was complete", kind="network"
                    )
                break
            body = framing.feed(data)
            if decode is not None:
                body = decode(body)
            self._put(body)

    def _put(self, block: bytes) -> None:
        with self._lock:
            if block and not self._released:
                self._blocks.append(block)
                self._unread += len(block)
            while self._unread >= _UNREAD and self._given_up is None:
                self._wake_loop()
                self._lock.wait()
            self._check()
        if block:
            self._wake_loop()


class _Chunks:
    """The body, as :class:`HttpResponse` hands it out. Forgetting it gives the request up."""

    __slots__ = ("_exchange",)

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def __aiter__(self) -> _Chunks:
        return self

    async def __anext__(self) -> bytes:
        block = await self._exchange.next_block()
        if block is None:
            raise StopAsyncIteration
        return block

    def __del__(self) -> None:
        self._exchange.dropped()


class _GivenUp(Exception):
    """Unwinds the thread; the reader has its reason already."""


def _shut(sock: socket.socket) -> None:
    import socket as sockets

    try:
        sock.shutdown(sockets.SHUT_RDWR)
    except OSError:
        return  # not connected yet, or closed by the peer: the next use of it fails by itself


def _framing(answer: http.client.HTTPResponse) -> Framing:
    from cantle_ai.transport.framing import Chunked, Counted, ToTheEnd

    if answer.chunked:
        return Chunked()
    return ToTheEnd() if answer.length is None else Counted(answer.length)


def _decoder(encoding: str) -> Callable[[bytes], bytes] | None:
    """None is asked for, but some servers compress all the same."""
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return None
    if encoding in ("gzip", "x-gzip", "deflate"):
        import zlib

        return zlib.decompressobj(zlib.MAX_WBITS | 32).decompress
    raise TransportError(
        f"The answer is compressed with {encoding!r}, which was not asked for", kind="protocol"
    )


def _proxy_for(scheme: str, host: str, port: int, environ: Mapping[str, str]) -> Proxy | None:
    """The rules are loaded where a variable names a proxy at all."""
    if not any(name.lower().endswith("_proxy") for name in environ):
        return None
    from cantle_ai.transport.proxies import proxy_for

    return proxy_for(scheme, host, port, environ)


def _was_stale(error: Exception) -> bool:
    """Whether that is how an idle connection shows that its peer has closed it."""
    import ssl

    return isinstance(error, ConnectionError | ssl.SSLEOFError | ssl.SSLZeroReturnError)
