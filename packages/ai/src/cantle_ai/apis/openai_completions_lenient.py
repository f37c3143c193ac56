"""Reads chunks of chat completions in which something does not have the type it should have, as far as that goes."""

from __future__ import annotations

from cantle_ai.apis.lenient_json import as_count, as_counts, as_list, as_text
from cantle_ai.apis.openai_completions_chunks import (
    Choice,
    Chunk,
    CompletionDetails,
    Counts,
    Delta,
    FunctionDelta,
    PromptDetails,
    ToolCallDelta,
)
from cantle_ai.codec import Json, encode_json

__all__ = ["lenient_chunk"]


def lenient_chunk(raw: Json) -> Chunk | None:
    """What can be read of a chunk; None for what is no object."""
    if not isinstance(raw, dict):
        return None
    return Chunk(
        id=as_text(raw.get("id")),
        model=as_text(raw.get("model")),
        choices=[_choice(choice) for choice in as_list(raw.get("choices"))],
        usage=_counts(raw.get("usage")),
        error=raw.get("error"),
    )


def _choice(raw: Json) -> Choice | None:
    if not isinstance(raw, dict):
        return None
    return Choice(
        delta=_delta(raw.get("delta")),
        message=_delta(raw.get("message")),
        finish_reason=as_text(raw.get("finish_reason")),
        usage=_counts(raw.get("usage")),
        error=raw.get("error"),
    )


def _delta(raw: Json) -> Delta | None:
    if not isinstance(raw, dict):
        return None
    calls = [_call(call) for call in as_list(raw.get("tool_calls"))]
    return Delta(
        content=_content(raw.get("content")),
        reasoning_content=_content(raw.get("reasoning_content")),
        reasoning=_content(raw.get("reasoning")),
        reasoning_text=_content(raw.get("reasoning_text")),
        reasoning_details=raw.get("reasoning_details"),
        tool_calls=[*calls] or None,
        function_call=_function(raw.get("function_call")),
        refusal=as_text(raw.get("refusal")),
    )


def _content(raw: Json) -> str | None:
    """Text, or the text of a list of parts."""
    if isinstance(raw, list):
        texts = [as_text(part.get("text")) if isinstance(part, dict) else as_text(part) for part in raw]
        return "".join(text for text in texts if text)
    return as_text(raw)


def _call(raw: Json) -> ToolCallDelta | None:
    if not isinstance(raw, dict):
        return None
    index = raw.get("index")
    if isinstance(index, str) and index.isdecimal():
        index = int(index)
    return ToolCallDelta(
        index=int(index) if isinstance(index, int | float) else None,
        id=as_text(raw.get("id")),
        function=_function(raw.get("function")),
    )


def _function(raw: Json) -> FunctionDelta | None:
    if not isinstance(raw, dict):
        return None
    arguments = raw.get("arguments")
    if isinstance(arguments, dict):
        arguments = encode_json(arguments).decode()
    return FunctionDelta(name=as_text(raw.get("name")), arguments=as_text(arguments))


def _counts(raw: Json) -> Counts | None:
    if not isinstance(raw, dict):
        return None
    return Counts(
        prompt_tokens=as_count(raw.get("prompt_tokens")),
        completion_tokens=as_count(raw.get("completion_tokens")),
        total_tokens=as_count(raw.get("total_tokens")),
        prompt_tokens_details=as_counts(raw.get("prompt_tokens_details"), PromptDetails),
        completion_tokens_details=as_counts(raw.get("completion_tokens_details"), CompletionDetails),
        cached_tokens=as_count(raw.get("cached_tokens")),
        prompt_cache_hit_tokens=as_count(raw.get("prompt_cache_hit_tokens")),
        cost=raw.get("cost"),
        is_byok=raw.get("is_byok"),
        cost_details=raw.get("cost_details"),
    )
