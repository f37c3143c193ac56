"""Which model a person means."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cantle_ai.model import Model
from cantle_ai.model_patterns import ModelPatternError, match_models, resolve_model, split_level
from cantle_ai.models import Models
from cantle_ai.usage import Price
from tests.support.reference import evaluated


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


@pytest.mark.parity("models.patterns-part")
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
    with pytest.raises(ModelPatternError, match=r"Close to it: shared(?!, shared)"):
        resolve_model("shred", ROWS)
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
    for pattern, key in (
        ("openai/sol", "openai/gpt-6.2-sol"),
        ("openai/gpt-6", "openai/gpt-6.2-sol"),
        ("openai/4o", "openai/gpt-4o"),
        ("openai/codex", "openai/gpt-5.3-codex"),
        ("vercel-ai-gateway/opus", "vercel-ai-gateway/anthropic/claude-opus-5.5"),
        ("vercel-ai-gateway/sonnet", "vercel-ai-gateway/anthropic/claude-sonnet-5.5"),
        ("openai/GPT-6 Sol", "openai/gpt-6-sol"),
        ("anthropic/sonnet:high", "anthropic/claude-sonnet-5-5"),
        ("openrouter/sonnet", "openrouter/anthropic/claude-sonnet-5.5"),
        ("openrouter/kimi", "openrouter/moonshotai/kimi-k3.1-pro"),
        ("openrouter/gpt-5", "openrouter/openai/gpt-5"),
        ("openrouter/google/gemma-4-31b-it:free", "openrouter/google/gemma-4-31b-it:free"),
        ("fireworks/kimi-k3", "fireworks/accounts/fireworks/models/kimi-k3"),
    ):
        assert resolve_model(pattern, rows).model.key == key


@pytest.mark.parity("models.patterns-credentials")
def test_a_gateway_with_credentials_may_have_the_very_id_that_names_another_provider() -> None:
    """`openai/gpt-5` is a model of OpenAI's, and an id of the router's."""

    def meant(*usable: str) -> str:
        return resolve_model("openai/gpt-5:low", ROWS, has_auth=usable.__contains__).model.key

    assert (meant("router"), meant("openai")) == ("router/openai/gpt-5", "openai/gpt-5")
    assert meant("openai", "router") == meant() == "openai/gpt-5"
    scope = match_models(["openai/gpt-5"], ROWS, has_auth=lambda provider: provider == "router")
    assert [found.model.key for found in scope.models] == ["router/openai/gpt-5"]


@pytest.mark.parity("models.patterns-part")
def test_a_variant_of_a_model_and_another_name_for_one_are_meant_only_by_name() -> None:
    rows = [
        row("r", "m/sonnet-5"),
        row("r", "m/sonnet-5:batch"),
        row("r", "m/sonnet-5-fast"),
        row("r", "~m/sonnet-latest"),
        row("r", "odd:batch"),
        row("r", "opus-5"),
        row("r", "opus-5-5"),
    ]
    assert resolve_model("sonnet", rows).model.id == "m/sonnet-5"
    assert resolve_model("sonnet-5:batch", rows).model.id == "m/sonnet-5:batch"
    assert resolve_model("fast", rows).model.id == "m/sonnet-5-fast"
    assert resolve_model("opus", rows).model.id == "opus-5-5"
    assert resolve_model("latest", rows).model.id == "~m/sonnet-latest"
    assert resolve_model("batch", rows).model.id == "odd:batch"


@pytest.mark.reference
@pytest.mark.parity("models.patterns")
def test_names_in_full_mean_the_same_models_as_in_the_reference() -> None:
    texts = [
        "gpt-5", "gpt-5:high", "GPT-5", "openai/gpt-5", "openai/gpt-5:low", "OPENAI/GPT-5", "claude-opus-5-5:max",
        "anthropic/claude-opus-5-5", "google/gemma-4-31b-it:free", "openrouter/google/gemma-4-31b-it:free",
        "openrouter/google/gemma-4-31b-it:free:high", "moonshotai/kimi-k2.7-code", "zai/glm-5.3", "openrouter/auto",
        "us.anthropic.claude-opus-5-5", "~anthropic/claude-opus-latest", "openrouter/~deepseek/deepseek-pro-latest",
        "anthropic/sonnet", "nothing-at-all",
    ]  # fmt: skip
    usable = [[], ["openai"], ["anthropic"], ["openrouter"], ["openai", "openrouter"]]
    cases = [[text, names] for text in texts for names in usable]
    script = f"""
        import {{ resolve }} from "node:path";
        import {{ pathToFileURL }} from "node:url";
        import {{ builtinProviders }} from "@earendil-works/pi-ai/providers/all";
        const path = resolve("node_modules/@earendil-works/pi-coding-agent/dist/core/model-resolver.js");
        const {{ resolveModelReference }} = await import(pathToFileURL(path).href);
        const models = builtinProviders().filter(({{ id }}) => id !== "radius").flatMap((row) => row.getModels());
        const told = {json.dumps(cases)}.map(([text, usable]) => {{
            const asked = {{ text, thinkingSuffix: "strict", fuzzy: true }};
            const found = resolveModelReference(asked, models, (id) => usable.includes(id));
            const {{ provider, id }} = found.model ?? {{}};
            return found.status === "resolved" ? [`${{provider}}/${{id}}`, found.thinkingLevel ?? null] : found.status;
        }});
        console.log(JSON.stringify(told));
    """
    rows = [model for model in Models(environ={}).list() if model.provider != "local"]

    def ours(text: str, usable: list[str]) -> list[str | None] | str:
        try:
            found = resolve_model(text, rows, has_auth=usable.__contains__)
        except ModelPatternError as error:
            return "ambiguous" if error.candidates else "not-found"
        return [found.model.key, found.thinking_level]

    differing = {
        f"{text} {names}": (mine, theirs)
        for (text, names), theirs in zip(cases, evaluated(script), strict=True)
        if (mine := ours(str(text), list(names))) != theirs
    }
    assert differing == {}
