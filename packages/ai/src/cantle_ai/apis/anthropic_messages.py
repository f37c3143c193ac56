"""Anthropic's Messages API, streamed: `POST {base_url}/v1/messages`.

The body is built by `anthropic_messages_payload`, the events that come back are put together by
`anthropic_messages_answer`; what differs from endpoint to endpoint is named in `anthropic_messages_compat`.
Each request is independent: the endpoint keeps no conversation.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

from cantle_ai.abort import AbortSignal
from cantle_ai.apis.anthropic_messages_answer import MessageReader
from cantle_ai.apis.anthropic_messages_compat import AnthropicMessagesCompat, compat_of
from cantle_ai.apis.anthropic_messages_payload import payload_of
from cantle_ai.apis.http_headers import configured_headers, key_headers, request_headers
from cantle_ai.apis.http_stream import stream_answer
from cantle_ai.apis.port import WireApi
from cantle_ai.apis.session_keys import cache_key
from cantle_ai.auth.request_auth import RequestAuth
from cantle_ai.builder import AnswerBuilder
from cantle_ai.context import Context
from cantle_ai.events import AssistantMessageEvent
from cantle_ai.model import Model, StreamOptions
from cantle_ai.stream import EventSource
from cantle_ai.transport.port import HttpRequest, Transport

__all__ = ["source"]

_VERSION = "2023-06-01"
_LOGIN_BETA = "oauth-2025-04-20"
"""What the API wants to see beside a token of a login; Anthropic's own SDK sends it with each."""
_BETAS = "anthropic-beta"


def source(
    model: Model,
    context: Context,
    options: StreamOptions,
    *,
    transport: Transport,
    auth: RequestAuth,
) -> EventSource:
    """The answer of one message; see :class:`cantle_ai.apis.port.WireApi`."""

    def events(builder: AnswerBuilder, signal: AbortSignal) -> AsyncIterator[Sequence[AssistantMessageEvent]]:
        request = _request(model, context, options, auth)
        reader = MessageReader(builder, model.id, context)
        return stream_answer(request, reader, builder, options=options, transport=transport, signal=signal)

    return events


_proof: WireApi = source


def _request(model: Model, context: Context, options: StreamOptions, auth: RequestAuth) -> HttpRequest:
    compat = compat_of(model)
    payload = payload_of(model, context, options, compat)
    key = key_headers(auth, "x-api-key")
    if "authorization" in configured_headers(auth, options):
        key.pop("x-api-key", None)  # the API refuses both together
    own = {"anthropic-version": _VERSION, **_session_header(options, compat), **key}
    headers = request_headers(own, auth, options)
    betas = [*payload.betas, *_betas_in(auth.headers), *_betas_in(options.headers)]
    if auth.api_key is not None and auth.kind == "oauth":
        betas.insert(0, _LOGIN_BETA)
    if betas:
        headers[_BETAS] = ",".join(dict.fromkeys(betas))
    return HttpRequest("POST", _url(model), headers, payload.body, options.timeout)


def _url(model: Model) -> str:
    """The address. A `base_url` may end with the version, as those of other APIs do."""
    return f"{model.base_url.rstrip('/').removesuffix('/v1')}/v1/messages"


def _session_header(options: StreamOptions, compat: AnthropicMessagesCompat) -> dict[str, str]:
    """The header by which requests of one session find the same machine, and with it their cache."""
    key = cache_key(options)
    if key is None or not compat.send_session_affinity_headers:
        return {}
    name = "x-session-id" if compat.session_affinity_format == "openrouter" else "x-session-affinity"
    return {name: key}


def _betas_in(headers: Mapping[str, str]) -> Iterator[str]:
    """The betas that configured headers ask for."""
    for name, value in headers.items():
        if name.lower() == _BETAS:
            yield from filter(None, map(str.strip, value.split(",")))
