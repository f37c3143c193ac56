"""Headers that a provider's row asks for and that differ from request to request."""

from __future__ import annotations

import os
from collections.abc import Iterator

import msgspec

from cantle_ai.apis.session_keys import bounded_key
from cantle_ai.auth.request_auth import RequestAuth
from cantle_ai.content import ImageContent
from cantle_ai.context import Context
from cantle_ai.messages import ToolResultMessage, UserMessage
from cantle_ai.model import LiveHeader, Provider, StreamOptions

__all__ = ["with_live_headers"]


def with_live_headers(
    provider: Provider, auth: RequestAuth, context: Context, options: StreamOptions
) -> RequestAuth:
    """`auth` with the live headers of the row. What is configured stays."""
    configured = {name.lower() for name in auth.headers}
    live = _live(provider, context, options)
    added = {name: value for name, value in live if name.lower() not in configured}
    return msgspec.structs.replace(auth, headers={**auth.headers, **added})


def _live(provider: Provider, context: Context, options: StreamOptions) -> Iterator[tuple[str, str]]:
    for name, kind in provider.live_headers.items():
        value = _value(kind, context, options)
        if value is not None:
            yield name, value


def _value(kind: LiveHeader, context: Context, options: StreamOptions) -> str | None:
    if kind == "session":
        # A service that routes by it may refuse a request without one.
        return bounded_key(options.session_id) if options.session_id else os.urandom(16).hex()
    if kind == "initiator":
        return "user" if not context.messages or isinstance(context.messages[-1], UserMessage) else "agent"
    return "true" if options.images and _has_images(context) else None


def _has_images(context: Context) -> bool:
    shown = (message for message in context.messages if isinstance(message, UserMessage | ToolResultMessage))
    return any(isinstance(block, ImageContent) for message in shown for block in message.content)
