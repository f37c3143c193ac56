"""What an endpoint says when it says no, as one :class:`ProviderError`. Shared by the wire APIs.

Bodies that are understood: `{"error": {"message", "code", "type", "metadata"?: {"raw"}}}`, `{"error": "…"}`,
`{"error": {"message", "code": 429, "status": "RESOURCE_EXHAUSTED", "details"}}`, `{"message": …}`, `{"detail": …}`,
`{"Message": …}` (AWS, of who may not), FastAPI's lists of mistakes, each of them also inside a list; else text; a web
page is reduced to its title.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from cantle_ai.codec import Json, decode_json
from cantle_ai.errors import ProviderError
from cantle_ai.transport.port import HttpResponse, TransportError

__all__ = [
    "amazon_word",
    "cut_off",
    "error_from_json",
    "error_from_response",
    "quote",
    "redact",
    "redacted",
    "retry_after",
    "secrets_of",
    "unexpected_body",
]

_LONGEST_BODY = 64 * 1024
_LONGEST_WAIT = 10.0
"""Seconds for the body of an error. The status alone says enough if it does not come."""
_LONGEST_TEXT = 2000
_QUOTED = 160
_SECRET_WORDS = ("auth", "key", "token", "secret", "password", "credential", "cookie")
"""A header whose name has one of them holds a key. Gateways have headers of their own: `cf-aig-authorization`."""
_CUT = "…"
_SHORTEST_SECRET = 6
"""Shorter values are placeholders, as local servers get them, and may be ordinary words."""


async def error_from_response(response: HttpResponse, secrets: Sequence[str]) -> ProviderError:
    """The error in an answer that is not a success. `secrets` are kept out of its text. Closes the response."""
    status = response.status
    wait = retry_after(response.headers)
    if 300 <= status < 400:
        where = response.headers.get("location", "").partition("?")[0]
        moved = f"{status} The endpoint has moved to {where or 'another address'}; correct the provider's base URL"
        return ProviderError(redacted(moved, secrets), status=status)
    try:
        async with asyncio.timeout(_LONGEST_WAIT):
            body = await response.read(_LONGEST_BODY)
    except (TimeoutError, TransportError):
        body = b""
    finally:
        await response.aclose()
    said = _from_body(body)
    message = redacted(f"{status} {said.text or _meaning(status)}", secrets)
    wait = said.retry_after if wait is None else wait
    code = said.code or amazon_word(response.headers.get("x-amzn-errortype"))
    return ProviderError(message, status=status, code=code and redacted(code, secrets), retry_after=wait)


def error_from_json(raw: Json, secrets: Sequence[str] = ()) -> ProviderError:
    """The error that an endpoint reports inside a stream. A numeric code in the range of statuses is one."""
    said = _from_json({"error": raw})
    text = redacted(said.text or "The provider reported an error", secrets)
    code = said.code and redacted(said.code, secrets)
    return ProviderError(text, status=said.status, code=code, retry_after=said.retry_after)


def unexpected_body(beginning: bytes, secrets: Sequence[str] = ()) -> ProviderError:
    """The error for a success whose body is something else than the API speaks."""
    if not beginning.strip():
        return ProviderError("The answer ended without sending any chunks", kind="network")
    title = _web_page(beginning)
    what = quote(beginning) if title is None else f"a web page, {title!r}" if title else "a web page"
    text = f"The endpoint does not speak this API; it sent {what}. Check the provider's base URL"
    return ProviderError(redacted(text, secrets), kind="protocol")


def cut_off(missing: str) -> ProviderError:
    """The error for a stream that ended before its last word. `missing` is what did not come: "a stop reason"."""
    return ProviderError(f"The answer was cut off: the stream ended without {missing}", kind="network")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, from `retry-after-ms` or `retry-after` (seconds or a date); None if it is not said."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after", "").strip()
    seconds = _number(value)
    if seconds is not None or not value:
        return seconds
    import time
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def redacted(text: str, secrets: Sequence[str]) -> str:
    """`text` without the secrets, should an endpoint repeat one, nor the beginning of one where it was cut."""
    for secret in secrets:
        text = text.replace(secret, _CUT)
        if _CUT in text:
            for size in range(len(secret) - 1, _SHORTEST_SECRET - 1, -1):
                text = text.replace(secret[:size] + _CUT, _CUT)
    return text


def redact(error: ProviderError, secrets: Sequence[str]) -> None:
    """Take the secrets out of an error that is on its way."""
    error.message = redacted(error.message, secrets)
    error.args = (error.message,)
    error.code = error.code and redacted(error.code, secrets)


def secrets_of(headers: Mapping[str, str]) -> list[str]:
    """The values of a request's headers that must not be shown: its keys."""
    held = [value for name, value in headers.items() if any(word in name.lower() for word in _SECRET_WORDS)]
    values = {value.rpartition(" ")[2] for value in held}
    return sorted((value for value in values if len(value) >= _SHORTEST_SECRET), key=len, reverse=True)


def quote(data: bytes) -> str:
    """The beginning of what came, on one line."""
    text = " ".join(data[: 4 * _QUOTED].decode("utf-8", "replace").split())
    return repr(text if len(text) <= _QUOTED else text[:_QUOTED] + _CUT)


class _Said(Struct, frozen=True):
    """What a body says. Any of it may be missing."""

    text: str | None = None
    code: str | None = None
    status: int | None = None
    """A numeric code in the range of HTTP's statuses."""
    retry_after: float | None = None


def _from_body(body: bytes) -> _Said:
    title = _web_page(body)
    if title is not None:
        return _Said(title or None)
    try:
        raw = decode_json(body)
    except ValueError:
        text = " ".join(body.decode("utf-8", "replace").split())
        return _Said(_clipped(text) or None)
    return _from_json(raw)


def _from_json(raw: Json) -> _Said:
    if isinstance(raw, list):
        return _from_json(raw[0]) if raw else _Said()
    if isinstance(raw, str):
        return _Said(_clipped(raw))
    if not isinstance(raw, dict):
        return _Said()
    inner = raw.get("error")
    if isinstance(inner, dict | list):
        return _from_json(inner)
    text = next((raw[key] for key in ("message", "detail", "error", "msg", "Message") if raw.get(key)), None)
    if text is not None and not isinstance(text, str):
        text = _mistakes(text) or quote(str(text).encode())
    metadata = raw.get("metadata")
    upstream = metadata.get("raw") if isinstance(metadata, dict) else None
    if isinstance(upstream, str) and upstream.strip():
        text = f"{text or ''} ({upstream.strip()})".strip()
    code = next(
        (str(raw[key]) for key in ("code", "type", "status") if isinstance(raw.get(key), str | int)), None
    )
    code = code or amazon_word(raw.get("__type"))
    status = int(code) if code is not None and re.fullmatch(r"[45]\d\d", code) else None
    wait = None
    if isinstance(raw.get("code"), int) and isinstance(word := raw.get("status"), str):
        # Google's form (google.rpc.Status): the number is the status, and the word is the code.
        from cantle_ai.apis.rpc_details import quota_of_a_day, retry_delay

        if quota_of_a_day(raw.get("details")):
            code = "quota_exceeded"
        else:
            code, wait = word, retry_delay(raw.get("details"))
    return _Said(_clipped(text) if text else None, code, status, wait)


def _mistakes(raw: Json) -> str:
    """What is wrong with a request, as FastAPI says it: `[{"loc": ["body", "model"], "msg": …}, …]`. Empty for all else."""
    if isinstance(raw, dict):
        raw = raw.get("detail")
    said: list[str] = []
    for each in raw if isinstance(raw, list) else ():
        if isinstance(each, dict) and isinstance(each.get("msg"), str):
            place = each.get("loc")
            where = ".".join(str(step) for step in place) if isinstance(place, list) else ""
            said.append(f"{where}: {each['msg']}".removeprefix(": "))
    return "; ".join(said)


def amazon_word(value: Json) -> str | None:
    """The name of an exception as AWS says it: `com.amazon.coral#ThrottlingException`, `ThrottlingException:http://…`."""
    if not isinstance(value, str):
        return None
    return value.rpartition("#")[2].partition(":")[0].strip() or None


def _web_page(body: bytes) -> str | None:
    """The title of a web page, empty if it has none; None if this is no web page."""
    start = body.lstrip()[:1024].lower()
    if not start.startswith((b"<!doctype html", b"<html", b"<head", b"<body", b"<center", b"<h1")):
        return None
    found = re.search(rb"<(title|h1)[^>]*>(.*?)</\1", body, re.IGNORECASE | re.DOTALL)
    if found is None:
        return ""
    return _clipped(" ".join(found[2].decode("utf-8", "replace").split()))


def _meaning(status: int) -> str:
    from http import HTTPStatus

    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "The provider answered with an error and no text"


def _clipped(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + _CUT


def _number(value: str | None) -> float | None:
    try:
        number = float(value) if value else None
    except ValueError:
        return None
    return number if number is not None and 0 <= number < 1e9 else None
