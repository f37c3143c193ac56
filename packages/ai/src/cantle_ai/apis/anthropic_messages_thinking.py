"""How a thinking level is put into a Messages request, and what it leaves for the answer."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from cantle_ai.apis.anthropic_messages_compat import AnthropicMessagesCompat
from cantle_ai.apis.claude_thinking import BINDING, BLOCK_BINDING, INTERLEAVED, claude_budget
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
        wanted = options.thinking_budgets.get(level, _BUDGETS[level])
        share = claude_budget(wanted, limit, most, on_top=options.max_tokens is not None)
        if share is None:
            return silent
        budget, limit = share
        config = {"type": "enabled", "budget_tokens": budget, "display": "summarized"}
        effort, betas = None, (INTERLEAVED,)
    if compat.supports_mid_convo_effort:
        config["block_binding"] = {**BLOCK_BINDING}
        betas = (*betas, BINDING)
    return Thinking(max_tokens=limit, config=config, effort=effort, betas=betas, possible=True)
