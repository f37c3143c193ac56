"""Which model a person means."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cantle_ai.model import Model
from cantle_ai.model_patterns import ModelPatternError, match_models, resolve_model, split_level
from cantle_ai.models import Models
from cantle_ai.usage import Price


def row(provider: str, id: str, name: str = "") -> Model:
    price = Price(input=1, output=1, cache_read=1, cache_write=1)
    return Model(
        id=id, provider=provider, api="a", base_url=f"http://{provider}", name=name, price=price, max_tokens=7
    )


ROWS = [
    row("openai", "gpt-5", "GPT-5"),
    row("openai", "gpt-5-mini", "GPT-5 Mini"),
    row("openai", "gpt-5-2025-08-07"),
    row("openai", "gpt-10-nano"),
    row("openai", "gpt-4o"),
    row("openai", "gpt-4o-2024-05-13"),
    row("openai", "gpt-4o-2024-11-20"),
    row("openai", "o3", "Old Three"),
    row("router", "openai/gpt-5", "GPT-5 by router"),
    row("router", "qwen/qwen3:free", "Qwen"),
    row("router", "shared"),
    row("local", "shared"),
    row("local", "qwen2.5-coder:7b"),
    row("local", "odd:high"),
]


@pytest.mark.parity("models.patterns")
@pytest.mark.parametrize(
    ("pattern", "key", "level"),
    [
        ("gpt-5", "openai/gpt-5", None),
        ("GPT-5", "openai/gpt-5", None),
        ("gpt-5:high", "openai/gpt-5", "high"),
        ("gpt-5:HIGH", "openai/gpt-5", "high"),
        ("openai/gpt-5", "openai/gpt-5", None),
        ("OpenAI/GPT-5:off", "openai/gpt-5", "off"),
        ("router/openai/gpt-5", "router/openai/gpt-5", None),
        ("router/openai/gpt-5:low", "router/openai/gpt-5", "low"),
        ("qwen/qwen3:free", "router/qwen/qwen3:free", None),
        ("qwen/qwen3:free:max", "router/qwen/qwen3:free", "max"),
        ("qwen2.5-coder:7b", "local/qwen2.5-coder:7b", None),
        ("local/qwen2.5-coder:7b:minimal", "local/qwen2.5-coder:7b", "minimal"),
        ("odd:high", "local/odd:high", None),
        ("odd:high:low", "local/odd:high", "low"),
        ("mini", "openai/gpt-5-mini", None),
        ("old three", "openai/o3", None),
        ("gpt-5 by router", "router/openai/gpt-5", None),
        ("nano:low", "openai/gpt-10-nano", "low"),
        ("4o", "openai/gpt-4o", None),
        ("4o-2024", "openai/gpt-4o-2024-11-20", None),
        ("openai/gpt", "openai/gpt-10-nano", None),
        ("local/coder", "local/qwen2.5-coder:7b", None),
    ],
)
def test_a_pattern_means(pattern: str, key: str, level: str | None) -> None:
    found = resolve_model(pattern, ROWS)
    assert (found.model.key, found.thinking_level, found.warning) == (key, level, None)


@pytest.mark.parametrize(
    ("pattern", "provider", "key"),
    [
        ("gpt-5", "router", "router/openai/gpt-5"),
        ("openai/gpt-5", "router", "router/openai/gpt-5"),
        ("router/openai/gpt-5", "router", "router/openai/gpt-5"),
        ("shared", "LOCAL", "local/shared"),
    ],
)
def test_a_provider_narrows_it(pattern: str, provider: str, key: str) -> None:
    assert resolve_model(pattern, ROWS, provider).model.key == key


def test_a_model_of_several_providers_must_be_named_in_full() -> None:
    with pytest.raises(ModelPatternError, match='"shared" is a model of several providers') as caught:
        resolve_model("shared", ROWS)
    assert caught.value.candidates == ("local/shared", "router/shared")
    assert "--" not in str(caught.value)


@pytest.mark.parity("models.patterns-credentials")
def test_providers_with_credentials_are_preferred() -> None:
    def only(name: str) -> str:
        return resolve_model("shared", ROWS, has_auth=lambda provider: provider == name).model.key

    assert (only("local"), only("router")) == ("local/shared", "router/shared")
    assert resolve_model("gpt-5", ROWS, has_auth=lambda _: False).model.key == "openai/gpt-5"
    for usable in ({"local", "router"}, set()):
        with pytest.raises(ModelPatternError):
            resolve_model("shared", ROWS, has_auth=usable.__contains__)


@pytest.mark.parity("models.patterns-custom-id")
def test_an_id_that_a_named_provider_does_not_list_is_taken_as_it_is() -> None:
    for pattern, provider in (
        ("openai/gpt-99:low", None),
        ("gpt-99:low", "openai"),
        ("openai/gpt-99:low", "openai"),
    ):
        found = resolve_model(pattern, ROWS, provider)
        assert (found.model.key, found.thinking_level) == ("openai/gpt-99", "low")
        assert (found.model.base_url, found.model.price, found.model.max_tokens) == ("http://openai", None, 7)
        assert found.warning is not None and 'lists no model "gpt-99"' in found.warning


@pytest.mark.parametrize("pattern", ["", " ", "zzz", "nobody/zzz", ":high", "openai/", "/gpt-5x", ":"])
def test_what_means_nothing_is_an_error(pattern: str) -> None:
    with pytest.raises(ModelPatternError, match="No model matches"):
        resolve_model(pattern, ROWS[:6])


def test_an_error_says_what_may_have_been_meant() -> None:
    with pytest.raises(ModelPatternError, match="Close to it: gpt-5"):
        resolve_model("gtp-5", ROWS)
    with pytest.raises(ModelPatternError, match='"hihg" is not a thinking level'):
        resolve_model("gpt-5:hihg", ROWS)
    with pytest.raises(
        ModelPatternError, match=r'No provider "x" has models \(those that have: openai, router, local\)'
    ):
        resolve_model("gpt-5", ROWS, "x")
    with pytest.raises(ModelPatternError, match="No model matches"):
        resolve_model("gpt-5", [])


@given(st.text(max_size=12), st.none() | st.sampled_from(["openai", "local", "x"]))
def test_any_pattern_is_a_model_or_a_clear_error(pattern: str, provider: str | None) -> None:
    try:
        found = resolve_model(pattern, ROWS, provider)
    except ModelPatternError as error:
        assert str(error)
    else:
        assert found.model.id


@given(st.sampled_from(ROWS))
def test_every_model_is_found_by_its_key(model: Model) -> None:
    assert resolve_model(model.key, ROWS).model == model
    assert resolve_model(f"{model.key}:low", ROWS).thinking_level == "low"


@pytest.mark.parametrize(
    ("pattern", "parts"),
    [("a:high", ("a", "high")), ("a:b", ("a:b", None)), ("a", ("a", None)), (":high", (":high", None))],
)
def test_levels_are_split_off(pattern: str, parts: tuple[str, str | None]) -> None:
    assert split_level(pattern) == parts


@pytest.mark.parity("models.scope")
@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (["gpt-4o*"], ["openai/gpt-4o", "openai/gpt-4o-2024-05-13", "openai/gpt-4o-2024-11-20"]),
        (["OPENAI/gpt-5"], ["openai/gpt-5"]),
        (["router/*"], ["router/openai/gpt-5", "router/qwen/qwen3:free", "router/shared"]),
        (["o[0-9]:low", "gpt-?"], ["openai/o3:low", "openai/gpt-5"]),
        (
            ["gpt-5:high", "gpt-5*:low"],
            ["openai/gpt-5:high", "openai/gpt-5-mini:low", "openai/gpt-5-2025-08-07:low"],
        ),
        (["*:7b"], ["local/qwen2.5-coder:7b"]),
    ],
)
def test_lists_take_globs(patterns: list[str], expected: list[str]) -> None:
    scope = match_models(patterns, ROWS)
    shown = [f"{r.model.key}:{r.thinking_level}" if r.thinking_level else r.model.key for r in scope.models]
    assert (shown, scope.warnings) == (expected, ())


def test_a_list_takes_a_shared_model_from_each_provider_and_names_what_means_nothing() -> None:
    scope = match_models(["shared", "zzz*", "yyy"], ROWS)
    assert [found.model.key for found in scope.models] == ["local/shared", "router/shared"]
    assert scope.warnings == (
        'Several providers have "shared": local/shared, router/shared.',
        'No model matches "zzz*".',
        'No model matches "yyy".',
    )


def test_the_catalog_s_models_are_found() -> None:
    rows = Models(environ={}).list()
    for pattern, id in (
        ("sol", "gpt-6.2-sol"),
        ("gpt-6", "gpt-6.2-sol"),
        ("4o", "gpt-4o-mini"),
        ("GPT-6 Sol", "gpt-6-sol"),
    ):
        assert resolve_model(pattern, rows).model.id == id
