"""What Anthropic's models want to know about thinking, wherever they are asked: at Anthropic and at Amazon Bedrock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["BINDING", "BLOCK_BINDING", "INTERLEAVED", "claude_budget"]

INTERLEAVED: Final = "interleaved-thinking-2025-05-14"
"""The beta by which a model with a budget thinks between its calls; models that decide by themselves do so anyway."""
BINDING: Final = "thinking-binding-controls-2026-08-01"
"""The beta of :data:`BLOCK_BINDING`."""
BLOCK_BINDING: Final[Mapping[str, str]] = {"prefix_mismatch_behavior": "drop_block"}
"""Images that are left out, or messages that were summed up, change what thinking was bound to: it is dropped then,
not refused."""
_LEAST_BUDGET = 1024
"""A smaller one is refused."""
_LEAST_ANSWER = 1024
"""Tokens that are left for the answer beside the budget, unless fewer are asked for."""


def claude_budget(wanted: int, limit: int, most: int, *, on_top: bool) -> tuple[int, int] | None:
    """The tokens to think for, and those of thinking and answer together, which are always more.

    `limit` is the output to ask for, `most` what could be asked for. `on_top` says that somebody has set the limit,
    for the answer alone, so that the budget is added to it. None when there is no room to think.
    """
    whole, answer = limit, _LEAST_ANSWER
    if on_top:
        whole, answer = min(limit + wanted, most), min(limit, _LEAST_ANSWER)
    budget = min(wanted, whole - answer)
    return None if budget < _LEAST_BUDGET else (budget, whole)
