"""What the strict server must know of a wire API: how to check a request, and how to say an answer.

An API is one module `dialects/<api with _>.py` that ends with `DIALECT: Dialect = MyDialect()`, and one row in
:data:`cantle_ai.testing.server.dialects.DIALECTS`. Write it from the vendor's documentation and the types of its
SDK, never from our own encoder: it is the other side. Four things to write:

    class MyDialect:
        def check(self, call: Call, strictness: Strictness) -> Asked:
            check_json(call.headers)                     # strictness.py: content type, bearer or other key
            check_key(call.headers.get("x-api-key", ""), strictness, "x-api-key")
            body = read_body(call.body)                  # body.py: strict JSON, each field's raw text beside it
            known_fields(body.values, FIELDS, "the request")      # refusal.py: small checks that refuse
            ...                                          # raise Refusal(rule, sentence) for what this vendor refuses
            return Asked(
                body=body,
                model=...,                               # from the body, or from call.path
                head={"system": body.raw.get("system", ""), "tools": body.raw.get("tools", "")},
                pieces=[without_marks(text, MARKS) for text in elements(body.raw["messages"])],   # prefix.py
                conversation=...,                        # what tells conversations apart, "" if nothing does
                last=LastMessage(role="user" | "toolResult", text=..., tool=...),
            )

        def play(self, play: Play) -> Playback:          # play.deltas(), play.usage(), play.call_id(block)
        def error(self, failure: Failure, status: int) -> bytes:    # the body of an HTTP error
        def noise(self, kind: Noise, play: Play) -> bytes | None:   # what a sloppy server sends in between

BE STRICT in `check`: unknown fields, empty and blank texts, calls without results and results without calls, ids
outside the vendor's alphabet or length, the order of roles, missing `max_tokens`, limits on names and schemas,
temperature where thinking forbids it. Each refusal is one `raise Refusal("short-rule", "path: what is wrong")`.

The prefix rule is checked by the server from what `Asked` says: `head` must be equal, by name, from request to
request of one `conversation`, and `pieces` of the request before must begin those of the next. A dialect whose
wire merges neighbours of one role gives finer pieces than messages (a role, then its blocks), so that more blocks
in the last message are an extension too. Marks for a cache are taken out of the texts first (`without_marks`).

`Playback` says the answer in the vendor's bytes. The server decides what becomes of them: it cuts them at random
places, stalls, breaks off or lets `failing` follow, as the script says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Protocol

from msgspec import Struct

from cantle_ai.testing.estimate import CHARACTERS, tokens
from cantle_ai.testing.playback import call_id, deltas
from cantle_ai.testing.response import Block, CallBlock, Chunk, Count, Failure, Noise, Response, ThinkingBlock
from cantle_ai.testing.script import LastMessage
from cantle_ai.testing.server.body import Body
from cantle_ai.testing.server.exchange import Call
from cantle_ai.testing.server.strictness import Strictness

__all__ = ["Asked", "Dialect", "Play", "Playback"]


class Asked(Struct, frozen=True, kw_only=True):
    """A request that broke no rule."""

    body: Body
    model: str
    head: Mapping[str, str]
    """What must stay as it is through a conversation, by name: the text of `tools`, of the system prompt."""
    pieces: Sequence[str]
    """The history as texts; each request's list begins with that of the request before. No marks for a cache."""
    conversation: str = ""
    """Requests with the same name here belong together; from a cache key or a session header."""
    last: LastMessage | None = None
    """What a script's `when` looks at: role `user` or `toolResult`, the text, the tool that the result is of."""
    detail: object = None
    """Anything that the dialect's own playback wants to know."""

    @property
    def prompt(self) -> int:
        """The characters of the prompt."""
        return sum(map(len, self.head.values())) + sum(map(len, self.pieces))


class Play(Struct, kw_only=True):
    """One answer to be said. `cached` is how many characters of the prompt the request before had said."""

    response: Response
    asked: Asked
    random: Random
    chunk: Chunk
    cached: int = 0
    newline: str = "\n"
    said: int = 0
    thought: int = 0

    def deltas(self) -> Iterator[tuple[int, Block, str]]:
        """Index of the block, the block, a piece of its text: up to the response's fault.

        A block without text is one empty piece. A block begins where the index changes; only its last piece is
        followed by another index or by the end, so a playback that must say "block ends" looks one ahead or
        says it at the change. What is given out here is counted for :meth:`usage`.
        """
        for index, block, piece in deltas(self.response, self.chunk, self.random):
            if isinstance(block, ThinkingBlock):
                self.thought += len(piece)
            else:
                self.said += len(piece)
            yield index, block, piece

    def call_id(self, block: CallBlock) -> str:
        """The id of a call: ask once for each call."""
        return call_id(block, self.random)

    def usage(self) -> Count:
        """The tokens as the script gives them, else by the rule of thumb.

        `input`, `cache_read` and `cache_write` do not overlap; `output` includes `reasoning`.
        """
        if self.response.usage is not None:
            return self.response.usage
        cached = min(self.cached // CHARACTERS, tokens(self.asked.prompt))
        return Count(
            input=tokens(self.asked.prompt) - cached,
            cache_read=cached,
            output=tokens(self.said + self.thought),
            reasoning=tokens(self.thought),
        )


class Playback(Protocol):
    """One answer in the vendor's bytes. The three methods are called once each at most, in this order."""

    def events(self) -> Iterator[bytes]:
        """The beginning and one delta at a time, up to the response's fault; one item is one event."""

    def ending(self) -> Iterator[bytes]:
        """What closes a good answer: ends of blocks still open, stop reason, usage, the last word."""

    def failing(self, failure: Failure) -> bytes:
        """A failure inside the stream; nothing follows."""


class Dialect(Protocol):
    """One wire API as its server speaks it."""

    content_type: str
    """Of a stream: `text/event-stream; charset=utf-8` for most."""

    def check(self, call: Call, strictness: Strictness) -> Asked:
        """Take a POST apart. Raises :class:`Refusal` for what the strictest vendor of this API would refuse."""

    def play(self, play: Play) -> Playback:
        """The answer that `play` describes."""

    def error(self, failure: Failure, status: int) -> bytes:
        """The body of an HTTP answer of this status."""

    def noise(self, kind: Noise, play: Play) -> bytes | None:
        """What a sloppy server sends before an event (`event_noise.py`); None when this wire cannot say it.

        Not asked for `repeated`: the server sends the events of `ending` twice.
        """

    def models(self, ids: Sequence[str]) -> bytes:
        """The body of the list of models."""
