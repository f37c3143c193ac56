"""Answers that no model would give, by seed: what an accumulator has to put together without losing a character."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from cantle_ai.testing.response import Block, CallBlock, Chunk, Count, Response, TextBlock, ThinkingBlock

__all__ = ["Kinds", "answer", "answers", "hostile"]

_ALPHABETS = (
    "abc ",
    "äöüß ñ",
    "漢字かな",
    "👩‍👩‍👧🏳️‍🌈😀",
    "\u2028\u2029\x85\u200b\ufeff",
    '"\\/{}[]:,<>&',
    "\n\r\t ",
    "data: event: [DONE]\n\n",
    "\x01\x1f\x7f",
    "e\u0301\u0300",
)

_CHUNKS: tuple[Chunk, ...] = (1, (1, 4), (1, 40), 1000)


@dataclass(frozen=True, kw_only=True)
class Kinds:
    """What an API's answers can hold; what it cannot, is not generated."""

    thinking: bool = True
    signatures: bool = True
    many_texts: bool = True
    """Text and thinking again after other blocks. Otherwise thinking, then text, then calls."""
    calls: int = 5
    empty_texts: bool = True
    cache_write: bool = True
    reasoning: bool = True
    call_id: str = "call_{:09d}"
    names: tuple[str, ...] = ("read", "a", "Look-Up_2", "x" * 64)
    stops: tuple[str, ...] = ("stop", "length")
    """Stop reasons of answers without calls, in the script's words."""


def text(random: Random, longest: int = 60) -> str:
    """Any text, of characters of one to four bytes."""
    return "".join(random.choice(random.choice(_ALPHABETS)) for _ in range(random.randint(1, longest)))


def hostile(random: Random, depth: int = 4) -> Any:
    """A JSON value that a sloppy reader trips over."""
    kind = random.randint(0, 8 if depth else 5)
    match kind:
        case 0:
            return text(random, 12)
        case 1:
            return random.choice([0, -1, 2**31, 2**53 + 1, -(2**63), 10**25])
        case 2:
            return random.choice([0.1, -1.5e-7, 1e300, 12345.678])
        case 3:
            return random.choice([True, False, None])
        case 4:
            return random.choice(["", "null", "{}", "[1,", '"', "\\u0041", "\x00"])
        case 5:
            return random.choice([{}, []])
        case 6:
            return [hostile(random, depth - 1) for _ in range(random.randint(0, 3))]
        case 7:
            value: Any = text(random, 4)
            for _ in range(random.randint(10, 40)):
                value = {"deeper": value} if random.random() < 0.5 else [value]
            return value
        case _:
            return arguments(random, depth - 1)


def arguments(random: Random, depth: int = 3) -> dict[str, Any]:
    """The arguments of a call."""
    return {
        random.choice(["path", "", "ä", "a.b", "type", "0", text(random, 6)]): hostile(random, depth)
        for _ in range(random.randint(0, 4))
    }


def answer(random: Random, kinds: Kinds = Kinds()) -> Response:
    """One answer."""
    blocks: list[Block] = []
    said = [*("t" * random.randint(0, 3 if kinds.many_texts else 1)), *("h" * random.randint(0, 2))]
    random.shuffle(said)
    if not kinds.many_texts:
        said = sorted(set(said))  # h before t
    for kind in said:
        if kind == "t":
            blocks.append(TextBlock(text="" if kinds.empty_texts and random.random() < 0.1 else text(random)))
        elif kinds.thinking:
            signature = f"c2ln{random.getrandbits(64):016x}" if kinds.signatures else None
            blocks.append(ThinkingBlock(thinking=text(random), signature=signature))
    calls = [
        CallBlock(
            id=kinds.call_id.format(random.getrandbits(29)),
            name=random.choice(kinds.names),
            arguments=arguments(random),
        )
        for _ in range(random.choice([0, 0, 1, 1, 2, kinds.calls]))
    ]
    return Response(
        content=(*blocks, *calls),
        stop_reason=None if calls else random.choice(kinds.stops),  # type: ignore[arg-type]
        usage=_count(random, kinds),
        chunk=random.choice(_CHUNKS),
    )


def answers(count: int, kinds: Kinds = Kinds(), *, seed: str = "answers") -> list[Response]:
    """So many answers, the same for one seed."""
    random = Random(seed)
    return [answer(random, kinds) for _ in range(count)]


def _count(random: Random, kinds: Kinds) -> Count:
    reasoning = random.randint(0, 50) if kinds.reasoning else None
    return Count(
        input=random.randint(1, 10**6),
        output=random.randint(50, 10**5),
        cache_read=random.choice([0, random.randint(0, 10**6)]),
        cache_write=random.choice([0, random.randint(0, 10**5)]) if kinds.cache_write else 0,
        reasoning=reasoning,
    )
