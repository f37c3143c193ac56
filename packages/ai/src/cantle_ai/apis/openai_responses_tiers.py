"""What a response costs that another service tier than the listed one has served."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from cantle_ai.usage import Cost, Price, Usage, cost_of

__all__ = ["at_tier"]

_PRICES: Mapping[str, float] = {
    "auto": 1,
    "default": 1,
    "standard": 1,
    "flex": 0.5,
    "priority": 2,
    "fast": 2,
}
"""Multiples of the list price, as OpenAI publishes them for most models. Of any other tier the cost is not known."""


def at_tier(usage: Usage, price: Price | None, tier: str | None, prices: Mapping[str, float]) -> Usage:
    """The usage, with its cost where that is not simply `price`. `prices` are a model's own multiples."""
    factor = 1 if tier is None else prices.get(tier, _PRICES.get(tier))
    if factor == 1:
        return usage
    cost = Cost(unknown=True) if factor is None else _times(cost_of(usage, price), factor)
    return msgspec.structs.replace(usage, cost=cost)


def _times(cost: Cost, factor: float) -> Cost:
    return Cost(
        cost.input * factor,
        cost.output * factor,
        cost.cache_read * factor,
        cost.cache_write * factor,
        cost.total * factor,
        unknown=cost.unknown,
    )
