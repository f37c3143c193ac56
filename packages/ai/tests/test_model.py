"""Models as data: their thinking levels."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cantle_ai.messages import ThinkingLevel
from cantle_ai.model import THINKING_LEVELS, Model, Provider
from tests.support.reference import evaluated

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


def test_an_api_is_spoken_where_the_row_says_or_else_at_the_base_url() -> None:
    row = Provider(id="p", name="P", base_url="http://a", api="one", endpoints={"two": "http://b"})
    assert (row.url_of("one"), row.url_of("two"), row.url_of("three")) == ("http://a", "http://b", "http://a")


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


@pytest.mark.fault("B12")
@pytest.mark.parity("models.level-up")
@pytest.mark.parametrize(
    ("levels", "wanted", "given"),
    [
        ({}, "xhigh", "high"),
        ({}, "off", "off"),
        ({"off": None}, "off", "minimal"),
        ({"minimal": None}, "minimal", "low"),
        ({"off": None, "minimal": None, "low": None}, "minimal", "medium"),
        ({"medium": None}, "medium", "high"),
        ({"medium": None, "high": None}, "medium", "low"),
        ({"max": "max"}, "xhigh", "max"),
        (dict.fromkeys(THINKING_LEVELS), "high", "off"),
    ],
)
def test_b12_a_level_that_a_model_has_not_becomes_the_next_stronger_or_else_weaker(
    levels: Mapping[str, str | None], wanted: ThinkingLevel, given: ThinkingLevel
) -> None:
    assert model(levels).clamp(wanted) == given


@pytest.mark.reference
@pytest.mark.parity("models.level-up")
def test_levels_of_all_kinds_of_models_are_clamped_as_the_reference_clamps_them() -> None:
    script = """
        import { clampThinkingLevel } from "@earendil-works/pi-ai/models";
        const levels = LEVELS;
        const clamped = [...Array(1 << levels.length).keys()].map((has) => {
            const map = Object.fromEntries(levels.map((level, i) => [level, has >> i & 1 ? level : null]));
            const model = { id: "m", provider: "p", reasoning: true, thinkingLevelMap: map };
            return levels.map((level) => clampThinkingLevel(model, level));
        });
        console.log(JSON.stringify(clamped));
    """.replace("LEVELS", json.dumps(THINKING_LEVELS))
    ours = [
        [
            model({level: level if has >> i & 1 else None for i, level in enumerate(THINKING_LEVELS)}).clamp(
                level
            )
            for level in THINKING_LEVELS
        ]
        for has in range(1 << len(THINKING_LEVELS))
    ]
    assert ours == evaluated(script)


levels = st.sampled_from(THINKING_LEVELS)


@given(st.dictionaries(levels, st.none() | st.just("x")), levels)
def test_a_clamped_level_is_one_that_the_model_has(
    mapping: dict[str, str | None], wanted: ThinkingLevel
) -> None:
    some = model(mapping)
    assert some.clamp(wanted) in (some.levels() or ("off",))
    assert some.clamp(some.clamp(wanted)) == some.clamp(wanted)
