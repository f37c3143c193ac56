"""One connection of `urllib3`, with what a request in a thread needs beside it. Imported in that thread.

`urllib3` speaks TLS, tunnels through proxies and writes the request. The socket is made here, because it must
be possible to shut it from another thread at any moment: while it connects, in the TLS handshake, while the
proxy or the server is silent. A duplicate of its descriptor serves for that; shutting the duplicate shuts the
connection, even when TLS has taken the original over.
"""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Callable, Mapping
from typing import Protocol

from msgspec import Struct
from urllib3.connection import HTTPConnection, HTTPSConnection, ProxyConfig
from urllib3.util.url import Url, parse_url

from cantle_ai.errors import ConfigurationError
from cantle_ai.transport.port import TransportError
from cantle_ai.transport.proxies import Proxy

__all__ = ["Connection", "Target", "Watch", "parse_target"]

_KEEPALIVE = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4))
"""Probe a silent peer after 60 s, then every 15 s. A model may think for long, so silence alone cuts nothing;
a peer whose machine is gone fails the probes and ends the wait after two minutes."""


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
        parsed = parse_url(url)
    except ValueError:
        parsed = Url()
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise ConfigurationError(
            None, f"{url!r} is not an address; a base URL begins with http:// or https://"
        )
    port = parsed.port or (443 if parsed.scheme == "https" else 80)
    return parsed.scheme, parsed.host.strip("[]"), port, parsed.request_uri


class _Plain(HTTPConnection):
    dial: Callable[[str, int], socket.socket]

    def _new_conn(self) -> socket.socket:
        return self.dial(self._dns_host, self.port)


class _Secure(HTTPSConnection):
    dial: Callable[[str, int], socket.socket]

    def _new_conn(self) -> socket.socket:
        return self.dial(self._dns_host, self.port)


class Connection:
    """A connection to one target. Used by one thread at a time."""

    def __init__(
        self, target: Target, context: Callable[[], ssl.SSLContext], connect_timeout: float | None
    ) -> None:
        """`context` is asked for when TLS is spoken."""
        self.target = target
        self.idle_since = 0.0
        """When it last carried an answer to its end, by the monotonic clock."""
        self._connect_timeout = connect_timeout
        self._raw = self._prepare(context)

    def open(self, watch: Watch) -> None:
        """Connect, speak TLS, tunnel. Raises OSError and its kin, and :class:`TransportError`."""
        target = self.target
        self._watch = watch
        self._raw.dial = self._dial
        if target.proxy is not None and target.scheme == "https":
            authorization = target.proxy.authorization
            headers = {} if authorization is None else {"Proxy-Authorization": authorization}
            self._raw.set_tunnel(target.host, target.port, headers=headers, scheme=target.proxy.scheme)
        self._raw.connect()

    @property
    def reusable(self) -> bool:
        """Whether the peer is still silent on the idle connection: neither closed it nor sent anything."""
        return self._raw.is_connected

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
        raw.timeout = timeout
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

    def _prepare(self, context: Callable[[], ssl.SSLContext]) -> _Plain | _Secure:
        target, proxy = self.target, self.target.proxy
        host, port = (target.host, target.port) if proxy is None else (proxy.host, proxy.port)
        timeout = self._connect_timeout
        if target.scheme == "http" and (proxy is None or proxy.scheme == "http"):
            return _Plain(host, port, timeout=timeout)
        if proxy is None or target.scheme == "http":
            return _Secure(host, port, timeout=timeout, ssl_context=context())
        url = Url(scheme=proxy.scheme, host=proxy.host, port=proxy.port)
        config = ProxyConfig(context(), False, None, None)
        return _Secure(host, port, timeout=timeout, ssl_context=context(), proxy=url, proxy_config=config)

    def _dial(self, host: str, port: int) -> socket.socket:
        failure: OSError | None = None
        for family, kind, protocol, _, address in socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM):
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
            except BaseException:
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
