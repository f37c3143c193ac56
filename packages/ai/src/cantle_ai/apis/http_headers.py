"""The headers of a request: what all wire APIs send, an API's own, the key, and what is configured over them."""

from __future__ import annotations

from collections.abc import Mapping

from cantle_ai.auth.request_auth import RequestAuth
from cantle_ai.model import StreamOptions

__all__ = ["configured_headers", "key_headers", "request_headers"]


def request_headers(
    own: Mapping[str, str], auth: RequestAuth, options: StreamOptions, *, accept: str = "text/event-stream"
) -> dict[str, str]:
    """The headers of a request with a JSON body: an API's `own` over what all have, what is configured over both.

    `own` has lower-case names, and so has what is returned.
    """
    common = {"content-type": "application/json", "accept": accept, "user-agent": "cantle"}
    return {**common, **own, **configured_headers(auth, options)}


def configured_headers(auth: RequestAuth, options: StreamOptions) -> dict[str, str]:
    """The headers that somebody asked for, with lower-case names: those of `options` over those of `auth`."""
    return {name.lower(): value for more in (auth.headers, options.headers) for name, value in more.items()}


def key_headers(auth: RequestAuth, header: str | None = None) -> dict[str, str]:
    """The header that the key travels in; none without a key.

    `header` is the one in which an API wants a plain key. A key of another kind, and every key where the API has
    no such header, is a bearer token.
    """
    if auth.api_key is None:
        return {}
    if header is not None and auth.kind == "key":
        return {header: auth.api_key}
    return {"authorization": f"Bearer {auth.api_key}"}
