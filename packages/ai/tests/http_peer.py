"""A peer on a raw socket that does what a test says: half a line, silence, a reset, a web page.

    with Peer(lambda link: link.answer(b"hello")) as peer:
        …  # peer.url, peer.requests

Each connection runs the next handler in a thread of its own, the last one for all that follow.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

PATIENCE = 10.0
"""Seconds after which a wait that should have ended is a failure."""


@dataclass
class Request:
    line: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Link:
    """One connection, seen from the peer."""

    sock: socket.socket
    peer: Peer
    gone: threading.Event = field(default_factory=threading.Event)

    def request(self) -> Request:
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._receive()
        head, _, body = data.partition(b"\r\n\r\n")
        line, *lines = head.decode("latin-1").split("\r\n")
        headers = {
            name.lower(): value.strip() for name, _, value in (entry.partition(":") for entry in lines)
        }
        while len(body) < int(headers.get("content-length", "0")):
            body += self._receive()
        request = Request(line, headers, body)
        self.peer.requests.append(request)
        return request

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def head(self, *lines: str, status: str = "200 OK") -> None:
        self.send("\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode("latin-1"))

    def answer(self, body: bytes, *lines: str, status: str = "200 OK") -> None:
        """Read a request and answer it whole."""
        self.request()
        self.head(f"content-length: {len(body)}", *lines, status=status)
        self.send(body)

    def events(self, *events: bytes, status: str = "200 OK") -> None:
        """Read a request and answer with events, each in a chunk of its own."""
        self.request()
        self.head("content-type: text/event-stream", "transfer-encoding: chunked", status=status)
        for event in events:
            self.chunk(event)
        self.chunk(b"")

    def chunk(self, data: bytes) -> None:
        self.send(b"%x\r\n%b\r\n" % (len(data), data))

    def reset(self) -> None:
        """Break the connection as a crashed peer does."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def wait_gone(self) -> None:
        """Wait until the other side has closed or broken the connection."""
        self.sock.settimeout(PATIENCE)
        with contextlib.suppress(ConnectionError):
            while self.sock.recv(65536):
                pass
        self.gone.set()

    def _receive(self) -> bytes:
        data = self.sock.recv(65536)
        if not data:
            raise EOFError
        return data


Handler = Callable[[Link], None]


class Peer:
    def __init__(self, *handlers: Handler, context: ssl.SSLContext | None = None) -> None:
        self.requests: list[Request] = []
        self.links: list[Link] = []
        self.failures: list[BaseException] = []
        self._handlers = list(handlers)
        self._context = context
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._accepting = threading.Thread(target=self._accept, daemon=True)

    @property
    def url(self) -> str:
        return f"{'https' if self._context else 'http'}://127.0.0.1:{self.port}"

    def __enter__(self) -> Peer:
        self._accepting.start()
        return self

    def __exit__(self, *_: object) -> None:
        # Closing a listening socket does not wake accept() everywhere; shutting it or connecting does.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join(PATIENCE)
        for link in self.links:
            with contextlib.suppress(OSError):
                link.sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(PATIENCE)
        for link in self.links:
            link.sock.close()
        if self.failures:
            raise self.failures[0]

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self._listener.accept()
                link = Link(sock, self)
                self.links.append(link)
                handler = self._handlers.pop(0) if len(self._handlers) > 1 else self._handlers[0]
                thread = threading.Thread(target=self._serve, args=(link, handler), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _serve(self, link: Link, handler: Handler) -> None:
        link.sock.settimeout(PATIENCE)
        try:
            if self._context is not None:
                link.sock = self._context.wrap_socket(link.sock, server_side=True)
            handler(link)
        except (OSError, EOFError):
            pass  # the client left, as it may
        except BaseException as error:
            self.failures.append(error)
        finally:
            with contextlib.suppress(OSError):
                link.sock.shutdown(socket.SHUT_RDWR)
            link.sock.close()


@contextlib.contextmanager
def refused_port() -> Iterator[int]:
    """A port on which nothing listens."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        yield sock.getsockname()[1]


@contextlib.contextmanager
def full_port() -> Iterator[int]:
    """A port whose queue is full: connecting to it neither succeeds nor fails."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(0)
    address = listener.getsockname()
    waiting = []
    try:
        for _ in range(4):
            sock = socket.socket()
            sock.setblocking(False)
            sock.connect_ex(address)
            waiting.append(sock)
        yield address[1]
    finally:
        for sock in waiting:
            sock.close()
        listener.close()
