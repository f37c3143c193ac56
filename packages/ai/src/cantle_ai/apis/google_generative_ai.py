"""Google's Gemini API, streamed: `POST {base_url}/models/{id}:streamGenerateContent?alt=sse`.

The body is built by `google_payload`, the chunks that come back are put together by `google_answer`; Vertex AI
(`google_vertex`) speaks the same. What differs from model to model is named in `google_compat`. Each request is
independent: the endpoint keeps no conversation.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from cantle_ai.abort import AbortSignal
from cantle_ai.apis.google_answer import GoogleReader
from cantle_ai.apis.google_compat import compat_of
from cantle_ai.apis.google_payload import request_body
from cantle_ai.apis.google_request import KEY_HEADER, google_request, model_path
from cantle_ai.apis.http_headers import key_headers
from cantle_ai.apis.http_stream import stream_answer
from cantle_ai.apis.port import WireApi
from cantle_ai.auth.request_auth import RequestAuth
from cantle_ai.builder import AnswerBuilder
from cantle_ai.context import Context
from cantle_ai.events import AssistantMessageEvent
from cantle_ai.model import Model, StreamOptions
from cantle_ai.stream import EventSource
from cantle_ai.transport.port import Transport

__all__ = ["source"]


def source(
    model: Model, context: Context, options: StreamOptions, *, transport: Transport, auth: RequestAuth
) -> EventSource:
    """One answer of Gemini; see :class:`cantle_ai.apis.port.WireApi`."""

    def events(builder: AnswerBuilder, signal: AbortSignal) -> AsyncIterator[Sequence[AssistantMessageEvent]]:
        body = request_body(model, context, options, compat_of(model))
        address = f"{model.base_url.rstrip('/')}/{model_path(model.id)}"
        request = google_request(address, body, key_headers(auth, KEY_HEADER), auth, options)
        reader = GoogleReader(builder, model.id, context)
        return stream_answer(request, reader, builder, options=options, transport=transport, signal=signal)

    return events


_proof: WireApi = source
