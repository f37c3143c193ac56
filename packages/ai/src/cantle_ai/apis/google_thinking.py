"""How much a model of Google's is to think, as the `thinkingConfig` of a request."""

from __future__ import annotations

from cantle_ai.apis.google_compat import GoogleCompat
from cantle_ai.codec import JsonObject
from cantle_ai.messages import ThinkingLevel
from cantle_ai.model import Model, StreamOptions

__all__ = ["thinking_config"]

_BUDGETS: dict[ThinkingLevel, int] = {"minimal": 128, "low": 2048, "medium": 8192}
"""Tokens by level; a stronger level has all that the model takes."""
_MODEL_DECIDES = -1
_WEAKEST = "LOW"
"""The least that every model of the third generation has."""


def thinking_config(model: Model, options: StreamOptions, compat: GoogleCompat) -> JsonObject | None:
    """The field for the level that `options` ask for, as far as the model has it. None without reasoning.

    Thoughts are asked for unless thinking is off. A model that cannot be stopped then thinks as little as it can,
    and keeps that to itself.
    """
    if not model.reasoning:
        return None
    level = model.clamp(options.thinking)
    config: JsonObject = {"includeThoughts": True} if options.thinking != "off" else {}
    if compat.thinking_format == "level":
        name = model.thinking_levels.get(level)
        config["thinkingLevel"] = (name or (_WEAKEST if level == "off" else level)).upper()
    else:
        config["thinkingBudget"] = _budget(model, options, compat, level)
    return config


def _budget(model: Model, options: StreamOptions, compat: GoogleCompat, level: ThinkingLevel) -> int:
    asked = options.thinking_budgets.get(level)
    name = model.thinking_levels.get(level)
    if asked is None and name is not None and name.isdecimal():
        asked = int(name)
    if level == "off" and not asked:
        return 0 if compat.supports_thinking_off else compat.least_thinking_budget
    if asked is None:
        if not compat.most_thinking_budget:
            return _MODEL_DECIDES
        asked = _BUDGETS.get(level, compat.most_thinking_budget)
    if asked < 0:
        return _MODEL_DECIDES
    most = compat.most_thinking_budget or asked
    return min(max(asked, compat.least_thinking_budget), most)
