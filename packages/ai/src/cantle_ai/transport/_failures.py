"""What a failed connection is called. Imported when one has failed."""

from __future__ import annotations

import http.client
import os
import socket
import ssl
import zlib
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from cantle_ai.errors import CantleAIError
from cantle_ai.transport.framing import FramingError
from cantle_ai.transport.port import HttpRequest, TransportError

__all__ = ["Stage", "transport_error"]

Stage: TypeAlias = Literal["connect", "head", "body"]
"""What was going on: the connection was being made, the answer's head was awaited, its body read."""


def transport_error(error: Exception, request: HttpRequest, stage: Stage, waited: float | None) -> Exception:
    """The failure as one sentence that names the host, never a header, a path or a query.

    `waited` is the time-out in seconds that was in force. An exception that no network explains is returned
    as it is.
    """
    host = urlsplit(request.url).hostname or "the server"
    match error:
        case CantleAIError():
            return error
        case TimeoutError():
            return TransportError(_timeout(host, stage, waited), kind="timeout")
        case ssl.SSLCertVerificationError():
            text = (
                f"The certificate of {host} cannot be verified ({error.verify_message}). If it was issued by your "
                "own authority, name that authority's file in NODE_EXTRA_CA_CERTS or SSL_CERT_FILE"
            )
            return TransportError(text, kind="protocol")
        case ssl.SSLEOFError() | ssl.SSLZeroReturnError():
            return TransportError(f"The connection to {host} was closed", kind="network")
        case ssl.SSLError():
            return TransportError(f"No TLS connection to {host} ({error.reason})", kind="protocol")
        case socket.gaierror():
            return TransportError(f"The host {host} was not found ({error.strerror})", kind="network")
        case http.client.RemoteDisconnected():
            return TransportError(f"{host} closed the connection without an answer", kind="network")
        case http.client.HTTPException() | FramingError():
            text = f"{host} does not answer in HTTP/1.1 ({_short(error)})"
            return TransportError(text, kind="protocol")
        case zlib.error():
            return TransportError(f"The compressed answer of {host} is damaged", kind="protocol")
        case OSError():
            return TransportError(_system_error(error, host, stage), kind="network")
        case ValueError():
            # The text of such an error may quote a header's value, and that may be a key.
            text = (
                f"The request to {host} cannot be sent: its address or a header holds a forbidden character"
            )
            return TransportError(text, kind="protocol")
        case _:
            return error


def _timeout(host: str, stage: Stage, waited: float | None) -> str:
    limit = "" if waited is None else f" within {waited:g} s"
    match stage:
        case "connect":
            return f"No connection to {host}{limit}"
        case "head":
            return f"No answer from {host}{limit}"
        case "body":
            return f"The answer of {host} stopped: nothing came{limit}"


def _system_error(error: OSError, host: str, stage: Stage) -> str:
    reason = str(error) if error.errno is None else os.strerror(error.errno)
    name = type(error).__name__
    if isinstance(error, ConnectionRefusedError):
        return f"Connection refused by {host}: nothing listens there ({reason})"
    if stage == "connect":
        return f"No connection to {host} ({reason})"
    return f"The connection to {host} was lost ({reason}, {name})"


def _short(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 120 else f"{text[:120]}…"
