"""What long conversations and long answers cost: in step with their length, over every API. Counted, not timed."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from random import Random
from types import FrameType

import pytest

from cantle_ai.abort import AbortSignal
from cantle_ai.content import TextContent, ThinkingContent, ToolCall
from cantle_ai.context import Context
from cantle_ai.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from cantle_ai.model import Model, StreamOptions
from cantle_ai.models import Models
from cantle_ai.testing.response import response_of
from cantle_ai.transport.port import HttpRequest, HttpResponse, TransportError
from packages.ai.tests.conformance.column import Column, columns
from packages.ai.tests.conformance.lab import PIXEL, READ
from packages.ai.tests.fuzz.replayed import Replayed, runtime
from tests.support.samples import samples

pytestmark = pytest.mark.timeout(600)

COLUMNS = [pytest.param(column, id=column.api) for column in columns()]
MESSAGES = samples(10_000, 400)
DELTAS = samples(40_000, 600)


class Silent:
    """A transport that keeps the size of what it is to send, and answers nothing."""

    size = 0

    async def send(self, request: HttpRequest, *, signal: AbortSignal | None = None) -> HttpResponse:
        self.size = len(request.body)
        raise TransportError("not answered", kind="network")

    async def aclose(self) -> None:
        """Nothing is held."""


def conversation(column: Column, count: int) -> list[Message]:
    """So many messages: prompts, some with an image; answers, own and others', with two calls; their results."""
    random = Random(column.api)
    messages: list[Message] = []
    for turn in range(count // 4):
        own = random.random() < 0.7
        ids = [f"call{turn:04}{letter}" for letter in "ab"]
        thought = ThinkingContent(f"thought {turn}", signature="c2lnbmF0dXJl" if own else None)
        answer = AssistantMessage(
            [thought, TextContent(f"answer {turn}"), *(ToolCall(id, "read", {"path": id}) for id in ids)],
            *((column.api, "p", "m-1") if own else ("openai-completions", "q", "other")),
            stop_reason="toolUse",
            timestamp=turn,
        )
        seen = [PIXEL] if turn % 50 == 0 else []
        messages.append(UserMessage([TextContent(f"prompt {turn}"), *seen], timestamp=turn))
        messages.append(answer)
        messages += [ToolResultMessage(id, "read", [TextContent("found")], timestamp=turn) for id in ids]
    return messages


async def calls_of(work: Callable[[], Awaitable[object]]) -> int:
    """How many functions the work calls, those of C included."""
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        if event in ("call", "c_call"):
            count += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        await work()
    finally:
        sys.setprofile(before)
    return count


async def memory_of(work: Callable[[], Awaitable[object]]) -> int:
    """How many bytes more than before the work held at its height."""
    gc.collect()
    tracemalloc.start()
    try:
        await work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


async def ask(models: Models, model: Model, messages: list[Message]) -> AssistantMessage:
    options = StreamOptions(session_id="s", thinking="low")
    return await models.complete(model, Context("Be brief.", messages, [READ]), options)


def in_step(figures: Mapping[int, int]) -> bool:
    """Whether twice the size costs twice as much at most, a little aside."""
    small, large = sorted(figures)
    assert large == 2 * small
    return figures[large] < 2.2 * figures[small]


@pytest.mark.parametrize("column", COLUMNS)
async def test_requests_cost_in_step_with_the_history(column: Column) -> None:
    first, again, memory, sizes = {}, {}, {}, {}
    for count in (MESSAGES // 2, MESSAGES):
        transport = Silent()
        models, model = runtime(column, transport)
        messages = conversation(column, count)
        await ask(models, model, messages[:4])
        asking = partial(ask, models, model, messages)
        first[count] = await calls_of(asking)
        sizes[count] = transport.size
        messages.append(UserMessage("And now?", timestamp=0))
        again[count] = await calls_of(asking)
        assert transport.size > sizes[count]
        for message in messages:
            message.wire.clear()
        memory[count] = await memory_of(asking)
    assert in_step(first) and in_step(again) and in_step(memory), (first, again, memory)
    # What was sent before is not worked out again.
    assert again[MESSAGES] < 0.6 * first[MESSAGES]
    assert memory[MESSAGES] < 12 * sizes[MESSAGES]


@pytest.mark.parametrize("kind", ["text", "thinking", "arguments"])
@pytest.mark.parametrize("column", COLUMNS)
async def test_answers_cost_in_step_with_their_length(column: Column, kind: str) -> None:
    calls = {}
    for count in (DELTAS // 2, DELTAS):
        said = "word é 🎉 " * count  # in pieces of 1 to 16 characters
        block = {
            "text": {"type": "text", "text": said},
            "thinking": {"type": "thinking", "thinking": said, "thinkingSignature": "c2ln"},
            "arguments": {"type": "toolCall", "name": "read", "arguments": {"path": said}},
        }[kind]
        models, model = runtime(column, Replayed(column.api, [response_of({"content": [block]})]))
        prompt = Context("", [UserMessage("Hi", timestamp=0)], [READ])
        stream = models.stream(model, prompt, StreamOptions(thinking="low"))

        async def read(stream=stream) -> None:
            async for _ in stream:
                pass

        calls[count] = await calls_of(read)
        assert (await stream.result()).error_message is None
    assert in_step(calls), calls
