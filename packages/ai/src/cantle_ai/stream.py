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
from cantle_ai.errors import CantleAIError, ProviderError
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
        try:
            while answer.final is None:
                await answer.next_batch()
            await answer.closed()
        except asyncio.CancelledError:
            answer.consumer_left()
            raise
        return answer.final

    async def aclose(self) -> None:
        """Give the answer up if it has not ended. Returns when its connection is closed."""
        self._answer.abort.abort(_ABORTED)
        await self._answer.closed()

    def __del__(self) -> None:
        self._answer.forgotten()


class StreamReader:
    """One reader's place in a stream: `async for`, or `anext`.

    Dropped when it is left, closed or forgotten, and when its task is cancelled while it waits for an event.
    A reader whose task waits for the same answer elsewhere, has ended, or has not begun, holds nobody back:
    what it has not taken is kept for it.
    """

    __slots__ = (
        "__weakref__",
        "_answer",
        "_backlog",
        "_events",
        "_number",
        "_place",
        "_stream",
        "live",
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
        self.task: asyncio.Task[object] | None = None
        answer.readers.add(self)

    def __aiter__(self) -> StreamReader:
        return self

    async def __anext__(self) -> AssistantMessageEvent:
        place, events = self._place, self._events
        if place >= len(events):
            await self._more()
            place, events = 0, self._events
        self._place = place + 1
        if place + 1 == len(events):
            self._answer.reconsider()
        return events[place]

    async def aclose(self) -> None:
        """Leave the stream. The answer goes on for whoever else wants it."""
        self._events, self._place, self._backlog = (), 0, []
        self._leave()

    def __del__(self) -> None:
        if self.live:
            self._read_by(None)
            self._answer.reader_forgotten()

    @property
    def idle(self) -> bool:
        """Whether nobody is there who could take its events: no task, or one that is over."""
        return self.task is None or self.task.done()

    @property
    def behind(self) -> bool:
        """Whether it has events left to take."""
        return self._place < len(self._events) or self._number != self._answer.batch_number

    def keep(self) -> None:
        """Save what this reader has not begun of the batch that is about to be replaced."""
        answer = self._answer
        if self._number != answer.batch_number:
            self._backlog.extend(answer.batch)
            self._number = answer.batch_number

    async def _more(self) -> None:
        """Get events to take. Raises StopAsyncIteration when there are none to come."""
        answer = self._answer
        self._read_by(asyncio.current_task())
        self._events, self._place = (), 0
        while not self._events:
            if not self.live:
                raise StopAsyncIteration
            if self._backlog:
                self._events, self._backlog = self._backlog, []
            elif self._number != answer.batch_number:
                self._events, self._number = answer.batch, answer.batch_number
            elif answer.final is not None:
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

    def _read_by(self, task: asyncio.Task[object] | None) -> None:
        if task is self.task:
            return
        if self.task is not None:
            self.task.remove_done_callback(self._answer.reader_idle)
        if task is not None:
            task.add_done_callback(self._answer.reader_idle)
        self.task = task

    def _leave(self) -> None:
        if self.live:
            self.live = False
            self._read_by(None)
            self._answer.readers.discard(self)
            self._answer.reconsider()


class _Answer:
    """The state behind a stream and its readers, and the task that runs the source.

    It knows neither, so that dropping the last of them can give the answer up.
    """

    def __init__(self, source: EventSource, builder: AnswerBuilder, signal: AbortSignal | None) -> None:
        self.source = source
        self.builder = builder
        self.abort = AbortController(signal)
        self.readers: weakref.WeakSet[StreamReader] = weakref.WeakSet()
        self.batch: Sequence[AssistantMessageEvent] = ()
        self.batch_number = 0
        self.final: AssistantMessage | None = None
        self._waiting: dict[asyncio.Future[None], asyncio.Task[object] | None] = {}
        self._wanted = asyncio.Event()
        self._failure: BaseException | None = None
        self._pump: asyncio.Task[None] | None = None
        self._closing = False
        self.abort.signal.add_callback(self._on_abort)

    def so_far(self) -> Sequence[AssistantMessageEvent]:
        """What a reader that joins now starts with."""
        message = self.builder.message
        if self.final is None:
            return (Start(message),) if self.batch_number else ()
        return (Start(message), _end_of(message))

    async def next_batch(self) -> None:
        """Wait until something has arrived after now: events, or the end."""
        loop = asyncio.get_running_loop()
        if self._pump is None:
            self._pump = loop.create_task(self._run(), name="cantle-answer")
            self._pump.add_done_callback(self._finish)
        future: asyncio.Future[None] = loop.create_future()
        self._waiting[future] = asyncio.current_task()
        self.reconsider()
        try:
            await future
        finally:
            self._waiting.pop(future, None)

    def reconsider(self) -> None:
        """Let the source go on if somebody waits and no reader that can take its events has some left."""
        if not self._waiting:
            return
        waiting = set(self._waiting.values())
        for reader in self.readers:
            if reader.behind and not reader.idle and reader.task not in waiting:
                return
        self._wanted.set()

    def consumer_left(self) -> None:
        """Somebody who waited was cancelled: give the answer up unless others still want it."""
        leaving = asyncio.current_task()
        readers = [r for r in self.readers if r.task is None or not (r.idle or r.task is leaving)]
        if not self._waiting and not readers:
            self.abort.abort(_ABORTED)

    def reader_idle(self, task: asyncio.Task[object]) -> None:
        """A reader's task has ended; it may have left the reader behind."""
        self.reconsider()

    def reader_forgotten(self) -> None:
        """A reader was collected, in whatever thread and at whatever moment."""
        self._soon(self.reconsider)

    def forgotten(self) -> None:
        """Nobody can ask for the answer any more."""
        if self._pump is None or self._pump.done():
            self.abort.detach()
        else:
            self._soon(self.abort.abort)

    def _soon(self, call: Callable[[], None]) -> None:
        if self._pump is not None and not (loop := self._pump.get_loop()).is_closed():
            loop.call_soon_threadsafe(call)

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
                    if self.final is not None or self.abort.signal.aborted:
                        break
                    await self._wanted.wait()
        except asyncio.CancelledError:
            if not self.abort.signal.aborted:
                self._closing = True
                self.abort.abort(_ABORTED)
                raise
        except Exception as error:  # noqa: BLE001 - the one place where any failure of a source becomes an event
            self._failure = error
        finally:
            self._closing = True
            close = getattr(batches, "aclose", None)
            if close is not None:
                await close()

    def _finish(self, pump: asyncio.Task[None] | None) -> None:
        """The source is done: make sure that the answer has an end, whatever happened."""
        self.abort.detach()
        raised = None if pump is None or pump.cancelled() else pump.exception()
        failure, self._failure = self._failure or raised, None
        if self.final is not None:
            return
        reason = self.abort.signal.reason
        text = _CUT if failure is None else _told(failure)
        details = failure.details() if isinstance(failure, ProviderError) and reason is None else None
        self.builder.fail(reason or text, aborted=reason is not None, details=details)
        self._publish(self._last_events())

    def _last_events(self) -> Sequence[AssistantMessageEvent]:
        """What the builder has left, with a start and an end even if the source took those and kept them."""
        events, message = self.builder.take(), self.builder.message
        if self.batch_number == 0 and not (events and isinstance(events[0], Start)):
            events.insert(0, Start(message))
        if not (events and isinstance(events[-1], Done | Error)):
            events.append(_end_of(message))
        return events

    def _publish(self, batch: Sequence[AssistantMessageEvent]) -> None:
        for reader in list(self.readers):
            reader.keep()
        self.batch = batch
        self.batch_number += 1
        self._wanted.clear()
        if batch and isinstance(batch[-1], Done | Error):
            self.final = self.builder.message
        waiting, self._waiting = self._waiting, {}
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def _on_abort(self) -> None:
        if self._pump is None:
            self._finish(None)
        elif self.final is None and not self._closing and not self._pump.cancelling():
            self._pump.cancel()  # Once: a second cancellation would cut the source's clean-up short.


def _told(failure: BaseException) -> str:
    """A failure as a text. One that nobody worded for a person, such as `KeyError('x')`, is said with its kind."""
    text = str(failure)
    if text and isinstance(failure, CantleAIError | OSError):
        return text
    return f"{type(failure).__name__}: {text}" if text else type(failure).__name__


def _end_of(message: AssistantMessage) -> Done | Error:
    reason = message.stop_reason
    return Error(reason, message) if message.failed else Done(reason, message)
