"""One answer over HTTP: the way that every wire API goes from a request to the events of its answer.

An API makes the request and brings an :class:`AnswerReader`, which knows what the endpoint's events mean. All
else is alike and stands here: showing both sides to whoever inspects them, refusals, bodies that are something
else, streams that are cut, and letting go of the connection.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

from cantle_ai.abort import AbortSignal
from cantle_ai.builder import AnswerBuilder
from cantle_ai.errors import ProviderError
from cantle_ai.events import AssistantMessageEvent
from cantle_ai.model import StreamOptions
from cantle_ai.sse import ServerSentEvent, SseError, SseParser
from cantle_ai.transport.port import HttpRequest, HttpResponse, Transport, TransportError

__all__ = ["AnswerReader", "Framer", "stream_answer"]

_BEGINNING = 1024
"""Bytes of a body that are kept to be quoted, should it turn out to be something else."""
_LONGEST_ANSWER = 64 * 1024 * 1024
"""Of one that is not streamed."""


class Framer(Protocol):
    """Cuts a body into events."""

    def feed(self, block: bytes) -> Sequence[ServerSentEvent]:
        """The events that end in `block`. Raises :class:`cantle_ai.sse.SseError` for what is no frame."""
        ...

    def finish(self) -> Sequence[ServerSentEvent]:
        """What stands at the end of the body."""
        ...


class AnswerReader(Protocol):
    """Puts one answer together. All of it may raise :class:`ProviderError`, whose text may hold secrets."""

    @property
    def done(self) -> bool:
        """Whether the endpoint has said its last word. Nothing is read after that."""
        ...

    @property
    def complete(self) -> bool:
        """Whether nothing is missing, so that a connection that breaks now has done no harm."""
        ...

    @property
    def empty(self) -> bool:
        """Whether nothing of an answer has come. At the end such a body is taken for something else."""
        ...

    def event(self, event: ServerSentEvent) -> None:
        """Take one event. Raises ValueError for data that are not what the API speaks."""
        ...

    def whole(self, body: bytes) -> None:
        """Take an answer that was not streamed. Raises ValueError like :meth:`event`."""
        ...

    def end(self) -> None:
        """Everything has been taken: finish the builder, or raise for an answer that was cut off."""
        ...


_proof: type[Framer] = SseParser


async def stream_answer(
    request: HttpRequest,
    reader: AnswerReader,
    builder: AnswerBuilder,
    *,
    options: StreamOptions,
    transport: Transport,
    signal: AbortSignal,
    framer: Framer | None = None,
    media_type: str = "text/event-stream",
) -> AsyncGenerator[Sequence[AssistantMessageEvent], None]:
    """Send the request and give the builder's events as `reader` makes them.

    `framer` cuts a body of the `media_type` into events; server-sent events by default.
    Raises :class:`ProviderError`, whose text holds none of the request's keys.
    """
    if options.on_request is not None:
        request = await _inspected(request, options.on_request)
    response = await transport.send(request, signal=signal)
    try:
        if options.on_response is not None:
            await _shown(options.on_response(response))
        if not 200 <= response.status < 300:
            from cantle_ai.apis.http_errors import error_from_response, secrets_of

            raise await error_from_response(response, secrets_of(request.headers))
        yield builder.take()
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        body = _Body(response, framer, request.headers, announced=kind == media_type)
        if kind == "application/json":
            with body.understood():
                reader.whole(await body.all())
        else:
            async for events in body.events(reader):
                if options.on_event is not None:
                    for event in events:
                        await _shown(options.on_event(event))
                with body.understood():
                    _read(reader, events)
                yield builder.take()
                if reader.done:
                    break
        with body.understood():
            if reader.empty:
                raise body.unexpected()
            reader.end()
        response.release()
        yield builder.take()
    finally:
        await response.aclose()


def _read(reader: AnswerReader, events: Sequence[ServerSentEvent]) -> None:
    for event in events:
        reader.event(event)
        if reader.done:
            break


class _Body:
    """The body of one answer, and what is said about it when it is not understood."""

    def __init__(
        self, response: HttpResponse, framer: Framer | None, asked_with: Mapping[str, str], *, announced: bool
    ) -> None:
        """`asked_with` are the request's headers, which hold keys; `announced` says that the body called itself a stream."""
        self._response = response
        self._framer = SseParser() if framer is None else framer
        self._asked_with = asked_with
        self._announced = announced
        self._beginning = b""

    async def all(self) -> bytes:
        self._announced = False
        body = await self._response.read(_LONGEST_ANSWER)
        self._beginning = body[:_BEGINNING]
        return body

    async def events(self, reader: AnswerReader) -> AsyncIterator[Sequence[ServerSentEvent]]:
        """The events, in batches of what came at once."""
        framer = self._framer
        try:
            async for block in self._response.chunks:
                if len(self._beginning) < _BEGINNING:
                    self._beginning += block[:_BEGINNING]
                yield framer.feed(block)
            yield framer.finish()
        except SseError as error:
            raise ProviderError(f"The answer is not a stream of events: {error}", kind="protocol") from None
        except TransportError as error:
            # The last words of a whole answer, which servers cut off or never say: it is whole all the same.
            if not reader.complete or error.kind not in ("network", "timeout"):
                raise

    def unexpected(self) -> ProviderError:
        return self._quoting(b"" if self._announced else self._beginning)

    @contextmanager
    def understood(self) -> Iterator[None]:
        """Around the reader: what it does not understand is quoted, and what it says repeats no key."""
        try:
            yield
        except ProviderError as error:
            from cantle_ai.apis.http_errors import redact, secrets_of

            redact(error, secrets_of(self._asked_with))
            raise
        except ValueError:
            raise self._quoting(self._beginning) from None

    def _quoting(self, beginning: bytes) -> ProviderError:
        from cantle_ai.apis.http_errors import secrets_of, unexpected_body

        return unexpected_body(beginning, secrets_of(self._asked_with))


async def _inspected(
    request: HttpRequest, hook: Callable[[HttpRequest], HttpRequest | None | Awaitable[HttpRequest | None]]
) -> HttpRequest:
    changed = hook(request)
    if isinstance(changed, Awaitable):
        changed = await changed
    return request if changed is None else changed


async def _shown(result: Awaitable[None] | None) -> None:
    if result is not None:
        await result
