"""Whether anything listens at an address of this machine, without the cost of asking it."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

__all__ = ["may_listen"]

_HERE = frozenset({"127.0.0.1", "::1", "localhost"})
_PATIENCE = 0.2
"""Seconds. This machine answers at once, but for a listener that is overrun."""


def may_listen(url: str) -> bool:
    """False when it is certain that nothing listens there. An address of another machine is not tried."""
    parts = urlsplit(url)
    host, port = parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
    if host not in _HERE:
        return True
    try:
        with socket.create_connection((host, port), timeout=_PATIENCE):
            return True
    except OSError:
        return False
