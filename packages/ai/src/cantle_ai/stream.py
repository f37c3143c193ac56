"""An answer as it arrives: read its events, await its message, or both.

    stream = models.stream(model, context)
    async for event in stream: ...
    message = await stream.result()

Iterating and `result()` are two views of one stream. A reader that joins before the first event sees
all of them; one that joins later gets a `start` with the message so far, then what follows. The source
is asked for more only when every live reader has taken what there is, so the slowest sets the pace;
leaving the loop drops that reader. Without readers, `result()` drains the stream.

No exception of the request, the model or the runtime leaves a stream: failures are an `error` event and
a final message that says what happened and keeps what had arrived.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TypeAlias

from cantle_ai.abort import AbortController, AbortSignal
from cantle_ai.builder import AnswerBuilder
from cantle_ai.context import Context
from cantle_ai.errors import ProviderError
from cantle_ai.events import AssistantMessageEvent, Done, Error, Start
from cantle_ai.messages import AssistantMessage
from cantle_ai.model import Model, StreamOptions

__all__ = ["AssistantMessageStream", "EventSource", "StreamFunction", "StreamReader"]

EventSource: TypeAlias = Callable[
    [AnswerBuilder, AbortSignal], AsyncIterator[Sequence[AssistantMessageEvent]]
]
"""Makes the events of one answer, in batches of what is at hand, with the builder and signal it is given.

It raises for a failure; the text of the exception becomes the message's `error_message`, and the facts of a
:class:`cantle_ai.errors.ProviderError` its `errorDetails`. When the signal is aborted it is cancelled where it
waits. In neither case does it have to finish the builder."""

StreamFunction: TypeAlias = "Callable[[Model, Context, StreamOptions], AssistantMessageStream]"
"""Asks a model for one answer: the one seam between an agent and the models. Never raises; failures are events."""

_ABORTED = "Operation aborted"
_CUT = "The answer ended before it was complete"


class AssistantMessageStream:
    """One answer on its way. Made by :class:`cantle_ai.models.Models`, or from any :data:`EventSource`.

    Nothing is requested before the first reader, or `result()`. A stream that is forgotten gives its answer
    up and closes its connection. Not thread-safe: one event loop.
    """

    __slots__ = ("__weakref__", "_answer")

    def __init__(
        self, source: EventSource, builder: AnswerBuilder, *, signal: AbortSignal | None = None
    ) -> None:
        """Aborting `signal` ends the stream with an `error` event whose reason is `aborted`."""
        self._answer = _Answer(source, builder, signal)

    @property
    def partial(self) -> AssistantMessage:
        """The message as far as it has arrived. The final one once the stream has ended."""
        return self._answer.builder.message

    @property
    def ended(self) -> bool:
        return self._answer.final is not None

    def __aiter__(self) -> StreamReader:
        return StreamReader(self, self._answer)

    async def result(self) -> AssistantMessage:
        """The final message; its `stop_reason` says how it went. Raises nothing of its own.

        A task that awaits this while it is itself a reader gets the rest of the events afterwards. When the
        awaiting task is cancelled and nobody else reads, the answer is given up: it ends as `aborted`.
        """
        answer = self._answer
        parked = [reader for reader in answer.readers if reader.task is asyncio.current_task()]
        for reader in parked:
            reader.parked = True
        try:
            while answer.final is None:
                await answer.next_batch()
            await answer.closed()
        except asyncio.CancelledError:
            answer.consumer_left()
            raise
        finally:
            for reader in parked:
                reader.parked = False
        return answer.final

    async def aclose(self) -> None:
        """Give the answer up if it has not ended. Returns when its connection is closed."""
        self._answer.abort.abort(_ABORTED)
        await self._answer.closed()

    def __del__(self) -> None:
        self._answer.forgotten()


class StreamReader:
    """One reader's place in a stream: `async for`, or `anext`. Dropped when it is left, closed or forgotten."""

    __slots__ = (
        "__weakref__",
        "_answer",
        "_backlog",
        "_events",
        "_number",
        "_place",
        "_stream",
        "live",
        "parked",
        "task",
    )

    def __init__(self, stream: AssistantMessageStream, answer: _Answer) -> None:
        self._stream = stream  # keeps the answer from being given up while it is read
        self._answer = answer
        self._backlog: list[AssistantMessageEvent] = []
        self._events: Sequence[AssistantMessageEvent] = answer.so_far()
        self._place = 0
        self._number = answer.batch_number
        self.live = True
        self.parked = False
        self.task: asyncio.Task[object] | None = None
        answer.readers.add(self)

    def __aiter__(self) -> StreamReader:
        return self

    async def __anext__(self) -> AssistantMessageEvent:
        place = self._place
        if place < len(self._events):
            self._place = place + 1
            return self._events[place]
        return await self._more()

    async def aclose(self) -> None:
        """Leave the stream. The answer goes on for whoever else wants it."""
        self._leave()

    def __del__(self) -> None:
        self._leave()

    @property
    def behind(self) -> bool:
        """Whether it has events left to take, and so holds the stream back."""
        if not self.live or self.parked:
            return False
        return self._place < len(self._events) or self._number != self._answer.batch_number

    def keep(self) -> None:
        """Save what this reader has not begun of the batch that is about to be replaced."""
        answer = self._answer
        if self._number != answer.batch_number:
            self._backlog.extend(answer.batch)
            self._number = answer.batch_number

    async def _more(self) -> AssistantMessageEvent:
        answer = self._answer
        self.task = asyncio.current_task()
        self._events, self._place = (), 0
        while not self._events:
            if self._backlog:
                self._events, self._backlog = self._backlog, []
            elif self._number != answer.batch_number:
                self._events, self._number = answer.batch, answer.batch_number
            elif answer.final is not None or not self.live:
                self._leave()
                await answer.closed()
                raise StopAsyncIteration
            else:
                try:
                    await answer.next_batch()
                except asyncio.CancelledError:
                    self._leave()
                    answer.consumer_left()
                    raise
        self._place = 1
        return self._events[0]

    def _leave(self) -> None:
        if self.live:
            self.live = False
            self._answer.readers.discard(self)
            self._answer.reconsider()


class _Answer:
    """The state behind a stream and its readers, and the task that runs the source.

    It knows neither, so that dropping the last of them can give the answer up.
    """

    def __init__(self, source: EventSource, builder: AnswerBuilder, signal: AbortSignal | None) -> None:
        self.source = source
        self.builder = builder
        self.abort = AbortController()
        self.readers: weakref.WeakSet[StreamReader] = weakref.WeakSet()
        self.batch: Sequence[AssistantMessageEvent] = ()
        self.batch_number = 0
        self.final: AssistantMessage | None = None
        self._waiting: list[asyncio.Future[None]] = []
        self._wanted = asyncio.Event()
        self._failure: BaseException | None = None
        self._pump: asyncio.Task[None] | None = None
        self.abort.signal.add_callback(self._on_abort)
        self._unlink = _nothing
        if signal is not None:
            self._unlink = signal.add_callback(lambda: self.abort.abort(signal.reason or _ABORTED))

    def so_far(self) -> Sequence[AssistantMessageEvent]:
        """What a reader that joins now starts with."""
        message = self.builder.message
        if self.final is None:
            return (Start(message),) if self.batch_number else ()
        if message.stop_reason in ("error", "aborted"):
            return (Start(message), Error(message.stop_reason, message))
        return (Start(message), Done(message.stop_reason, message))

    async def next_batch(self) -> None:
        """Wait until something has arrived after now: events, or the end."""
        loop = asyncio.get_running_loop()
        if self._pump is None:
            self._pump = loop.create_task(self._run(), name="cantle-answer")
            self._pump.add_done_callback(self._finish)
        future: asyncio.Future[None] = loop.create_future()
        self._waiting.append(future)
        self.reconsider()
        try:
            await future
        finally:
            if future in self._waiting:
                self._waiting.remove(future)

    def reconsider(self) -> None:
        """Let the source go on if somebody waits and no reader is behind."""
        if self._waiting and not any(reader.behind for reader in self.readers):
            self._wanted.set()

    def consumer_left(self) -> None:
        """Somebody who waited was cancelled: give the answer up unless others still want it."""
        if not self._waiting and not self.readers:
            self.abort.abort(_ABORTED)

    def forgotten(self) -> None:
        """Nobody can ask for the answer any more."""
        pump = self._pump
        if pump is None or pump.done():
            self._unlink()
        elif not (loop := pump.get_loop()).is_closed():
            loop.call_soon_threadsafe(self.abort.abort, _ABORTED)

    async def closed(self) -> None:
        """Wait until the source has let go of its connection."""
        if self._pump is not None and not self._pump.done():
            await asyncio.wait([self._pump])

    async def _run(self) -> None:
        batches = self.source(self.builder, self.abort.signal)
        try:
            await self._wanted.wait()
            async for batch in batches:
                if batch:
                    self._publish(batch)
                    if self.final is not None:
                        break
                    await self._wanted.wait()
        except asyncio.CancelledError:
            if not self.abort.signal.aborted:
                self.abort.abort(_ABORTED)
                raise
        except Exception as error:  # noqa: BLE001 - the one place where any failure of a source becomes an event
            self._failure = error
        finally:
            close = getattr(batches, "aclose", None)
            if close is not None:
                await close()

    def _finish(self, pump: asyncio.Task[None] | None) -> None:
        """The source is done: make sure that the answer has an end, whatever happened."""
        self._unlink()
        if self.final is None:
            reason = self.abort.signal.reason
            if pump is not None and not pump.cancelled() and (error := pump.exception()) is not None:
                self._failure = error
            failure, self._failure = self._failure, None
            text = _CUT if failure is None else str(failure) or type(failure).__name__
            details = failure.details() if isinstance(failure, ProviderError) and reason is None else None
            self.builder.fail(reason or text, aborted=reason is not None, details=details)
            self._publish(self.builder.take())
            self.final = self.builder.message

    def _publish(self, batch: Sequence[AssistantMessageEvent]) -> None:
        for reader in list(self.readers):
            reader.keep()
        self.batch = batch
        self.batch_number += 1
        self._wanted.clear()
        if batch and isinstance(batch[-1], Done | Error):
            self.final = self.builder.message
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def _on_abort(self) -> None:
        if self._pump is None:
            self._finish(None)
        elif self.final is None:
            self._pump.cancel()


def _nothing() -> None:
    return None
