"""OpenAI's chat completions, streamed: `POST {base_url}/chat/completions`.

The body is built by `openai_completions_payload`, the chunks that come back are put together by
`openai_completions_answer`; what differs from endpoint to endpoint is named in `openai_completions_compat`.
Each request is independent: the endpoint keeps no conversation.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from cantle_ai.abort import AbortSignal
from cantle_ai.apis.http_errors import error_from_json, unexpected_body
from cantle_ai.apis.http_headers import key_headers, request_headers
from cantle_ai.apis.http_stream import AnswerReader, stream_answer
from cantle_ai.apis.openai_completions_answer import Answer
from cantle_ai.apis.openai_completions_chunks import decode_chunk
from cantle_ai.apis.openai_completions_compat import OpenAICompletionsCompat, compat_of
from cantle_ai.apis.openai_completions_payload import request_body, session_headers
from cantle_ai.apis.port import WireApi
from cantle_ai.auth.request_auth import RequestAuth
from cantle_ai.builder import AnswerBuilder
from cantle_ai.context import Context
from cantle_ai.errors import ProviderError
from cantle_ai.events import AssistantMessageEvent
from cantle_ai.model import Model, StreamOptions
from cantle_ai.sse import ServerSentEvent
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
        reader = _Reader(Answer(builder, model, context, compat), compat)
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


class _Reader:
    """Reads one answer's body."""

    def __init__(self, answer: Answer, compat: OpenAICompletionsCompat) -> None:
        self._answer = answer
        self._compat = compat
        self.done = False

    @property
    def complete(self) -> bool:
        return self._answer.finish_reason is not None

    @property
    def empty(self) -> bool:
        return self._answer.empty

    def event(self, event: ServerSentEvent) -> None:
        data, name = event.data, event.event
        if data == b"[DONE]":
            self.done = True
            return
        try:
            chunk = decode_chunk(data)
        except ValueError:
            if data.strip() == b"[DONE]":  # with blanks around it
                self.done = True
            elif name in (None, "message", "error") and data.strip():
                raise
            return  # proxies add events of their own, with names
        if chunk is None:
            return
        if chunk.error:
            raise error_from_json(chunk.error)
        if name == "error":
            raise unexpected_body(data)
        self._answer.add(chunk)

    def whole(self, body: bytes) -> None:
        self.event(ServerSentEvent(None, body))

    def end(self) -> None:
        if self._answer.finish_reason is None and self._compat.supports_finish_reason:
            raise ProviderError(
                "The answer was cut off: the stream ended without a finish reason", kind="network"
            )
        self._answer.finish()


_reads: type[AnswerReader] = _Reader
