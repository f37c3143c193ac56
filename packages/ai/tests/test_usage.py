"""Tokens and what they cost."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cantle_ai.codec import Json, JsonObject, encode_json
from cantle_ai.usage import Cost, Price, PriceTier, Usage, cost_of, total_usage
from packages.ai.tests.json_values import normal, objects, values
from tests.support.samples import samples

MANY = settings(max_examples=samples(2000, 60), deadline=None)

PRICE = Price(
    input=2.0,
    output=10.0,
    cache_read=0.5,
    cache_write=2.5,
    tiers=(
        PriceTier(input_tokens_above=200_000, input=4.0, output=15.0, cache_read=1.0, cache_write=5.0),
        PriceTier(input_tokens_above=500_000, input=8.0, output=30.0, cache_read=2.0, cache_write=10.0),
    ),
)

RAW: JsonObject = {
    "input": 1,
    "output": 2,
    "cacheRead": 3,
    "cacheWrite": 4,
    "cacheWrite1h": 1,
    "reasoning": 1,
    "totalTokens": 10,
    "cost": {"input": 0.5, "output": 1, "cacheRead": 0, "cacheWrite": 0.25, "total": 1.75, "unknown": True},
}


@pytest.mark.parity("messages.usage")
def test_usage_comes_back_as_it_was() -> None:
    usage = Usage.from_json(RAW)
    assert encode_json(usage.to_json()) == encode_json(RAW)
    assert (usage.input, usage.cache_write_1h, usage.cost.total, usage.cost.unknown) == (1, 1, 1.75, True)
    assert "cacheWrite1h" not in Usage().to_json()
    assert "unknown" not in Cost().to_json()


@MANY
@given(objects, st.sampled_from(sorted(RAW)), values)
def test_unknown_and_odd_figures_survive(more: JsonObject, key: str, odd: Json) -> None:
    raw: JsonObject = {**more, **RAW, key: odd}
    again = normal(Usage.from_json(raw).to_json())
    expected = normal(raw)
    assert isinstance(again, dict) and isinstance(expected, dict)
    if key == "cost" and isinstance(odd, dict):
        cost = again.pop("cost")
        assert isinstance(cost, dict) and odd.keys() <= cost.keys() | {"unknown"}
        del expected["cost"]
    assert again == expected


@MANY
@given(values)
def test_anything_at_all_is_a_usage_that_can_be_written_and_added(raw: Json) -> None:
    for usage in (
        Usage.from_json(raw),
        Usage.from_json({"input": raw, "cost": {"total": raw, "input": raw}}),
    ):
        encode_json(total_usage([usage, usage]).to_json())
        assert isinstance(usage.input, int)
        assert abs(usage.cost.total) < float("inf")


def test_odd_figures_count_as_zero_and_are_kept() -> None:
    usage = Usage.from_json({"input": "many", "output": 2.0, "cost": {"total": float("nan")}})
    assert (usage.input, usage.output, usage.cost.total) == (0, 2, 0.0)
    raw = usage.to_json()
    assert (raw["input"], raw["output"]) == ("many", 2.0)


def test_cached_tokens_have_their_own_price() -> None:
    usage = Usage(input=1_000, output=100, cache_read=10_000, cache_write=2_000)
    cost = cost_of(usage, PRICE)
    assert (cost.input, cost.output, cost.cache_read, cost.cache_write) == pytest.approx(
        (0.002, 0.001, 0.005, 0.005)
    )
    assert cost.total == pytest.approx(0.013)


@pytest.mark.fault("D02")
@pytest.mark.parametrize(
    ("written", "hour", "rates", "cost"),
    [
        (1_000_000, None, (2.4, None), 2.4),
        (1_000_000, 1_000_000, (2.4, None), 4.0),
        (1_000_000, 1_000_000, (2.4, 3.0), 3.0),
        (300_000, 100_000, (2.4, 3.0), 0.2 * 2.4 + 0.1 * 3.0),
        (1_000_000, None, (None, None), 2.5),
        (1_000_000, 1_000_000, (None, None), 4.0),
        (100_000, 300_000, (None, None), 0.1 * 4.0),
    ],
)
def test_d02_writes_to_the_cache_have_prices_by_how_long_they_last(
    written: int, hour: int | None, rates: tuple[float | None, float | None], cost: float
) -> None:
    """Without prices of their own: 1.25 and 2 times the input's."""
    short, long = rates
    price = Price(input=2.0, output=10.0, cache_read=0.5, cache_write=short, cache_write_1h=long)
    usage = Usage(cache_write=written, cache_write_1h=hour)
    assert cost_of(usage, price).cache_write == pytest.approx(cost)


@pytest.mark.fault("D02", "D03")
def test_d02_a_tier_has_prices_of_writes_too() -> None:
    tier = PriceTier(input_tokens_above=100, input=4.0, output=15.0, cache_read=1.0)
    price = Price(input=2.0, output=10.0, cache_read=0.5, cache_write=2.5, tiers=(tier,))
    usage = Usage(cache_write=1_000_000, cache_write_1h=500_000)
    assert cost_of(usage, price).cache_write == pytest.approx(0.5 * 5.0 + 0.5 * 8.0)


@pytest.mark.fault("D03")
@pytest.mark.parametrize(
    ("usage", "rate"),
    [
        (Usage(input=200_000), 2.0),
        (Usage(input=200_001), 4.0),
        (Usage(input=1, cache_read=100_000, cache_write=100_000), 4.0),
        (Usage(input=500_001), 8.0),
    ],
)
def test_d03_the_highest_tier_that_the_input_passes_prices_all_of_it(usage: Usage, rate: float) -> None:
    assert cost_of(usage, PRICE).input == pytest.approx(usage.input * rate / 1e6)
    assert cost_of(Usage(input=usage.input, output=0), PRICE).output == 0


def test_what_the_cache_had_costs_as_much_as_the_rest_where_no_discount_is_known() -> None:
    usage = Usage(input=1_000, cache_read=3_000)
    tier = PriceTier(input_tokens_above=10_000, input=4, output=2)
    price = Price(input=2, output=1, tiers=(tier,))
    assert cost_of(usage, price).cache_read == pytest.approx(0.006)
    assert cost_of(Usage(cache_read=20_000), price).cache_read == pytest.approx(0.08)
    assert cost_of(usage, Price(input=2, output=1, cache_read=0)).cache_read == 0


def test_a_cost_without_a_price_is_unknown_and_not_free() -> None:
    assert cost_of(Usage(input=5), None) == Cost(unknown=True)
    free = Price(input=0, output=0, cache_read=0, cache_write=0)
    assert not cost_of(Usage(input=5), free).unknown


counts = st.integers(0, 10**9)
usages = st.builds(
    Usage,
    input=counts,
    output=counts,
    cache_read=counts,
    cache_write=counts,
    reasoning=st.none() | counts,
    total_tokens=counts,
)


@MANY
@given(st.lists(usages, max_size=6))
def test_a_total_is_the_sum(parts: list[Usage]) -> None:
    total = total_usage(parts)
    assert total.input == sum(part.input for part in parts)
    assert total.total_tokens == sum(part.total_tokens for part in parts)
    known = [part.reasoning for part in parts if part.reasoning is not None]
    assert total.reasoning == (sum(known) if known else None)


def test_one_unknown_cost_makes_the_total_unknown() -> None:
    known, unknown = Usage(cost=Cost(total=1.5)), Usage(cost=Cost(unknown=True))
    assert total_usage([known, unknown, known]).cost == Cost(total=3.0, unknown=True)


@pytest.mark.parametrize("figure", [10**400, -(10**400), 1e300, float("inf"), 10**18])
def test_figures_beyond_all_reason_count_as_nothing_and_are_kept(figure: float) -> None:
    usage = Usage.from_json({"input": figure, "output": 2, "cost": {"input": figure, "total": 0.5}})
    assert (usage.input, usage.output, usage.cost.input, usage.cost.total) == (0, 2, 0.0, 0.5)
    raw = usage.to_json()
    assert raw["input"] == figure
    assert isinstance(raw["cost"], dict) and raw["cost"]["input"] == figure
    assert total_usage([usage, usage]).output == 4
