"""Tokens and what they cost.

    {"input", "output", "cacheRead", "cacheWrite", "cacheWrite1h"?, "reasoning"?, "totalTokens",
     "cost": {"input", "output", "cacheRead", "cacheWrite", "total", "unknown"?}}

`input` never contains cached tokens: those are `cacheRead` and `cacheWrite`. `reasoning` is part of
`output`, and `cacheWrite1h` of `cacheWrite`; neither is added again. Costs are US dollars. A cost that
cannot be known (a model without prices) is marked `unknown`, which is not the same as free.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from msgspec import Struct

from cantle_ai.codec import Json, JsonObject, kept_fields

__all__ = ["Cost", "Price", "PriceTier", "Rates", "Usage", "cost_of", "total_usage"]

MILLION = 1_000_000


class Cost(Struct, frozen=True, gc=False):
    """US dollars by kind of token. With `unknown`, the figures cover only what could be priced."""

    input: float = 0.0
    output: float = 0.0
    cache_read: float = 0.0
    cache_write: float = 0.0
    total: float = 0.0
    unknown: bool = False
    extra: JsonObject | None = None

    def to_json(self) -> JsonObject:
        raw: JsonObject = {
            "input": self.input,
            "output": self.output,
            "cacheRead": self.cache_read,
            "cacheWrite": self.cache_write,
            "total": self.total,
        }
        if self.unknown:
            raw["unknown"] = True
        return raw if self.extra is None else {**raw, **self.extra}

    @classmethod
    def from_json(cls, raw: Json) -> Cost:
        if not isinstance(raw, dict):
            return cls()
        extra = _kept_figures(raw, _COST)
        if extra is None:
            get = cast("Callable[..., Any]", raw.get)
            return cls(
                get("input", 0.0),
                get("output", 0.0),
                get("cacheRead", 0.0),
                get("cacheWrite", 0.0),
                get("total", 0.0),
                get("unknown", False),
            )
        return cls(
            input=_number(raw.get("input")),
            output=_number(raw.get("output")),
            cache_read=_number(raw.get("cacheRead")),
            cache_write=_number(raw.get("cacheWrite")),
            total=_number(raw.get("total")),
            unknown=raw.get("unknown") is True,
            extra=extra,
        )


class Usage(Struct, frozen=True, gc=False):
    """Tokens of one answer, as the provider counted them."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cache_write_1h: int | None = None
    reasoning: int | None = None
    total_tokens: int = 0
    cost: Cost = Cost()
    extra: JsonObject | None = None

    def to_json(self) -> JsonObject:
        raw: JsonObject = {
            "input": self.input,
            "output": self.output,
            "cacheRead": self.cache_read,
            "cacheWrite": self.cache_write,
        }
        if self.cache_write_1h is not None:
            raw["cacheWrite1h"] = self.cache_write_1h
        if self.reasoning is not None:
            raw["reasoning"] = self.reasoning
        raw["totalTokens"] = self.total_tokens
        raw["cost"] = self.cost.to_json()
        return raw if self.extra is None else {**raw, **self.extra}

    @classmethod
    def from_json(cls, raw: Json) -> Usage:
        """Usage from its JSON. Missing or odd figures count as zero; odd ones are kept in `extra`."""
        if not isinstance(raw, dict):
            return cls()
        extra = _kept_figures(raw, _USAGE)
        if extra is None:
            get = cast("Callable[..., Any]", raw.get)
            return cls(
                get("input", 0),
                get("output", 0),
                get("cacheRead", 0),
                get("cacheWrite", 0),
                get("cacheWrite1h"),
                get("reasoning"),
                get("totalTokens", 0),
                Cost.from_json(raw.get("cost")),
            )
        return cls(
            input=_count(raw.get("input")),
            output=_count(raw.get("output")),
            cache_read=_count(raw.get("cacheRead")),
            cache_write=_count(raw.get("cacheWrite")),
            cache_write_1h=_count(raw["cacheWrite1h"]) if raw.get("cacheWrite1h") is not None else None,
            reasoning=_count(raw["reasoning"]) if raw.get("reasoning") is not None else None,
            total_tokens=_count(raw.get("totalTokens")),
            cost=Cost.from_json(raw.get("cost")),
            extra=extra,
        )


class Rates(Struct, frozen=True, kw_only=True):
    """US dollars for a million tokens, by kind."""

    input: float
    output: float
    cache_read: float | None = None
    """For what the cache had. None: as much as the input, since nobody names a discount."""
    cache_write: float | None = None
    """For a write to the cache that lasts minutes. None: 1.25 times the input, as Anthropic prices all its models."""
    cache_write_1h: float | None = None
    """For one that lasts an hour. None: twice the input, by the same rule."""

    @property
    def read(self) -> float:
        """What a token that the cache had costs."""
        return self.input if self.cache_read is None else self.cache_read

    @property
    def short_write(self) -> float:
        """What a write for minutes costs."""
        return 1.25 * self.input if self.cache_write is None else self.cache_write

    @property
    def long_write(self) -> float:
        """What a write for an hour costs."""
        return 2 * self.input if self.cache_write_1h is None else self.cache_write_1h


class PriceTier(Rates, frozen=True, kw_only=True):
    """Prices of a request whose whole input is above `input_tokens_above` tokens."""

    input_tokens_above: int


class Price(Rates, frozen=True, kw_only=True):
    """The prices of a model. The highest tier that a request's input passes applies to all of it."""

    tiers: tuple[PriceTier, ...] = ()

    def of(self, input_tokens: int) -> Rates:
        """The rates for a request with so many input tokens, cached ones included."""
        passed = [tier for tier in self.tiers if input_tokens > tier.input_tokens_above]
        return max(passed, key=lambda tier: tier.input_tokens_above, default=self)


def cost_of(usage: Usage, price: Price | None) -> Cost:
    """What `usage` costs at `price`; without a price the cost is unknown. Reasoning is part of the output."""
    if price is None:
        return Cost(unknown=True)
    rate = price.of(usage.input + usage.cache_read + usage.cache_write)
    long_writes = min(usage.cache_write_1h or 0, usage.cache_write)
    input_cost = usage.input * rate.input / MILLION
    output_cost = usage.output * rate.output / MILLION
    read_cost = usage.cache_read * rate.read / MILLION
    write_cost = (
        (usage.cache_write - long_writes) * rate.short_write + long_writes * rate.long_write
    ) / MILLION
    return Cost(
        input_cost, output_cost, read_cost, write_cost, input_cost + output_cost + read_cost + write_cost
    )


def total_usage(usages: Iterable[Usage]) -> Usage:
    """The sum of all. Its cost is unknown as soon as one of them is."""
    total = Usage()
    for usage in usages:
        a, b = total.cost, usage.cost
        total = Usage(
            input=total.input + usage.input,
            output=total.output + usage.output,
            cache_read=total.cache_read + usage.cache_read,
            cache_write=total.cache_write + usage.cache_write,
            cache_write_1h=_sum(total.cache_write_1h, usage.cache_write_1h),
            reasoning=_sum(total.reasoning, usage.reasoning),
            total_tokens=total.total_tokens + usage.total_tokens,
            cost=Cost(
                a.input + b.input,
                a.output + b.output,
                a.cache_read + b.cache_read,
                a.cache_write + b.cache_write,
                a.total + b.total,
                unknown=a.unknown or b.unknown,
            ),
        )
    return total


def _sum(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else a + b


def _kept_figures(raw: JsonObject, known: Mapping[str, type | tuple[type, ...]]) -> JsonObject | None:
    """What of it is no figure to count with: unknown, of another type, or beyond all reason."""
    kept = kept_fields(raw, known)
    for key, value in raw.items():
        if value.__class__ in _NUMBERS and not -_LARGEST < value < _LARGEST:
            kept = {**(kept or {}), key: value}
    return kept


def _count(value: Json) -> int:
    return int(_number(value))


def _number(value: Json) -> float:
    return value if isinstance(value, int | float) and -_LARGEST < value < _LARGEST else 0.0


_LARGEST = 1e18
"""No account has so many tokens or dollars; larger integers cannot be multiplied with a price."""
_NUMBERS = (int, float)
_COST: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("input", "output", "cacheRead", "cacheWrite", "total"), (int, float)),
    "unknown": bool,
}
_USAGE: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(
        ("input", "output", "cacheRead", "cacheWrite", "cacheWrite1h", "reasoning", "totalTokens"), int
    ),
    "cost": dict,
}
