"""A model that answers with random legal streams and fails in random places; one seed, one behaviour.

Blocks of every kind, many or none, empty ones, interleaved ones, ones left open for the end to close;
characters that break careless code; arguments that are no JSON. The faults:

    error     the provider fails, sometimes with a status and a Retry-After
    cut       the events stop, and the answer with them
    bug       the source raises something that is nobody's plan
    stall     nothing comes any more, until the answer is aborted
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from functools import partial
from random import Random
from typing import Literal, TypeAlias

from cantle_ai.abort import AbortSignal
from cantle_ai.builder import AnswerBuilder
from cantle_ai.context import Context
from cantle_ai.errors import ProviderError
from cantle_ai.events import AssistantMessageEvent
from cantle_ai.messages import StopReason
from cantle_ai.model import Model, StreamOptions
from cantle_ai.stream import AssistantMessageStream
from cantle_ai.testing.playback import pieces, played, seeded
from cantle_ai.testing.scripted import StepClock, scripted_model
from cantle_ai.usage import Usage

__all__ = ["FAULTS", "ChaosModel", "Fault"]

Fault: TypeAlias = Literal["error", "cut", "bug", "stall"]

FAULTS: tuple[Fault, ...] = ("error", "cut", "bug", "stall")

_WORDS = (
    "plain", " ", "\n", "\r\n", "\r", "\t", "", "ünïcödé", "日本語", "👩‍👩‍👧", "e\u0301", "\u2028", "\u2029", "\x00", "\x1b[31m",
    "\ufeff", "\u202eright", "\ud800", "```py", "</thinking>", "data: [DONE]", '"quoted"', "\\", "{", "x" * 300,
)  # fmt: skip


class ChaosModel:
    """Answers any request with a random stream. `model` is its row, `requests` the contexts it was asked with."""

    def __init__(
        self,
        seed: int = 0,
        *,
        faults: Collection[Fault] = FAULTS,
        fault_rate: float = 0.4,
        calls: bool = True,
        model: Model | None = None,
    ) -> None:
        """`fault_rate` is the share of answers with one of `faults`; without `calls` no tool is called.

        With a stall among the faults, who reads must abort at some time.
        """
        self.model = scripted_model("chaos", provider="chaos") if model is None else model
        self.requests: list[Context] = []
        self._seed = seed
        self._faults = [fault for fault in FAULTS if fault in faults]
        self._fault_rate = fault_rate
        self._calls = calls
        self._clock = StepClock()

    def stream(self, model: Model, context: Context, options: StreamOptions) -> AssistantMessageStream:
        """The answer to one request: a :data:`cantle_ai.stream.StreamFunction`."""
        return played(model, options, partial(self._answer, context), clock=self._clock)

    async def _answer(
        self, context: Context, builder: AnswerBuilder, signal: AbortSignal
    ) -> AsyncIterator[Sequence[AssistantMessageEvent]]:
        self.requests.append(Context(context.system_prompt, tuple(context.messages), tuple(context.tools)))
        random = seeded(self._seed, len(self.requests))
        tools = [tool.name for tool in context.tools] or ["read", "no_such_tool"]
        blocks = _blocks(random, tools if self._calls else [])
        length = sum(len(block.pieces) + 1 for block in blocks)
        fault = random.choice(self._faults) if self._faults and random.random() < self._fault_rate else None
        place = random.randint(0, length) if fault else -1
        eagerness = random.choice((0.0, 0.5, 1.0))
        step = 0
        for step, _ in enumerate(_steps(blocks, builder, random)):
            if step == place:
                break
            if random.random() < 0.2:
                await asyncio.sleep(0)
            if random.random() >= eagerness:
                yield builder.take()
        if fault:
            if random.random() < 0.5:
                yield builder.take()
            await _fail(fault, signal, random)
            return
        builder.usage(_usage(random))
        builder.done(_reason(builder, random))
        yield builder.take()


class _Block:
    """A block that has yet to be said."""

    __slots__ = ("index", "kind", "name", "pieces")

    def __init__(self, kind: str, name: str, pieces: list[str]) -> None:
        self.kind = kind
        self.name = name
        self.pieces = pieces
        self.index = -1


def _blocks(random: Random, tools: Sequence[str]) -> list[_Block]:
    kinds = ("text", "thinking", "toolCall") if tools else ("text", "thinking")
    blocks: list[_Block] = []
    for _ in range(random.choice((0, 1, 1, 2, 3, 3, 5, 8, 40))):
        kind = random.choice(kinds)
        words = "".join(random.choices(_WORDS, k=random.choice((0, 1, 3, 10))))
        if kind == "toolCall":
            words = _arguments(words, random)
        chunk = random.choice((None, 1, (1, 9)))
        cut = list(pieces(words[:400], chunk, random))
        blocks.append(_Block(kind, random.choice(tools) if tools else "", cut))
    return blocks


def _arguments(words: str, random: Random) -> str:
    value = {"path": words, "n": random.randint(-5, 2**70), "deep": [{"a": [None, True, 0.5]}] * 2}
    text = json.dumps(value, ensure_ascii=random.random() < 0.5)
    match random.randrange(8):
        case 0:
            return text[: random.randrange(len(text))]
        case 1:
            return ""
        case 2:
            return f"[{text}]"
        case _:
            return text


def _steps(blocks: Sequence[_Block], builder: AnswerBuilder, random: Random) -> Iterator[None]:
    """Tell `builder` one thing at each step, with up to `width` blocks open at once."""
    width = random.choice((1, 1, 2, 5))
    waiting, open_blocks = list(reversed(blocks)), list[_Block]()
    while waiting or open_blocks:
        if waiting and (not open_blocks or (len(open_blocks) < width and random.random() < 0.4)):
            block = waiting.pop()
            _open(block, builder, random)
            open_blocks.append(block)
        else:
            place = random.randrange(len(open_blocks))
            block = open_blocks[place]
            if block.pieces:
                _say(block, builder)
            else:
                del open_blocks[place]
                if random.random() < 0.7:
                    builder.end(block.index)
        yield


def _open(block: _Block, builder: AnswerBuilder, random: Random) -> None:
    signature = random.choice((None, None, "signed"))
    match block.kind:
        case "text":
            block.index = builder.text_start(signature=signature)
        case "thinking":
            block.index = builder.thinking_start(signature=signature, redacted=random.random() < 0.1)
        case _:
            block.index = builder.tool_call_start(f"call_{random.getrandbits(48):012x}", block.name)
    block.pieces.reverse()


def _say(block: _Block, builder: AnswerBuilder) -> None:
    piece = block.pieces.pop()
    match block.kind:
        case "text":
            builder.text_delta(block.index, piece)
        case "thinking":
            builder.thinking_delta(block.index, piece)
        case _:
            builder.tool_call_delta(block.index, piece)


async def _fail(fault: Fault, signal: AbortSignal, random: Random) -> None:
    match fault:
        case "error":
            status = random.choice((None, 400, 429, 503))
            wait = random.choice((None, 0.0, 1.5))
            raise ProviderError("The chaos provider failed", status=status, retry_after=wait)
        case "bug":
            raise RuntimeError(random.choice(("", "The chaos source is broken")))
        case "stall":
            await signal.wait()
        case "cut":
            pass


def _usage(random: Random) -> Usage:
    sent, read, said = random.randrange(5000), random.choice((0, 9000)), random.randrange(900)
    return Usage(sent, said, read, total_tokens=sent + read + said)


def _reason(builder: AnswerBuilder, random: Random) -> StopReason:
    if random.random() < 0.1:
        return "length"
    return "toolUse" if builder.message.tool_calls else "stop"
