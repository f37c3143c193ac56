"""Connections that tunnel through a proxy, or speak TLS to one: `urllib3`. Imported for the first of them."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING

from urllib3.connection import HTTPSConnection, ProxyConfig
from urllib3.util.url import Url

if TYPE_CHECKING:
    from cantle_ai.transport._connection import Target

__all__ = ["SecureConnection", "secure_connection"]


class SecureConnection(HTTPSConnection):
    """Gets its socket from `dial`, which must be set before it connects."""

    dial: Callable[[str, int], socket.socket]

    def _new_conn(self) -> socket.socket:
        return self.dial(self._dns_host, self.port)


def secure_connection(target: Target, context: ssl.SSLContext, timeout: float | None) -> SecureConnection:
    """A connection through the proxy of `target`, with TLS to the host, to the proxy, or to both.

    `timeout` is for connecting.
    """
    proxy = target.proxy
    assert proxy is not None
    if target.scheme == "http":
        return SecureConnection(proxy.host, proxy.port, timeout=timeout, ssl_context=context)
    url = Url(scheme=proxy.scheme, host=proxy.host, port=proxy.port)
    config = ProxyConfig(context, False, None, None)
    connection = SecureConnection(
        proxy.host, proxy.port, timeout=timeout, ssl_context=context, proxy=url, proxy_config=config
    )
    headers = {} if proxy.authorization is None else {"Proxy-Authorization": proxy.authorization}
    connection.set_tunnel(target.host, target.port, headers=headers, scheme=proxy.scheme)
    return connection
