"""OpenAI's models at Azure: the Responses API below a resource of one's own.

`POST {resource}/openai/v1/responses?api-version=…`, with the key in the header `api-key` (a token of Entra ID is a
bearer token) and the deployment's name for the model. All else is as in `openai_responses`, whose modules this door
shares.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final

from cantle_ai.abort import AbortSignal
from cantle_ai.apis.azure_openai_address import azure_base_url, azure_url, deployment_name
from cantle_ai.apis.http_headers import key_headers, request_headers
from cantle_ai.apis.http_stream import stream_answer
from cantle_ai.apis.openai_responses_compat import compat_of
from cantle_ai.apis.openai_responses_payload import request_body
from cantle_ai.apis.openai_responses_reader import reader_of
from cantle_ai.apis.port import WireApi
from cantle_ai.auth.request_auth import RequestAuth
from cantle_ai.builder import AnswerBuilder
from cantle_ai.codec import JsonObject
from cantle_ai.context import Context
from cantle_ai.events import AssistantMessageEvent
from cantle_ai.model import Model, StreamOptions
from cantle_ai.stream import EventSource
from cantle_ai.transport.port import HttpRequest, Transport

__all__ = ["source"]

_DEFAULTS: Final[JsonObject] = {
    "supportsDeveloperRole": True,
    "supportsStrictMode": True,
    "supportsLongCacheRetention": False,
}


def source(
    model: Model,
    context: Context,
    options: StreamOptions,
    *,
    transport: Transport,
    auth: RequestAuth,
) -> EventSource:
    """The answer of one response; see :class:`cantle_ai.apis.port.WireApi`."""

    def events(builder: AnswerBuilder, signal: AbortSignal) -> AsyncIterator[Sequence[AssistantMessageEvent]]:
        compat = compat_of(model, _DEFAULTS)
        name = deployment_name(model.id, auth.environ)
        url = azure_url(azure_base_url(model, auth.environ), "/responses", auth.environ)
        body = request_body(model, context, options, compat, name=name)
        headers = request_headers(key_headers(auth, "api-key"), auth, options)
        request = HttpRequest("POST", url, headers, body, options.timeout)
        reader = reader_of(builder, model, context, compat, name)
        return stream_answer(request, reader, builder, options=options, transport=transport, signal=signal)

    return events


_proof: WireApi = source
