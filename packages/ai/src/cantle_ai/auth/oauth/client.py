"""Requests to an authorisation server, through the same transport as all others: proxies, authorities, time-outs."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import cast
from urllib.parse import urlencode, urlsplit

import msgspec
from msgspec import Struct

from cantle_ai.auth.login import LoginError
from cantle_ai.codec import Json, JsonObject
from cantle_ai.errors import ProviderError
from cantle_ai.transport.port import HttpRequest, Transport

__all__ = ["OAuthAnswer", "OAuthClient", "checked_page"]

_TIMEOUT = 30.0
_BODY_LIMIT = 1_000_000
_SHOWN = 200
_FORM = "application/x-www-form-urlencoded"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class OAuthAnswer(Struct, frozen=True):
    """An answer: its status, and its body where that is a JSON object, else an empty one. Its `repr` shows no value."""

    host: str
    status: int
    data: JsonObject
    sent: tuple[str, ...] = ()
    """The values that were sent, none of which may be shown again."""

    def __repr__(self) -> str:
        return f"OAuthAnswer({self.host!r}, {self.status}, <{', '.join(self.data)}>)"

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def error(self) -> str:
        """The error's code, such as `invalid_grant`; empty when there is none that can be shown."""
        raw = self.data.get("error")
        if isinstance(raw, dict):
            raw = raw.get("code") or raw.get("type")
        return raw if isinstance(raw, str) and re.fullmatch(r"[\w.-]{1,64}", raw) else ""

    def text(self, name: str) -> str:
        """A field that must be there. Raises :class:`LoginError`."""
        value = self.data.get(name)
        if not isinstance(value, str) or not value:
            raise LoginError(f"{self.host} answered without {name}. Try again later")
        return value

    def seconds(self, name: str) -> float | None:
        """A field that says for how long something is good; some servers write it as a text."""
        value = self.data.get(name)
        try:
            seconds = float(cast("str", value))
        except (TypeError, ValueError):
            return None
        return seconds if 0 <= seconds < 1e12 else None

    def refused(self, what: str) -> Exception:
        """The exception for an answer that is not `ok`. `what` says what was wanted: "the login".

        It is final for what the server refused, and may be tried again when the server is busy or broken.
        """
        reason = ": ".join(part for part in (self.error, self._description()) if part) or "no reason given"
        text = f"{self.host} refused {what} with status {self.status} ({reason})"
        if self.status in (408, 429) or self.status >= 500:
            return ProviderError(text, status=self.status, code=self.error or None)
        return LoginError(text)

    def _description(self) -> str:
        nested = self.data.get("error")
        found = self.data.get("error_description") or self.data.get("message")
        if isinstance(nested, dict):
            found = nested.get("message")
        if not isinstance(found, str) or any(secret in found for secret in self.sent if len(secret) > 5):
            return ""
        shown = " ".join("".join(char if char.isprintable() else " " for char in found).split()).rstrip(".")
        return shown if len(shown) <= _SHOWN else shown[: _SHOWN - 1] + "…"


class OAuthClient:
    """Asks authorisation servers. `clock` gives seconds since 1970, `sleep` waits between two questions."""

    def __init__(
        self,
        transport: Transport,
        *,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._transport = transport
        self.clock = clock
        self.sleep = sleep

    async def post_form(
        self, url: str, fields: Mapping[str, str], headers: Mapping[str, str] = {}
    ) -> OAuthAnswer:
        body = urlencode(fields).encode("ascii")
        return await self._send("POST", url, {"Content-Type": _FORM, **headers}, body, fields)

    async def post_json(
        self, url: str, fields: Mapping[str, str], headers: Mapping[str, str] = {}
    ) -> OAuthAnswer:
        body = msgspec.json.encode(fields)
        return await self._send("POST", url, {"Content-Type": "application/json", **headers}, body, fields)

    async def get(self, url: str, headers: Mapping[str, str] = {}) -> OAuthAnswer:
        return await self._send("GET", url, headers, b"", {})

    def expiry(self, seconds: float | None, *, default: float = 3600.0) -> int:
        """The `expires` of a token that is good for so many seconds, less a margin for the way and for clocks."""
        life = default if seconds is None else seconds
        return round((self.clock() + life - min(300.0, life / 10)) * 1000)

    async def _send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, fields: Mapping[str, str]
    ) -> OAuthAnswer:
        request = HttpRequest(method, url, {"Accept": "application/json", **headers}, body, _TIMEOUT)
        host = urlsplit(url).hostname or url
        try:
            async with asyncio.timeout(_TIMEOUT):
                response = await self._transport.send(request)
                try:
                    data = await response.read(_BODY_LIMIT)
                finally:
                    await response.aclose()
        except TimeoutError:
            raise ProviderError(
                f"{host} did not answer within {_TIMEOUT:g} seconds", kind="timeout"
            ) from None
        secrets = (*fields.values(), *(value.removeprefix("Bearer ") for value in headers.values()))
        return OAuthAnswer(host, response.status, _object(data), secrets)


def _object(data: bytes) -> JsonObject:
    try:
        value: Json = msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def checked_page(url: str) -> str:
    """A page's address as a server gave it, where it can be opened without harm. Raises :class:`LoginError`."""
    try:
        parts = urlsplit(url)
        local = parts.scheme == "http" and parts.hostname in _LOOPBACK
    except ValueError:
        raise LoginError("The server named a page whose address cannot be read") from None
    if not url.isprintable() or " " in url or not parts.hostname or not (parts.scheme == "https" or local):
        raise LoginError("The server named a page that is not on https://, and it is not opened")
    return url
