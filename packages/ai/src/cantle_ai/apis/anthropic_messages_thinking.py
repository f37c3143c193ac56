"""How a thinking level is put into a Messages request, and what it leaves for the answer."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from cantle_ai.apis.anthropic_messages_compat import AnthropicMessagesCompat
from cantle_ai.codec import JsonObject
from cantle_ai.messages import ThinkingLevel
from cantle_ai.model import Model, NamedTool, StreamOptions

__all__ = ["Thinking", "thinking_of"]

_BUDGETS: Mapping[ThinkingLevel, int] = {
    "minimal": 1024,
    "low": 2048,
    "medium": 8192,
    "high": 16_384,
    "xhigh": 32_768,
    "max": 65_536,
}
"""Tokens for each level, where the caller does not say."""
_LEAST_BUDGET = 1024
"""The API refuses a smaller one."""
_LEAST_ANSWER = 1024
"""Tokens that are left for the answer beside the budget, unless the caller wants fewer."""
_INTERLEAVED = "interleaved-thinking-2025-05-14"
"""The beta by which a model with a budget thinks between its calls; models that decide by themselves do so anyway."""
_BINDING = "thinking-binding-controls-2026-08-01"


class Thinking(Struct, frozen=True, kw_only=True):
    """What a request says about thinking."""

    max_tokens: int
    """The limit of thinking and answer together, always more than the budget."""
    config: JsonObject | None = None
    """The field `thinking`; None leaves it out."""
    effort: str | None = None
    betas: tuple[str, ...] = ()
    possible: bool = False
    """Whether the model may think at all, so that it takes no `temperature`."""


def thinking_of(model: Model, compat: AnthropicMessagesCompat, options: StreamOptions, room: int) -> Thinking:
    """How `model` is to think. `room` is the output that the input leaves place for.

    "Off" is said explicitly, as models think by default; to one that cannot be told to stop, nothing is said.
    A forced tool call turns thinking off, because the API refuses both together.
    """
    most = max(1, min(model.max_tokens, room))
    limit = most if options.max_tokens is None else max(1, min(options.max_tokens, most))
    if not model.reasoning:
        return Thinking(max_tokens=limit)
    stoppable = "off" in model.levels()
    silent = Thinking(
        max_tokens=limit, config={"type": "disabled"} if stoppable else None, possible=not stoppable
    )
    level = options.thinking
    if level != "off":
        level = model.clamp(level)
    if level == "off" or options.tool_choice == "required" or isinstance(options.tool_choice, NamedTool):
        return silent
    config: JsonObject
    if compat.force_adaptive_thinking:
        config = {"type": "adaptive", "display": "summarized"}
        effort = model.thinking_levels.get(level) or ("low" if level == "minimal" else level)
        betas: tuple[str, ...] = ()
    else:
        budget = options.thinking_budgets.get(level, _BUDGETS[level])
        answer = _LEAST_ANSWER
        if options.max_tokens is not None:
            limit = max(1, min(options.max_tokens + budget, most))
            answer = max(1, min(answer, options.max_tokens))
        budget = min(budget, limit - answer)
        if budget < _LEAST_BUDGET:
            return silent
        config = {"type": "enabled", "budget_tokens": budget, "display": "summarized"}
        effort, betas = None, (_INTERLEAVED,)
    if compat.supports_mid_convo_effort:
        # Images that are left out, or messages that were summed up, change what thinking was bound to.
        config["block_binding"] = {"prefix_mismatch_behavior": "drop_block"}
        betas = (*betas, _BINDING)
    return Thinking(max_tokens=limit, config=config, effort=effort, betas=betas, possible=True)
