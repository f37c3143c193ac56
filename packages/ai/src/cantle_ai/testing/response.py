"""One scripted answer as data. The scripted model plays it as events, the strict server over HTTP.

    {"content": "text" | [block, …],            what is said; nothing when left out
     "stopReason"?: "stop" | "length" | "toolUse" | "deferred",
     "rawStopReason"?: …, "usage"?: {"input", "output", "cacheRead", "cacheWrite", "reasoning"},
     "error"?: {"message", "status", "code", "retryAfterMs", "kind"}, "cut"?: true | "quiet", "stall"?: true,
     "after"?: n,                               that fault comes after n deltas, not after the content
     "delayMs"?: n, "rate"?: deltas/second, "chunk"?: n | [min, max],
     "when"?: {"role", "contains", "matches", "tool", "isError"}, "repeat"?: n | "forever",
     "deferred"?: {…}, "http"?: {…}, "noise"?: ["comment", …]}

    block: {"type": "text", "text", "textSignature"?}
           {"type": "thinking", "thinking", "thinkingSignature"?, "redacted"?}
           {"type": "toolCall", "name", "arguments": {…} | "any text", "id"?, "thoughtSignature"?}

`docs/formats/scripted-model.md` explains each field. A field that this list does not have is an error:
a misspelt fault must not pass as an answer without one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Meta, Struct, field

from cantle_ai.errors import ErrorKind

__all__ = [
    "Answer",
    "Block",
    "CallBlock",
    "Chunk",
    "Count",
    "Failure",
    "HttpAnswer",
    "Noise",
    "Response",
    "TextBlock",
    "ThinkingBlock",
    "When",
    "check_chunk",
    "response_of",
    "responses_of",
]

_F = TypeVar("_F", bound=Callable[..., object])

Chunk: TypeAlias = int | tuple[int, int] | None
"""Characters in one delta: so many, between so many, or a whole block at once.

Its bounds are checked by :func:`check_chunk` and not by the type: msgspec 0.23 lets the garbage collector
crash the process when a bounded integer stands in a union with a tuple of fixed length.
"""

Noise: TypeAlias = Literal["unknown", "garbage", "comment", "empty", "repeated"]
"""What sloppy servers and proxies send between the events of an answer: an event of a kind that nobody knows, one
whose data are no JSON, a comment, an event without anything in it; or the closing events twice."""

_Natural = Annotated[int, Meta(ge=0)]
_Positive = Annotated[int, Meta(ge=1)]


class _Data(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """What the file's objects have in common."""


class TextBlock(_Data, frozen=True, kw_only=True, tag_field="type", tag="text"):
    """Text of the answer."""

    text: str
    signature: str | None = field(default=None, name="textSignature")


class ThinkingBlock(_Data, frozen=True, kw_only=True, tag_field="type", tag="thinking"):
    """Reasoning."""

    thinking: str
    signature: str | None = field(default=None, name="thinkingSignature")
    redacted: bool = False


class CallBlock(_Data, frozen=True, kw_only=True, tag_field="type", tag="toolCall"):
    """A tool call. Arguments given as a string are sent as they are, so that they may be invalid JSON."""

    name: str
    arguments: dict[str, object] | str = {}
    id: str | None = None
    """Left out, an id is made that no other call of the conversation has."""
    signature: str | None = field(default=None, name="thoughtSignature")
    """Of the thought that led to the call. The server plays it over Google's APIs alone: no other has it."""


Block: TypeAlias = TextBlock | ThinkingBlock | CallBlock


class Count(_Data, frozen=True, kw_only=True):
    """Tokens as the provider would report them, in place of the estimate."""

    input: _Natural = 0
    output: _Natural = 0
    cache_read: _Natural = 0
    cache_write: _Natural = 0
    reasoning: _Natural | None = None


class Failure(_Data, frozen=True, kw_only=True):
    """The request fails. Without content this is the HTTP answer, with content it comes inside the stream."""

    message: str = "The scripted provider failed"
    status: int | None = None
    code: str | None = None
    retry_after_ms: _Natural | None = None
    kind: ErrorKind = "http"


class When(_Data, frozen=True, kw_only=True):
    """What the last message of the request must be. Everything that is given must hold."""

    role: Literal["user", "toolResult"] | None = None
    contains: str | None = None
    """Text that stands in it, as it is."""
    matches: str | None = None
    """A regular expression that is found in it."""
    tool: str | None = None
    """The tool whose result it is."""
    is_error: bool | None = None
    """Whether the tool failed. The server never sees this, and takes it as not known: no match."""

    def __post_init__(self) -> None:
        try:
            re.compile(self.matches or "")
        except re.error as error:
            raise ValueError(f"`matches` is no regular expression: {error}") from None


class HttpAnswer(_Data, frozen=True, kw_only=True):
    """For the server alone: an HTTP answer that is not what the API speaks."""

    status: int = 200
    headers: dict[str, str] = {}
    content_type: str = "text/event-stream"
    body: str = ""
    drop: bool = False
    """Close the connection without a byte."""
    stall: bool = False
    """Send nothing, and keep the connection open."""


class Response(_Data, frozen=True, kw_only=True):
    """One scripted answer; the module's docstring draws it."""

    content: str | tuple[Block, ...] = ()
    stop_reason: Literal["stop", "length", "toolUse", "deferred"] | None = None
    raw_stop_reason: str | None = None
    usage: Count | None = None
    error: Failure | None = None
    cut: bool | Literal["quiet"] = False
    stall: bool = False
    after: _Natural | None = None
    delay_ms: _Natural = 0
    rate: Annotated[float, Meta(gt=0)] | None = None
    chunk: Chunk = None
    when: When | None = None
    repeat: _Positive | Literal["forever"] = 1
    deferred: dict[str, object] | None = None
    http: HttpAnswer | None = None
    noise: tuple[Noise, ...] = ()
    """For the server alone: what comes before each event."""

    def __post_init__(self) -> None:
        check_chunk(self.chunk)

    @property
    def blocks(self) -> Sequence[Block]:
        """The content as blocks."""
        if isinstance(self.content, str):
            return (TextBlock(text=self.content),) if self.content else ()
        return self.content

    @property
    def reason(self) -> Literal["stop", "length", "toolUse", "deferred"]:
        """The stop reason: as written, else by what the answer holds."""
        if self.stop_reason is not None:
            return self.stop_reason
        if self.deferred is not None:
            return "deferred"
        return "toolUse" if any(isinstance(block, CallBlock) for block in self.blocks) else "stop"

    @property
    def refusal(self) -> Failure | None:
        """The failure that comes instead of any answer."""
        return self.error if self.error is not None and not self.blocks and not self.after else None


Answer: TypeAlias = str | Response | Block | Mapping[str, object] | Sequence[Block]
"""What can be written for a response: see :func:`response_of`."""


def check_chunk(chunk: Chunk) -> None:
    """Raise ValueError for a chunk of less than one character, or bounds in the wrong order."""
    low, high = (1, 1) if chunk is None else (chunk, chunk) if isinstance(chunk, int) else chunk
    if not 1 <= low <= high:
        raise ValueError("`chunk` must be a number from 1, or two such numbers, the smaller first")


def response_of(value: Answer) -> Response:
    """A response from what is handy in a test: its text, a block or several, its JSON form, or itself.

    Raises ValueError, which names the place, when that is not a response.
    """
    match value:
        case Response():
            return value
        case str():
            return Response(content=value)
        case TextBlock() | ThinkingBlock() | CallBlock():
            return Response(content=(value,))
        case Mapping():
            return msgspec.convert(dict(value), Response)
        case _:
            return Response(content=_blocks(value))


def responses_of(answers: Iterable[Answer | _F]) -> list[Response | _F]:
    """A script's entries: functions as they are, all else by :func:`response_of`.

    Raises ValueError, which says which of them, from 1, is no response.
    """
    given: object = answers
    if not isinstance(given, Iterable) or isinstance(given, str | bytes | Mapping):
        raise ValueError("the responses must be a list, even of one: [response]")
    entries: list[Response | _F] = []
    for number, answer in enumerate(answers, 1):
        try:
            entries.append(answer if callable(answer) else response_of(answer))
        except ValueError as error:
            raise ValueError(f"response {number}: {error}") from error
    return entries


def _blocks(value: object) -> tuple[Block, ...]:
    blocks: list[Block] = []
    for block in value if isinstance(value, list | tuple) else (value,):
        if not isinstance(block, TextBlock | ThinkingBlock | CallBlock):
            raise ValueError(
                f"a response is a text, an object, a block or a list of blocks, not {type(block).__name__}"
            )
        blocks.append(block)
    return tuple(blocks)
