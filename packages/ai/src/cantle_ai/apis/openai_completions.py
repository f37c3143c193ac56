"""OpenAI's chat completions, streamed: `POST {base_url}/chat/completions`.

The body is built by `openai_completions_payload`, the chunks that come back are put together by
`openai_completions_answer`; what differs from endpoint to endpoint is named in `openai_completions_compat`.
Each request is independent: the endpoint keeps no conversation.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

from cantle_ai.abort import AbortSignal
from cantle_ai.apis.http_errors import error_from_json, error_from_response, secrets_of, unexpected_body
from cantle_ai.apis.openai_completions_answer import Answer
from cantle_ai.apis.openai_completions_chunks import decode_chunk
from cantle_ai.apis.openai_completions_compat import OpenAICompletionsCompat, compat_of
from cantle_ai.apis.openai_completions_payload import request_body, session_headers
from cantle_ai.apis.port import WireApi
from cantle_ai.builder import AnswerBuilder
from cantle_ai.context import Context
from cantle_ai.errors import ProviderError
from cantle_ai.events import AssistantMessageEvent
from cantle_ai.model import Model, StreamOptions
from cantle_ai.sse import ServerSentEvent, SseError, SseParser
from cantle_ai.stream import EventSource
from cantle_ai.transport.port import HttpRequest, HttpResponse, Transport, TransportError

__all__ = ["source"]

_BEGINNING = 1024
"""Bytes of a body that are kept to be quoted, should it turn out to be something else."""
_LONGEST_COMPLETION = 64 * 1024 * 1024


def source(
    model: Model,
    context: Context,
    options: StreamOptions,
    *,
    transport: Transport,
    api_key: str | None,
    headers: Mapping[str, str],
) -> EventSource:
    """The answer of one chat completion; see :class:`cantle_ai.apis.port.WireApi`."""

    async def events(
        builder: AnswerBuilder, signal: AbortSignal
    ) -> AsyncIterator[Sequence[AssistantMessageEvent]]:
        compat = compat_of(model)
        request = _request(model, context, options, compat, api_key, headers)
        secrets = secrets_of(request.headers)
        if options.on_request is not None:
            options.on_request(request)
        response = await transport.send(request, signal=signal)
        try:
            if options.on_response is not None:
                options.on_response(response)
            if not 200 <= response.status < 300:
                raise await error_from_response(response, secrets)
            yield builder.take()
            reader = _Reader(Answer(builder, model.id, context), compat, secrets)
            kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind == "application/json":
                reader.whole(await response.read(_LONGEST_COMPLETION))
            else:
                async for _ in reader.stream(response):
                    yield builder.take()
                reader.end(announced=kind == "text/event-stream")
            response.release()
            yield builder.take()
        finally:
            await response.aclose()

    return events


_proof: WireApi = source


def _request(
    model: Model,
    context: Context,
    options: StreamOptions,
    compat: OpenAICompletionsCompat,
    api_key: str | None,
    headers: Mapping[str, str],
) -> HttpRequest:
    merged = {
        "content-type": "application/json",
        "accept": "text/event-stream",
        "user-agent": "cantle",
        **session_headers(options, compat),
    }
    if api_key is not None:
        merged["authorization"] = f"Bearer {api_key}"
    for more in (headers, options.headers):
        merged.update({name.lower(): value for name, value in more.items()})
    url = f"{model.base_url.rstrip('/')}/chat/completions"
    body = request_body(model, context, options, compat)
    return HttpRequest("POST", url, merged, body, options.timeout)


class _Reader:
    """Reads one answer's body."""

    def __init__(self, answer: Answer, compat: OpenAICompletionsCompat, secrets: Sequence[str]) -> None:
        self._answer = answer
        self._compat = compat
        self._secrets = secrets
        self._beginning = b""
        self._done = False

    async def stream(self, response: HttpResponse) -> AsyncIterator[None]:
        """Read a stream of events; yields after each block of bytes."""
        parser = SseParser()
        try:
            async for block in response.chunks:
                if len(self._beginning) < _BEGINNING:
                    self._beginning += block[:_BEGINNING]
                self._events(parser.feed(block))
                yield
                if self._done:
                    break
            else:
                self._events(parser.finish())
        except SseError as error:
            raise ProviderError(f"The answer is not a stream of events: {error}", kind="protocol") from None
        except TransportError as error:
            # The last words of a whole answer, which servers cut off: it is whole all the same.
            if self._answer.finish_reason is None or error.kind != "network":
                raise

    def whole(self, body: bytes) -> None:
        """Read a completion that was not streamed."""
        self._beginning = body[:_BEGINNING]
        self._data(body, None)
        self.end(announced=False)

    def _events(self, events: Iterable[ServerSentEvent]) -> None:
        for event in events:
            if self._done:
                return
            self._data(event.data, event.event)

    def _data(self, data: bytes, name: str | None) -> None:
        if data == b"[DONE]":
            self._done = True
            return
        try:
            chunk = decode_chunk(data)
        except ValueError:
            self._not_json(data, name)
            return
        if chunk is None:
            return
        if chunk.error:
            raise error_from_json(chunk.error, self._secrets)
        if name == "error":
            raise unexpected_body(data, self._secrets)
        self._answer.add(chunk)

    def _not_json(self, data: bytes, name: str | None) -> None:
        if data.strip() == b"[DONE]":  # with blanks around it
            self._done = True
        elif (
            name in (None, "message", "error") and data.strip()
        ):  # proxies add events of their own, with names
            raise unexpected_body(self._beginning or data, self._secrets)

    def end(self, *, announced: bool) -> None:
        """Close the answer. `announced` says that the body called itself a stream of events."""
        answer = self._answer
        if answer.empty:
            raise unexpected_body(b"" if announced or self._done else self._beginning, self._secrets)
        if answer.finish_reason is None and self._compat.supports_finish_reason:
            raise ProviderError(
                "The answer was cut off: the stream ended without a finish reason", kind="network"
            )
        answer.finish()
