"""Sources of events that a test holds in its hand."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from cantle_ai.abort import AbortSignal
from cantle_ai.builder import AnswerBuilder
from cantle_ai.events import AssistantMessageEvent
from cantle_ai.stream import AssistantMessageStream, EventSource
from cantle_ai.testing.scripted import StepClock

Batches = AsyncIterator[Sequence[AssistantMessageEvent]]


def new_builder() -> AnswerBuilder:
    return AnswerBuilder(api="a", provider="p", model="m", clock=StepClock())


def stream_of(source: EventSource, signal: AbortSignal | None = None) -> AssistantMessageStream:
    return AssistantMessageStream(source, new_builder(), signal=signal)


class HandSource:
    """Says `texts`, one batch of one delta each, and remembers how far it was asked and whether it was closed."""

    def __init__(self, *texts: str, ending: Callable[[AnswerBuilder], Awaitable[None]] | None = None) -> None:
        self.texts = texts
        self.asked = 0
        self.started = asyncio.Event()
        self.closed = asyncio.Event()
        self.ending = ending

    async def __call__(self, builder: AnswerBuilder, signal: AbortSignal) -> Batches:
        self.started.set()
        try:
            index = builder.text_start()
            for text in self.texts:
                self.asked += 1
                builder.text_delta(index, text)
                yield builder.take()
            self.asked += 1
            if self.ending is not None:
                await self.ending(builder)
            builder.done("stop")
            yield builder.take()
        finally:
            await asyncio.sleep(0)  # Closing a connection takes a moment, which nothing may cut short.
            self.closed.set()

    def stream(self, signal: AbortSignal | None = None) -> AssistantMessageStream:
        return stream_of(self, signal)


async def forever(builder: AnswerBuilder) -> None:
    """An ending that never comes."""
    await asyncio.Event().wait()


async def settle(rounds: int = 20) -> None:
    """Let every task that can go on do so."""
    for _ in range(rounds):
        await asyncio.sleep(0)
