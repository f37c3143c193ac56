"""Tokens and prompt-cache hits of an endpoint that has neither a tokenizer nor a cache.

A token is four characters, rounded up: the usual rule of thumb for English, and the same on every machine.
The cache is the longest common prefix, in whole pieces (tools, system prompt, each message), with the
request before of the same session.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from cantle_ai.codec import JsonObject, encode_json
from cantle_ai.context import Context
from cantle_ai.messages import Message
from cantle_ai.testing.response import Count

__all__ = ["PromptCache", "prompt_pieces", "tokens"]

CHARACTERS = 4
"""Characters in a token."""


def tokens(characters: int) -> int:
    """How many tokens so many characters are."""
    return -(-characters // CHARACTERS)


def prompt_pieces(context: Context) -> list[bytes]:
    """What a model is sent of `context`, in the order in which providers cache it."""
    tools: list[JsonObject] = [
        {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
        for tool in context.tools
    ]
    return [
        encode_json(tools),
        context.system_prompt.encode("utf-8", "replace"),
        *map(_piece, context.messages),
    ]


class PromptCache:
    """Remembers each session's last prompt."""

    def __init__(self) -> None:
        self._last: dict[str, list[bytes]] = {}

    def count(self, pieces: Sequence[bytes], session: str | None) -> Count:
        """The input side of a usage. Without a session nothing is cached: all is `input`."""
        total = tokens(sum(map(len, pieces)))
        if session is None:
            return Count(input=total)
        before = self._last.get(session, [])
        common = takewhile(lambda pair: pair[0] == pair[1], zip(before, pieces, strict=False))
        read = sum(len(piece) for piece, _ in common) // CHARACTERS
        self._last[session] = list(pieces)
        return Count(cache_read=read, cache_write=total - read)


def _piece(message: Message) -> bytes:
    """The part of a message that a model sees, encoded once."""
    piece = message.wire.get(_piece)
    if piece is None:
        raw = message.to_json()
        piece = message.wire[_piece] = encode_json({"role": raw["role"], "content": raw["content"]})
    return piece
