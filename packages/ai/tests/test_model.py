"""Models as data: their thinking levels."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cantle_ai.messages import ThinkingLevel
from cantle_ai.model import THINKING_LEVELS, Model

NO: Mapping[str, str | None] = {}


def model(levels: Mapping[str, str | None] = NO, *, reasoning: bool = True) -> Model:
    return Model(
        id="a/b:c",
        provider="p",
        api="openai-completions",
        base_url="http://localhost",
        reasoning=reasoning,
        thinking_levels=levels,
    )


def test_a_key_names_provider_and_id() -> None:
    assert model().key == "p/a/b:c"


@pytest.mark.parity("models.thinking-level-map")
@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ({}, ["off", "minimal", "low", "medium", "high"]),
        ({"xhigh": "x"}, ["off", "minimal", "low", "medium", "high", "xhigh"]),
        ({"off": None, "minimal": None, "max": "max"}, ["low", "medium", "high", "max"]),
        (dict.fromkeys(THINKING_LEVELS), []),
    ],
)
def test_levels_are_those_up_to_high_unless_the_map_says_otherwise(
    levels: Mapping[str, str | None], expected: list[str]
) -> None:
    assert list(model(levels).levels()) == expected


def test_without_reasoning_there_is_no_level_but_off() -> None:
    assert model({"high": "h"}, reasoning=False).levels() == ("off",)
    assert model(reasoning=False).clamp("max") == "off"


@pytest.mark.parametrize(
    ("levels", "wanted", "given"),
    [
        ({}, "xhigh", "high"),
        ({}, "off", "off"),
        ({"off": None}, "off", "minimal"),
        ({"off": None, "minimal": None, "low": None}, "minimal", "medium"),
        ({"medium": None}, "medium", "low"),
        ({"max": "max"}, "xhigh", "high"),
        (dict.fromkeys(THINKING_LEVELS), "high", "off"),
    ],
)
def test_b12_a_level_that_a_model_has_not_becomes_the_nearest(
    levels: Mapping[str, str | None], wanted: ThinkingLevel, given: ThinkingLevel
) -> None:
    assert model(levels).clamp(wanted) == given


levels = st.sampled_from(THINKING_LEVELS)


@given(st.dictionaries(levels, st.none() | st.just("x")), levels)
def test_a_clamped_level_is_one_that_the_model_has(
    mapping: dict[str, str | None], wanted: ThinkingLevel
) -> None:
    some = model(mapping)
    assert some.clamp(wanted) in (some.levels() or ("off",))
    assert some.clamp(some.clamp(wanted)) == some.clamp(wanted)
