"""OpenAI's Responses API, streamed: `POST {base_url}/responses`.

Each request is independent: nothing is stored at the endpoint (`store: false`), and reasoning comes back
encrypted. What differs from endpoint to endpoint is named in `openai_responses_compat`. The doors
`azure_openai_responses` and `openai_codex_responses` share the modules `openai_responses_*` with this one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from cantle_ai.abort import AbortSignal
from cantle_ai.apis.http_headers import key_headers, request_headers
from cantle_ai.apis.http_stream import stream_answer
from cantle_ai.apis.openai_responses_compat import compat_of
from cantle_ai.apis.openai_responses_payload import request_body, session_headers
from cantle_ai.apis.openai_responses_reader import reader_of
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
    """The answer of one response; see :class:`cantle_ai.apis.port.WireApi`."""

    def events(builder: AnswerBuilder, signal: AbortSignal) -> AsyncIterator[Sequence[AssistantMessageEvent]]:
        compat = compat_of(model)
        own = {**session_headers(options, compat), **key_headers(auth)}
        url = f"{model.base_url.rstrip('/')}/responses"
        body = request_body(model, context, options, compat)
        request = HttpRequest("POST", url, request_headers(own, auth, options), body, options.timeout)
        reader = reader_of(builder, model, context, compat)
        return stream_answer(request, reader, builder, options=options, transport=transport, signal=signal)

    return events


_proof: WireApi = source
