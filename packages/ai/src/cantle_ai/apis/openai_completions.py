"""OpenAI's chat completions, streamed: `POST {base_url}/chat/completions`.

The body is built by `openai_completions_payload`, the chunks that come back are put together by
`openai_completions_answer`; what differs from endpoint to endpoint is named in `openai_completions_compat`.
Each request is independent: the endpoint keeps no conversation.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from cantle_ai.abort import AbortSignal
from cantle_ai.apis.http_headers import key_headers, request_headers
from cantle_ai.apis.http_stream import stream_answer
from cantle_ai.apis.openai_completions_answer import CompletionReader
from cantle_ai.apis.openai_completions_compat import OpenAICompletionsCompat, compat_of
from cantle_ai.apis.openai_completions_payload import request_body, session_headers
from cantle_ai.apis.port import WireApi
from cantle_ai.auth.request_auth import RequestAuth
from cantle_ai.builder import AnswerBuilder
from cantle_ai.context import Context
from cantle_ai.events import AssistantMessageEvent
from cantle_ai.model import Model, StreamOptions
from cantle_ai.stream import EventSource
from cantle_ai.transport.port import HttpRequest, Transport

__all__ = ["source"]


def source(
    model: Model,
    context: Context,
    options: StreamOptions,
    *,
    transport: Transport,
    auth: RequestAuth,
) -> EventSource:
    """The answer of one chat completion; see :class:`cantle_ai.apis.port.WireApi`."""

    def events(builder: AnswerBuilder, signal: AbortSignal) -> AsyncIterator[Sequence[AssistantMessageEvent]]:
        compat = compat_of(model)
        request = _request(model, context, options, compat, auth)
        if context.tools and compat.supports_strict_mode:
            from cantle_ai.apis.null_arguments import null_remover

            builder.mend_arguments = null_remover(context.tools)
        reader = CompletionReader(builder, model, context, compat)
        return stream_answer(request, reader, builder, options=options, transport=transport, signal=signal)

    return events


_proof: WireApi = source


def _request(
    model: Model,
    context: Context,
    options: StreamOptions,
    compat: OpenAICompletionsCompat,
    auth: RequestAuth,
) -> HttpRequest:
    headers = request_headers({**session_headers(options, compat), **key_headers(auth)}, auth, options)
    url, name = f"{model.base_url.rstrip('/')}/chat/completions", model.id
    if compat.azure_resource:
        from cantle_ai.apis.azure_openai_address import azure_base_url, azure_url, deployment_name

        url = azure_url(azure_base_url(model, auth.environ), "/chat/completions")
        name = deployment_name(model.id, auth.environ)
    body = request_body(model, context, options, compat, name=name)
    return HttpRequest("POST", url, headers, body, options.timeout)
