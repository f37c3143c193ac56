"""How an answer that no provider makes arrives: a stream, and the deltas it is taken apart into by one seed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from random import Random

from cantle_ai.builder import AnswerBuilder
from cantle_ai.model import Model, StreamOptions
from cantle_ai.stream import AssistantMessageStream, EventSource
from cantle_ai.testing.response import Block, CallBlock, Chunk, Response, TextBlock, ThinkingBlock

__all__ = ["block_text", "call_id", "deltas", "pieces", "played", "seeded"]


def played(
    model: Model, options: StreamOptions, source: EventSource, *, clock: Callable[[], int]
) -> AssistantMessageStream:
    """The stream of an answer of `model` whose events `source` makes. `clock` gives Unix milliseconds."""
    builder = AnswerBuilder.of(model, thinking_level=options.thinking, clock=clock)
    return AssistantMessageStream(source, builder, signal=options.signal)


def block_text(block: Block) -> str:
    """What arrives for a block: its text, or its arguments as JSON text."""
    match block:
        case TextBlock():
            return block.text
        case ThinkingBlock():
            return block.thinking
        case CallBlock(arguments=str(text)):
            return text
        case CallBlock():
            return json.dumps(block.arguments, ensure_ascii=False)


def pieces(text: str, chunk: Chunk, random: Random) -> Iterator[str]:
    """`text` in pieces of `chunk` characters. Nothing for empty text."""
    if chunk is None:
        chunk = max(1, len(text))
    low, high = (chunk, chunk) if isinstance(chunk, int) else chunk
    place = 0
    while place < len(text):
        size = low if low == high else random.randint(low, high)
        yield text[place : place + size]
        place += size


def deltas(response: Response, chunk: Chunk, random: Random) -> Iterator[tuple[int, Block, str]]:
    """The deltas up to the response's fault: the block's index, the block, a piece of its text.

    A block without text is one empty piece, and no delta. The response's own chunk size goes before `chunk`.
    """
    faulty = response.error is not None or bool(response.cut) or response.stall
    left = response.after if faulty and response.after is not None else None
    size = chunk if response.chunk is None else response.chunk
    for index, block in enumerate(response.blocks):
        if left == 0:
            return
        text = block_text(block)
        if not text:
            yield index, block, ""
        for piece in pieces(text, size, random):
            if left == 0:
                return
            yield index, block, piece
            if left is not None:
                left -= 1


def call_id(block: CallBlock, random: Random) -> str:
    """The id of a call: the script's, else one of 12 hexadecimal digits from `random`."""
    return block.id if block.id is not None else f"call_{random.getrandbits(48):012x}"


def seeded(*words: object) -> Random:
    """A generator that depends on `words` alone."""
    return Random(":".join(map(str, words)))
