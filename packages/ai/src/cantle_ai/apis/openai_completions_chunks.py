"""What chat completions send: one chunk of a stream, or a whole completion, whose `message` reads like one.

    {"id", "model", "choices": [{"delta" | "message": {…}, "finish_reason", "usage"?, "error"?}], "usage"?, "error"?}
    delta: {"content", "reasoning_content" | "reasoning" | "reasoning_text", "reasoning_details",
            "tool_calls": [{"index", "id", "function": {"name", "arguments"}}], "refusal", "function_call"}

Fields that are not listed are passed over. What does not have the type it should have (a `content` made of
parts, arguments as an object, a count that is a string) is read by
:mod:`cantle_ai.apis.openai_completions_lenient`, which takes what it can.
"""

# No `from __future__ import annotations` here: msgspec would have to compile the text of each field's type while a
# run starts, which costs more than all else in this module.

from typing import Any

from msgspec import Struct

from cantle_ai.codec import Json
from cantle_ai.usage import Usage

__all__ = ["Choice", "Chunk", "Counts", "Delta", "FunctionDelta", "ToolCallDelta"]


class FunctionDelta(Struct, gc=False):
    name: str | None = None
    arguments: str | None = None


class ToolCallDelta(Struct, gc=False):
    index: int | None = None
    id: str | None = None
    function: FunctionDelta | None = None


class Delta(Struct, gc=False):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_text: str | None = None
    reasoning_details: Any = None
    tool_calls: list[ToolCallDelta | None] | None = None
    function_call: FunctionDelta | None = None
    refusal: str | None = None


class PromptDetails(Struct, gc=False):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class CompletionDetails(Struct, gc=False):
    reasoning_tokens: int | None = None


class Counts(Struct, gc=False):
    """`usage` as endpoints report it. `prompt_tokens` contains the cached ones, wherever those are reported."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens_details: PromptDetails | None = None
    completion_tokens_details: CompletionDetails | None = None
    cached_tokens: int | None = None
    prompt_cache_hit_tokens: int | None = None
    cost: Any = None
    is_byok: Any = None
    cost_details: Any = None

    @property
    def billed(self) -> float | None:
        """US dollars, as OpenRouter reports them: its own charge, and the maker's where the key there is one's own."""
        if not _is_amount(self.cost) or not isinstance(self.is_byok, bool):
            return None
        details = self.cost_details if isinstance(self.cost_details, dict) else {}
        upstream = details.get("upstream_inference_cost") if self.is_byok else 0
        return float(self.cost + upstream) if _is_amount(upstream) else None

    @property
    def empty(self) -> bool:
        """Whether it counts nothing, as where endpoints send a form that is not filled in."""
        return not (self.prompt_tokens or self.completion_tokens or self.total_tokens)

    def to_usage(self) -> Usage:
        prompt, output, total = map(_some, (self.prompt_tokens, self.completion_tokens, self.total_tokens))
        details = self.prompt_tokens_details or PromptDetails()
        cached = details.cached_tokens or self.cached_tokens or self.prompt_cache_hit_tokens
        read = min(prompt, _some(cached))
        written = min(prompt - read, _some(details.cache_write_tokens))
        reasoning = (self.completion_tokens_details or CompletionDetails()).reasoning_tokens
        if total == prompt + output + _some(reasoning):
            # xAI counts it beside the rest: https://docs.x.ai/docs/guides/reasoning
            output += _some(reasoning)
        return Usage(
            input=prompt - read - written,
            output=output,
            cache_read=read,
            cache_write=written,
            reasoning=None if reasoning is None else _some(reasoning),
            total_tokens=total or prompt + output,
        )


class Choice(Struct, gc=False):
    delta: Delta | None = None
    message: Delta | None = None
    finish_reason: str | None = None
    usage: Counts | None = None
    error: Any = None


class Chunk(Struct, gc=False):
    id: str | None = None
    model: str | None = None
    choices: list[Choice | None] | None = None
    usage: Counts | None = None
    error: Any = None


def _is_amount(raw: Json) -> bool:
    return type(raw) in (int, float) and 0 <= raw < 1e9  # type: ignore[operator]


def _some(count: int | None) -> int:
    """A count, which no endpoint can make less than nothing."""
    return max(0, count or 0)
