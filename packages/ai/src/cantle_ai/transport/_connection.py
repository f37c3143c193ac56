"""One connection, with what a request in a thread needs beside it. Imported in that thread.

A server that is reached directly, with TLS or without, needs no more than `http.client`; `urllib3`, which builds
on it, tunnels through proxies (`cantle_ai.transport._secure`). The socket is made here, because it must be
possible to shut it from another thread at any moment: while it connects, in the TLS handshake, while the proxy or
the server is silent. A duplicate of its descriptor serves for that; shutting the duplicate shuts the connection,
even when TLS has taken the original over.
"""

from __future__ import annotations

import http.client
import selectors
import socket
from collections.abc import Callable, Mapping
from string import ascii_letters, digits
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from msgspec import Struct

from cantle_ai.errors import ConfigurationError
from cantle_ai.transport.port import TransportError

if TYPE_CHECKING:
    import ssl

    from cantle_ai.transport._secure import SecureConnection
    from cantle_ai.transport.proxies import Proxy

__all__ = ["Connection", "Target", "Watch", "parse_target"]

_KEEPALIVE = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4))
"""Probe a silent peer after 60 s, then every 15 s. A model may think for long, so silence alone cuts nothing;
a peer whose machine is gone fails the probes and ends the wait after two minutes."""

_PLAIN_URL = frozenset(ascii_letters + digits + ":/?&=._~-")
"""What an address may consist of in order to need no normalising."""


class Watch(Protocol):
    """Is shown every socket as soon as it exists, so that it can be shut from elsewhere."""

    def attach(self, sock: socket.socket) -> None:
        """Take a duplicate of `sock`. Raises when the request has been given up already."""
        ...

    def detach(self) -> None:
        """The last one shown is gone."""
        ...


class Target(Struct, frozen=True):
    """Where a connection leads. Two requests with equal targets may share one, one after the other."""

    scheme: str
    host: str
    port: int
    proxy: Proxy | None = None


def parse_target(url: str) -> tuple[str, str, int, str]:
    """Scheme, host, port and request target of an absolute URL. Raises :class:`ConfigurationError`."""
    try:
        scheme, host, port, path = _split(url)
    except ValueError:
        scheme, host, port, path = None, None, None, ""
    if scheme not in ("http", "https") or not host:
        raise ConfigurationError(
            None, f"{url!r} is not an address; a base URL begins with http:// or https://"
        )
    return scheme, host.strip("[]"), port or (443 if scheme == "https" else 80), path


def _split(url: str) -> tuple[str | None, str | None, int | None, str]:
    if _PLAIN_URL.issuperset(url) and "/." not in url and not url.endswith("?"):
        plain = urlsplit(url)
        query = f"?{plain.query}" if plain.query else ""
        return plain.scheme, plain.hostname, plain.port, f"{plain.path or '/'}{query}"
    from urllib3.util.url import parse_url

    parsed = parse_url(url)
    return parsed.scheme, parsed.host, parsed.port, parsed.request_uri


class _PlainConnection(http.client.HTTPConnection):
    """Gets its socket from `dial`, which must be set before it connects."""

    dial: Callable[[str, int], socket.socket]

    def __init__(self, host: str, port: int, timeout: float | None) -> None:
        # The dot of a name that is complete is for the lookup; servers do not expect it in the Host header.
        super().__init__(host.rstrip("."), port, timeout=timeout)
        self._name = host

    def connect(self) -> None:
        self.sock = self.dial(self._name, self.port)


class _TlsConnection(_PlainConnection):
    """TLS to the host itself, which the certificate must name."""

    default_port = http.client.HTTPS_PORT

    def __init__(self, host: str, port: int, timeout: float | None, context: ssl.SSLContext) -> None:
        super().__init__(host, port, timeout)
        self._context = context

    def connect(self) -> None:
        sock = self.dial(self._name, self.port)
        # Certificates name neither the dot of a complete name nor the zone of an address.
        name = self._name.rstrip(".").partition("%")[0]
        try:
            self.sock = self._context.wrap_socket(sock, server_hostname=name)
        except BaseException:  # raised again: a handshake that fails or is given up leaves no socket
            sock.close()
            raise


class Connection:
    """A connection to one target. Used by one thread at a time."""

    def __init__(
        self, target: Target, context: Callable[[], ssl.SSLContext], connect_timeout: float | None
    ) -> None:
        """`context` is asked for when TLS is spoken."""
        self.target = target
        self.idle_since = 0.0
        """When it last carried an answer to its end, by the monotonic clock."""
        self.answered = False
        """Whether anything of the answer to the latest request has come. Before that it may be sent once more."""
        self._connect_timeout = connect_timeout
        self._raw = self._prepare(context)
        self._raw.response_class = self._answer  # type: ignore[assignment]  # any maker of one will do

    def open(self, watch: Watch) -> None:
        """Connect, speak TLS, tunnel. Raises OSError and its kin, and :class:`TransportError`."""
        self._watch = watch
        self._raw.dial = self._dial
        self._raw.connect()

    @property
    def reusable(self) -> bool:
        """Whether the peer is still silent on the idle connection: neither closed it nor sent anything."""
        sock = self._raw.sock
        if sock is None:
            return False
        with selectors.DefaultSelector() as selector:
            selector.register(sock, selectors.EVENT_READ)
            return not selector.select(0)

    def reuse(self, watch: Watch) -> None:
        """Let another request watch the open socket."""
        self._watch = watch
        sock = self._raw.sock
        assert sock is not None
        watch.attach(sock)

    def exchange(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes, timeout: float | None
    ) -> http.client.HTTPResponse:
        """Send a request and read the head of its answer. `timeout` bounds each wait, now and in the body."""
        target, raw = self.target, self._raw
        self.answered = False
        raw.timeout = timeout
        if raw.sock is not None:
            raw.sock.settimeout(timeout)
        if target.proxy is not None and target.scheme == "http":
            host = f"[{target.host}]" if ":" in target.host else target.host
            path = f"http://{host}:{target.port}{path}"
            if target.proxy.authorization is not None:
                headers = {**headers, "Proxy-Authorization": target.proxy.authorization}
        raw.request(method, path, body=body or None, headers=headers)
        # urllib3's own response decodes chunk by chunk; the plain one lets its body be read in blocks.
        return http.client.HTTPConnection.getresponse(raw)

    def close(self) -> None:
        self._raw.close()

    def _answer(self, sock: socket.socket, *, method: str | None) -> http.client.HTTPResponse:
        """What the head is read from, once there is something to read, or the peer has closed."""
        answer = http.client.HTTPResponse(sock, method=method)
        try:
            self.answered = bool(answer.fp.peek(1))
        except BaseException:  # raised again: an answer that nobody reads is closed
            answer.close()
            raise
        return answer

    def _prepare(self, context: Callable[[], ssl.SSLContext]) -> _PlainConnection | SecureConnection:
        target, proxy = self.target, self.target.proxy
        if target.scheme == "http" and (proxy is None or proxy.scheme == "http"):
            host, port = (target.host, target.port) if proxy is None else (proxy.host, proxy.port)
            return _PlainConnection(host, port, self._connect_timeout)
        if proxy is None:
            return _TlsConnection(target.host, target.port, self._connect_timeout, context())
        from cantle_ai.transport._secure import secure_connection

        return secure_connection(target, context(), self._connect_timeout)

    def _dial(self, host: str, port: int) -> socket.socket:
        failure: OSError | None = None
        # As bytes, a name that is ASCII does not go through the codec for international ones and its tables.
        name = host.encode("ascii") if host.isascii() else host
        for family, kind, protocol, _, address in socket.getaddrinfo(name, port, 0, socket.SOCK_STREAM):
            try:
                sock = socket.socket(family, kind, protocol)
            except OSError as error:
                failure = error
                continue
            try:
                self._watch.attach(sock)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                _keep_alive(sock)
                sock.settimeout(self._connect_timeout)
                sock.connect(address)
            except OSError as error:
                failure = error
                self._watch.detach()
                sock.close()
            except BaseException:  # raised again: a connection that is given up leaves no socket
                sock.close()
                raise
            else:
                return sock
        raise failure or TransportError(f"{host} has no address", kind="network")


def _keep_alive(sock: socket.socket) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE:
        option = getattr(socket, name, None)
        if option is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)
