"""What Mistral's chat API sends: one chunk of a stream, or a whole completion, whose `message` reads like a delta.

    {"id", "model", "choices": [{"delta" | "message": {…}, "finish_reason"}], "usage"?}
    delta: {"content": "…" | [part, …] | null, "tool_calls": [{"id", "index", "function": {"name", "arguments"}}]}
    part:  {"type": "text", "text"} | {"type": "thinking", "thinking": [{"type": "text", "text"}], "signature"?}
           | {"type": "reference", …}
    usage: {"prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details"?: {"cached_tokens"}}
    error: {"object": "error", "message", "type", "code"} | {"error": …}

Fields that are not listed are passed over. What does not have the type it should have goes through
:func:`_lenient`, which takes what it can.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from cantle_ai.apis.lenient_json import as_count, as_list, as_text
from cantle_ai.codec import Json, decode_json, encode_json
from cantle_ai.usage import Usage

__all__ = ["Chunk", "Delta", "FunctionDelta", "Part", "ToolCallDelta", "decode_chunk", "thought_of"]


class ThoughtText(Struct, gc=False):
    text: str | None = None


class Part(Struct, gc=False):
    """A piece of a content that is a list."""

    type: str | None = None
    text: str | None = None
    thinking: str | list[ThoughtText | None] | None = None
    signature: str | None = None


class FunctionDelta(Struct, gc=False):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class ToolCallDelta(Struct, gc=False):
    index: int | None = None
    id: str | None = None
    function: FunctionDelta | None = None


class Delta(Struct, gc=False):
    content: str | list[Part | None] | None = None
    tool_calls: list[ToolCallDelta | None] | None = None


class Choice(Struct, gc=False):
    delta: Delta | None = None
    message: Delta | None = None
    finish_reason: str | None = None


class CachedTokens(Struct, gc=False):
    cached_tokens: int | None = None


class ReasoningTokens(Struct, gc=False):
    reasoning_tokens: int | None = None


class Counts(Struct, gc=False):
    """`usage`. `prompt_tokens` contains the cached ones, under whichever of three names those are reported."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens_details: CachedTokens | None = None
    prompt_token_details: CachedTokens | None = None
    num_cached_tokens: int | None = None
    completion_tokens_details: ReasoningTokens | None = None

    def to_usage(self) -> Usage:
        prompt, output = self.prompt_tokens or 0, self.completion_tokens or 0
        details = self.prompt_tokens_details or self.prompt_token_details or CachedTokens()
        read = min(prompt, details.cached_tokens or self.num_cached_tokens or 0)
        thought = self.completion_tokens_details
        return Usage(
            input=prompt - read,
            output=output,
            cache_read=read,
            reasoning=None if thought is None else thought.reasoning_tokens,
            total_tokens=self.total_tokens or prompt + output,
        )


class Chunk(Struct, gc=False):
    id: str | None = None
    model: str | None = None
    object: str | None = None
    choices: list[Choice | None] | None = None
    usage: Counts | None = None
    error: Any = None


_decode = msgspec.json.Decoder(Chunk | None).decode


def decode_chunk(data: bytes) -> Chunk | None:
    """One chunk; None for one that says nothing (`null`, a number, a list). Raises ValueError for what is not JSON."""
    try:
        chunk = _decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return _lenient(decode_json(data))
    if chunk is not None and chunk.object == "error":
        return _lenient(decode_json(data))  # the fields of the error itself are wanted
    return chunk


def thought_of(part: Part) -> str:
    """The text of a thinking part: of its list of texts, or of a plain string."""
    thinking = part.thinking
    if isinstance(thinking, list):
        return "".join([piece.text for piece in thinking if piece is not None and piece.text])
    return thinking or ""


def _lenient(raw: Json) -> Chunk | None:
    if not isinstance(raw, dict):
        return None
    return Chunk(
        id=as_text(raw.get("id")),
        model=as_text(raw.get("model")),
        choices=[_choice(choice) for choice in as_list(raw.get("choices"))],
        usage=_counts(raw.get("usage")),
        error=raw if raw.get("object") == "error" else raw.get("error"),
    )


def _choice(raw: Json) -> Choice | None:
    if not isinstance(raw, dict):
        return None
    return Choice(
        delta=_delta(raw.get("delta")),
        message=_delta(raw.get("message")),
        finish_reason=as_text(raw.get("finish_reason")),
    )


def _delta(raw: Json) -> Delta | None:
    if not isinstance(raw, dict):
        return None
    content = raw.get("content")
    return Delta(
        content=[_part(part) for part in content] if isinstance(content, list) else as_text(content),
        tool_calls=[_call(call) for call in as_list(raw.get("tool_calls"))],
    )


def _part(raw: Json) -> Part | None:
    if isinstance(raw, str):
        return Part(type="text", text=raw)
    if not isinstance(raw, dict):
        return None
    return Part(
        type=as_text(raw.get("type")),
        text=as_text(raw.get("text")),
        thinking=_thinking(raw.get("thinking")),
        signature=as_text(raw.get("signature")),
    )


def _thinking(raw: Json) -> str | list[ThoughtText | None] | None:
    if isinstance(raw, list):
        texts = (piece.get("text") if isinstance(piece, dict) else piece for piece in raw)
        return [ThoughtText(as_text(text)) for text in texts]
    return "" if raw is not None and not isinstance(raw, str) else raw


def _call(raw: Json) -> ToolCallDelta | None:
    if not isinstance(raw, dict):
        return None
    function, index = raw.get("function"), raw.get("index")
    if isinstance(index, str) and index.isdecimal():
        index = int(index[:9])
    return ToolCallDelta(
        index=int(index) if isinstance(index, int | float) and 0 <= index < 1e9 else None,
        id=as_text(raw.get("id")),
        function=_function(function) if isinstance(function, dict) else None,
    )


def _function(raw: dict[str, Json]) -> FunctionDelta:
    arguments = raw.get("arguments")
    if not isinstance(arguments, str | dict):
        arguments = None if arguments is None else encode_json(arguments).decode()
    return FunctionDelta(name=as_text(raw.get("name")), arguments=arguments)


def _counts(raw: Json) -> Counts | None:
    if not isinstance(raw, dict):
        return None
    details = [raw.get(key) for key in ("prompt_tokens_details", "prompt_token_details")]
    cached = next((as_count(each.get("cached_tokens")) for each in details if isinstance(each, dict)), None)
    thought = raw.get("completion_tokens_details")
    return Counts(
        prompt_tokens=as_count(raw.get("prompt_tokens")),
        completion_tokens=as_count(raw.get("completion_tokens")),
        total_tokens=as_count(raw.get("total_tokens")),
        prompt_tokens_details=CachedTokens(cached),
        num_cached_tokens=as_count(raw.get("num_cached_tokens")),
        completion_tokens_details=ReasoningTokens(as_count(thought.get("reasoning_tokens")))
        if isinstance(thought, dict)
        else None,
    )
