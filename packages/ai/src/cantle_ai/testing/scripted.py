"""A model that answers from a script, as a true stream of deltas, without network, key or clock.

    scripted = ScriptedModel(["Hello.", {"content": [{"type": "toolCall", "name": "read", "arguments": {}}]}])
    stream = scripted.stream(scripted.model, Context(messages=[UserMessage("hi")]), StreamOptions())
    message = await stream.result()

One seed gives the same deltas, ids and times on every machine.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from functools import partial
from itertools import islice
from random import Random
from typing import Protocol, TypeAlias, cast

from cantle_ai.abort import AbortSignal
from cantle_ai.builder import AnswerBuilder
from cantle_ai.codec import JsonObject
from cantle_ai.content import ToolCall
from cantle_ai.context import Context
from cantle_ai.errors import ProviderError
from cantle_ai.events import AssistantMessageEvent
from cantle_ai.messages import Message, ToolResultMessage
from cantle_ai.model import Model, Provider, StreamOptions
from cantle_ai.stream import AssistantMessageStream, StreamFunction
from cantle_ai.testing.estimate import PromptCache, prompt_pieces, tokens
from cantle_ai.testing.playback import call_id, deltas, played, seeded
from cantle_ai.testing.response import (
    Answer,
    Block,
    Chunk,
    Count,
    Failure,
    Response,
    TextBlock,
    ThinkingBlock,
    check_chunk,
    response_of,
    responses_of,
)
from cantle_ai.testing.script import LastMessage, Script
from cantle_ai.usage import Price, Usage

__all__ = ["FREE", "AnswerFunction", "Registry", "ScriptedModel", "StepClock", "scripted_model"]

AnswerFunction: TypeAlias = Callable[[Context], Answer | Awaitable[Answer]]
"""Makes the response to one request from its context."""

FREE = Price(input=0, output=0, cache_read=0, cache_write=0)


class StepClock:
    """Unix milliseconds that go on by a fixed step at each look."""

    def __init__(self, start: int = 1_700_000_000_000, step: int = 1000) -> None:
        self._next = start
        self._step = step

    def __call__(self) -> int:
        now, self._next = self._next, self._next + self._step
        return now


class Registry(Protocol):
    """The part of :class:`cantle_ai.models.Models` that a scripted model needs."""

    def add_provider(self, provider: Provider, models: Sequence[Model] = ...) -> None: ...
    def register_stream(self, provider_id: str, stream_function: StreamFunction) -> None: ...


def scripted_model(id: str = "scripted", *, provider: str = "scripted", price: Price = FREE) -> Model:
    """The row of a scripted model. It has every thinking level, takes images and costs nothing."""
    return Model(
        id=id,
        provider=provider,
        api="scripted",
        base_url="",
        name="Scripted model",
        reasoning=True,
        thinking_levels={"xhigh": "xhigh", "max": "max"},
        input=("text", "image"),
        price=price,
    )


class ScriptedModel:
    """Plays a queue of responses. `model` is its row, `requests` the contexts it was asked with.

    An answer function stands for one response; a function alone in place of the list answers every request.
    When no response is left, or none fits, the answer is an error that says so.
    """

    def __init__(
        self,
        responses: Iterable[Answer | AnswerFunction] | AnswerFunction = (),
        *,
        seed: int = 0,
        chunk: Chunk = (1, 16),
        rate: float | None = None,
        batch: int = 1,
        model: Model | None = None,
        clock: Callable[[], int] | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`chunk` is the characters of a delta, `rate` deltas per second (None: as fast as they are read).

        `batch` deltas are handed to the stream at a time. `clock` gives Unix milliseconds (default: a
        :class:`StepClock`), `sleep` waits for `rate` and `delayMs`. Raises ValueError for what is no response.
        """
        check_chunk(chunk)
        self.model = scripted_model() if model is None else model
        self.requests: list[Context] = []
        self._always = responses if callable(responses) else None
        self._script: Script[AnswerFunction] = Script(() if callable(responses) else responses_of(responses))
        self._seed = seed
        self._chunk = chunk
        self._rate = rate
        self._batch = batch
        self._clock = StepClock() if clock is None else clock
        self._sleep = sleep
        self._cache = PromptCache()

    def extend(self, responses: Iterable[Answer | AnswerFunction]) -> None:
        """Add responses at the end of the script."""
        self._script.extend(responses_of(responses))

    @property
    def left(self) -> int:
        """How many entries of the script are not used up."""
        return len(self._script)

    def register(self, models: Registry) -> Model:
        """Make this model's provider known to `models`, and serve it from here. Returns the model's row."""
        row = self.model
        provider = Provider(id=row.provider, name="Scripted", base_url="", api=row.api, key_optional=True)
        models.add_provider(provider, [row])
        models.register_stream(row.provider, self.stream)
        return row

    def stream(self, model: Model, context: Context, options: StreamOptions) -> AssistantMessageStream:
        """The answer to one request: a :data:`StreamFunction`. It counts as asked when it is first read."""
        return played(model, options, partial(self._answer, context, options), clock=self._clock)

    async def _answer(
        self, context: Context, options: StreamOptions, builder: AnswerBuilder, signal: AbortSignal
    ) -> AsyncIterator[Sequence[AssistantMessageEvent]]:
        asked = Context(context.system_prompt, tuple(context.messages), tuple(context.tools))
        self.requests.append(asked)
        random = seeded(self._seed, len(self.requests), len(asked.messages))
        response = await self._choose(asked)
        if response.delay_ms:
            await self._sleep(response.delay_ms / 1000)
        if response.refusal is not None:
            raise _error(response.refusal)
        playing = _Playing(response, self._counted(response, asked, options), builder, random)
        yield builder.take()
        rate = self._rate if response.rate is None else response.rate
        steps = playing.steps(self._chunk)
        try:
            while played := sum(1 for _ in islice(steps, self._batch)):
                if rate is not None:
                    await self._sleep(played / rate)
                yield builder.take()
            yield builder.take()
            await _fault(response, signal)
            playing.finish()
        finally:
            playing.count()
        yield builder.take()

    async def _choose(self, context: Context) -> Response:
        entry = self._always or self._script.take(last_message(context.messages))
        if entry is None:
            raise ProviderError(self._nothing_left(len(context.messages)), kind="protocol")
        if isinstance(entry, Response):
            response = entry
        else:
            made = entry(context)
            response = response_of(await made if inspect.isawaitable(made) else made)
        if response.http is not None:
            raise ProviderError(
                "A response with `http` is for the strict server: python -m cantle_ai.testing.server SCRIPT",
                kind="protocol",
            )
        return response

    def _nothing_left(self, messages: int) -> str:
        asked = f"request {len(self.requests)}, which ends with message {messages}"
        if not self.left:
            return f"The script has no response left for {asked}: add one to it"
        return (
            f"None of the {self.left} responses left in the script fits {asked}: their `when` does not hold"
        )

    def _counted(self, response: Response, context: Context, options: StreamOptions) -> Count:
        session = options.session_id if options.cache_retention != "none" else None
        estimate = self._cache.count(prompt_pieces(context), session)
        return estimate if response.usage is None else response.usage


class _Playing:
    """One response on its way: tells the builder, and counts what was said."""

    def __init__(self, response: Response, sent: Count, builder: AnswerBuilder, random: Random) -> None:
        self._response = response
        self._sent = sent
        self._builder = builder
        self._random = random
        self._said = 0
        self._thought = 0
        self._whole = False
        self.count()

    def steps(self, chunk: Chunk) -> Iterable[None]:
        """Tell the builder one delta, or one empty block, at each step."""
        open_block, place = -1, -1
        for index, block, piece in deltas(self._response, chunk, self._random):
            if index != place:
                self._builder.end(open_block)
                open_block, place = self._open(block), index
            self._add(block, open_block, piece)
            yield
        self._builder.end(open_block)

    def finish(self) -> None:
        response, builder = self._response, self._builder
        self._whole = True
        self.count()
        if response.deferred is not None:
            builder.message.deferred = cast("JsonObject", response.deferred)
        builder.done(response.reason, raw=response.raw_stop_reason)

    def count(self) -> None:
        """Bring the usage up to what has been sent and said."""
        if self._builder.finished:
            return
        sent, output, reasoning = self._sent, tokens(self._said + self._thought), tokens(self._thought)
        if self._whole and self._response.usage is not None:
            output, reasoning = sent.output, sent.reasoning or 0
        total = sent.input + sent.cache_read + sent.cache_write + output
        self._builder.usage(
            Usage(
                sent.input,
                output,
                sent.cache_read,
                sent.cache_write,
                reasoning=reasoning or None,
                total_tokens=total,
            )
        )

    def _open(self, block: Block) -> int:
        match block:
            case TextBlock():
                return self._builder.text_start(signature=block.signature)
            case ThinkingBlock():
                return self._builder.thinking_start(signature=block.signature, redacted=block.redacted)
            case call:
                index = self._builder.tool_call_start(call_id(call, self._random), call.name)
                if call.signature is not None:
                    cast("ToolCall", self._builder.message.content[index]).thought_signature = call.signature
                return index

    def _add(self, block: Block, index: int, piece: str) -> None:
        if not piece:
            return
        match block:
            case TextBlock():
                self._builder.text_delta(index, piece)
            case ThinkingBlock():
                self._builder.thinking_delta(index, piece)
                self._thought += len(piece)
                return
            case _:
                self._builder.tool_call_delta(index, piece)
        self._said += len(piece)


def last_message(messages: Sequence[Message]) -> LastMessage | None:
    """What a `when` looks at, of a model's messages."""
    if not messages:
        return None
    message = messages[-1]
    if isinstance(message, ToolResultMessage):
        return LastMessage(
            role=message.role, text=message.text, tool=message.tool_name, is_error=message.is_error
        )
    return LastMessage(role=message.role, text=message.text)


async def _fault(response: Response, signal: AbortSignal) -> None:
    if response.stall:
        await signal.wait()
    if response.cut:
        raise ProviderError("The connection was closed before the answer was complete", kind="network")
    if response.error is not None:
        raise _error(response.error)


def _error(failure: Failure) -> ProviderError:
    wait = failure.retry_after_ms
    return ProviderError(
        failure.message,
        status=failure.status,
        code=failure.code,
        retry_after=None if wait is None else wait / 1000,
        kind=failure.kind,
    )
