"""The default transport: `urllib3` and what it builds on, one thread for each request.

The thread connects, sends, and reads whatever the socket has, up to 64 KB at once. What it read waits for the
event loop, which takes all of it at its next turn; when more than 256 KB wait, the thread stops reading and so
the peer stops sending. Giving a request up shuts its socket, whatever the thread is doing with it. Threads are
daemons: one that sits in a name lookup does not keep the program from ending.

`docs/decisions/0004-http-in-a-thread.md` says why, with the measurement.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from cantle_ai.abort import AbortSignal
from cantle_ai.transport._exchange import Exchange
from cantle_ai.transport.port import HttpRequest, HttpResponse, Transport

if TYPE_CHECKING:
    import ssl

    from cantle_ai.transport._connection import Connection, Target

__all__ = ["Urllib3Transport"]

_CONNECT_TIMEOUT = 30.0
_IDLE_CONNECTIONS = 8
"""Kept open for reuse, over all targets."""
_LONGEST_IDLE = 60.0
"""Seconds after which an idle connection is not used again: what lies between may have forgotten it, silently."""


class Urllib3Transport:
    """HTTP/1.1 over `urllib3`. Takes proxies and certificate authorities from the environment.

    By default a connection must come about within 30 s; nothing else is ever cut, since a model may think for
    long. A peer that disappears is noticed by TCP keep-alive.
    """

    def __init__(
        self, *, environ: Mapping[str, str] | None = None, connect_timeout: float = _CONNECT_TIMEOUT
    ) -> None:
        """`environ` stands in for the process's environment. `connect_timeout` is in seconds."""
        self.environ: Mapping[str, str] = os.environ if environ is None else environ
        self.connect_timeout = connect_timeout
        self._pool = ConnectionPool(_IDLE_CONNECTIONS)
        self._lingering: weakref.WeakSet[Exchange] = weakref.WeakSet()
        self._context: ssl.SSLContext | None = None
        self._context_lock = threading.Lock()

    async def send(self, request: HttpRequest, *, signal: AbortSignal | None = None) -> HttpResponse:
        if signal is not None:
            signal.raise_if_aborted()
        return await Exchange(request, self).run(signal)

    async def aclose(self) -> None:
        for exchange in list(self._lingering):
            await exchange.close()
        self._pool.close()

    def linger(self, exchange: Exchange) -> None:
        """Remember an exchange that waits for its body's end though nobody reads it."""
        self._lingering.add(exchange)

    def take_idle(self, target: Target) -> Connection | None:
        """An open connection to `target` that is not in use. For the exchange's thread."""
        return self._pool.take(target)

    def give_back(self, connection: Connection) -> None:
        """Keep a connection whose last answer was read to its end. For the exchange's thread."""
        self._pool.put(connection)

    def tls_context(self) -> ssl.SSLContext:
        """The context for all TLS connections, made when first needed. For the exchange's thread."""
        from cantle_ai.transport.certificates import client_context

        with self._context_lock:
            if self._context is None:
                self._context = client_context(self.environ)
            return self._context


class ConnectionPool:
    """Idle connections, the most recently used last. Thread-safe. Closes them when it is forgotten."""

    def __init__(self, limit: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` gives seconds that never go back."""
        self.clock = clock
        self._limit = limit
        self._idle: list[Connection] = []
        self._lock = threading.Lock()

    def take(self, target: Target) -> Connection | None:
        while True:
            with self._lock:
                found = next((c for c in reversed(self._idle) if c.target == target), None)
                if found is None:
                    return None
                self._idle.remove(found)
            if self.clock() - found.idle_since < _LONGEST_IDLE and found.reusable:
                return found
            found.close()

    def put(self, connection: Connection) -> None:
        connection.idle_since = self.clock()
        with self._lock:
            self._idle.append(connection)
            excess = self._idle.pop(0) if len(self._idle) > self._limit else None
        if excess is not None:
            excess.close()

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def __del__(self) -> None:
        for connection in self._idle:
            connection.close()


_transport: type[Transport] = Urllib3Transport
