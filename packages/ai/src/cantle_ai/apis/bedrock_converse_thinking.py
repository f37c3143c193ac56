"""How a thinking level is put into a Converse request, by the model's vendor."""

from __future__ import annotations

from msgspec import Struct

from cantle_ai.apis.bedrock_converse_compat import BedrockConverseCompat
from cantle_ai.apis.claude_thinking import BINDING, BLOCK_BINDING, INTERLEAVED, claude_budget
from cantle_ai.codec import JsonObject
from cantle_ai.messages import ThinkingLevel
from cantle_ai.model import Model, StreamOptions

__all__ = ["Thinking", "thinking_of"]

_BUDGETS: dict[ThinkingLevel, int] = {"minimal": 1024, "low": 2048, "medium": 8192}
_LARGEST_BUDGET = 16_384
"""For `high` and all above."""


class Thinking(Struct, frozen=True):
    """What a level means for one request."""

    level: ThinkingLevel
    fields: JsonObject = {}
    """For `additionalModelRequestFields`."""
    max_tokens: int | None = None
    """The output limit; None where the request must not have one."""


def thinking_of(
    model: Model,
    compat: BedrockConverseCompat,
    options: StreamOptions,
    *,
    limit: int,
    room: int,
    forced: bool,
) -> Thinking:
    """How to ask for the level of `options`, as far as the model has it.

    ================= ==================================================================
    format            `additionalModelRequestFields`
    ================= ==================================================================
    adaptive          thinking.type "adaptive", output_config.effort
    budget            thinking.type "enabled", thinking.budget_tokens
    reasoning         reasoning.effort
    reasoning-effort  reasoning_effort
    nova              reasoningConfig.type "enabled", reasoningConfig.maxReasoningEffort
    none              –
    ================= ==================================================================

    `limit` is the output that is asked for, `room` the most that could be: a budget is thought on top of the limit,
    and is always less than what is then asked for. `forced` says that a tool is demanded.
    """
    level = model.clamp(options.thinking)
    if not model.reasoning or level == "off" or compat.thinking_format == "none":
        return Thinking(level if model.reasoning else "off", max_tokens=limit)
    if forced and not compat.supports_forced_tools_while_thinking:
        return Thinking("off", max_tokens=limit)
    if compat.thinking_format == "budget":
        return _budget(model, options, level, limit, room)
    effort = model.thinking_levels.get(level) or ("low" if level == "minimal" else level)
    match compat.thinking_format:
        case "adaptive":
            thinking: JsonObject = {"type": "adaptive", "display": "summarized"}
            fields: JsonObject = {"thinking": thinking, "output_config": {"effort": effort}}
            if compat.supports_thinking_binding:
                thinking["block_binding"] = {**BLOCK_BINDING}
                fields["anthropic_beta"] = [BINDING]
            return Thinking(level, fields, limit)
        case "reasoning":
            return Thinking(level, {"reasoning": {"effort": effort}}, limit)
        case "reasoning-effort":
            return Thinking(level, {"reasoning_effort": effort}, limit)
        case "nova":
            # With the highest effort Nova refuses every limit: "Extended thinking" of its user guide.
            fields = {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": effort}}
            return Thinking(level, fields, None if effort == "high" else limit)


def _budget(model: Model, options: StreamOptions, level: ThinkingLevel, limit: int, room: int) -> Thinking:
    wanted = options.thinking_budgets.get(level, _BUDGETS.get(level, _LARGEST_BUDGET))
    most = min(model.max_tokens, max(room, limit))
    share = claude_budget(wanted, limit, most, on_top=options.max_tokens is not None)
    if share is None:
        return Thinking("off", max_tokens=limit)
    budget, whole = share
    thinking: JsonObject = {"type": "enabled", "budget_tokens": budget, "display": "summarized"}
    return Thinking(level, {"thinking": thinking, "anthropic_beta": [INTERLEAVED]}, whole)
