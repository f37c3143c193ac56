"""How many tokens a thinking level stands for, where a provider counts in tokens."""

from __future__ import annotations

from collections.abc import Mapping

from cantle_ai.messages import ThinkingLevel
from cantle_ai.model import StreamOptions

__all__ = ["thinking_budget"]

_BUDGETS: Mapping[ThinkingLevel, int] = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384}
"""Stronger levels have that of `high`, unless the caller says more."""
_ROOM_TO_ANSWER = 1024
"""Thinking and answer share the output limit; a model that thinks it all away says nothing."""


def thinking_budget(options: StreamOptions, level: ThinkingLevel, limit: int) -> int | None:
    """Tokens that the model may think for at `level`, when `limit` is all that it may write.

    None when it is off, or when there is no room to think.
    """
    if level == "off":
        return None
    asked = options.thinking_budgets
    budget = asked.get(level)
    if budget is None:
        known = level if level in _BUDGETS else "high"
        budget = asked.get(known, _BUDGETS[known])
    budget = min(budget, limit - _ROOM_TO_ANSWER)
    return budget if budget > 0 else None
