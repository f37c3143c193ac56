"""The rows of providers and the catalog's data hold together."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from cantle_ai.apis.compat_table import COMPAT, quirks_of
from cantle_ai.catalog import FOLDER, load_catalog
from cantle_ai.codec import decode_object
from cantle_ai.fields import Fields
from cantle_ai.model import THINKING_LEVELS, Model, Provider
from cantle_ai.model_entries import new_model, read_model_entry
from cantle_ai.models import Models
from cantle_ai.providers import BUILTIN_PROVIDERS, LOCAL_API, WIRE_APIS

ROWS = {row.id: row for row in BUILTIN_PROVIDERS}
MODELS = {row.id: load_catalog(row) for row in BUILTIN_PROVIDERS}
EVERY_MODEL = [model for models in MODELS.values() for model in models]
WORKED_OUT = (LOCAL_API, "azure-openai-responses", "google-vertex", "bedrock-converse-stream")
"""APIs that find their address in the environment, or need none."""
PRICE_OF_THE_SAME = 1.05
"""A cached token may cost a little more than a fresh one where two of a gateway's figures are of different days."""

rows = pytest.mark.parametrize("row", BUILTIN_PROVIDERS, ids=lambda row: row.id)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.name)
def test_figures_say_where_and_when_they_were_taken(path: Path) -> None:
    raw = decode_object(path.read_bytes())
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", str(raw["date"])) and raw["source"]
    assert raw["provider"] == path.stem and path.stem in ROWS


@rows
def test_a_row_is_whole(row: Provider) -> None:
    assert re.fullmatch(r"[a-z0-9]+([-.][a-z0-9]+)*", row.id) and row.name
    assert row.key_variables or row.key_optional or row.login or row.ambient
    assert set(row.key_kinds) <= set(row.key_variables)
    assert all(re.fullmatch(r"[A-Z][A-Z0-9_]*", name) for name in row.key_variables)
    for address in (row.base_url, *row.endpoints.values()):
        scheme = "https" if row.server is None else "http"  # on this machine
        assert not address or re.fullmatch(scheme + r"://[^/\s]+(/[^\s]*[^/\s])?", address), address
    assert row.base_url or row.api in WORKED_OUT


def test_each_provider_has_one_row() -> None:
    assert len(ROWS) == len(BUILTIN_PROVIDERS)


@rows
def test_every_provider_has_models_that_can_be_asked(row: Provider) -> None:
    models = MODELS[row.id]
    if row.server is not None:
        assert not models  # they are asked for
        return
    assert models and len({model.id for model in models}) == len(models)
    assert {model.api for model in models} <= set(WIRE_APIS)
    assert all(model.provider == row.id for model in models)
    assert row.api in {model.api for model in models}
    assert row.base_url == "" or all(model.base_url for model in models)


@rows
def test_an_entry_of_the_catalog_means_what_it_means_in_models_json(row: Provider) -> None:
    raw = Fields(decode_object((FOLDER / f"{row.id}.json").read_bytes() if MODELS[row.id] else b"{}"), "")
    defaults = raw.json_object("defaults") or {}
    for model, entry in zip(MODELS[row.id], raw.items("models") or (), strict=True):
        assert isinstance(entry, dict)
        shared = defaults.get(str(entry.get("api", row.api))) or {}
        assert isinstance(shared, dict)
        assert model == new_model(read_model_entry(Fields({**shared, **entry}, "")), row)


@rows
def test_every_quirk_is_one_of_its_api(row: Provider) -> None:
    """A name that is misspelt, or that no API reads, would go unnoticed otherwise: requests pass over it."""
    apis = {row.api, *row.endpoints, *(model.api for model in MODELS[row.id])}
    if row.api == "openai-responses":
        apis.add("openai-completions")  # is spoken at the same address, by models that a person adds
    assert set(row.compat) <= {name for api in apis for name in quirks_of(api)}
    for api in apis & set(COMPAT):
        msgspec.convert(row.compat, COMPAT[api]())
    for model in MODELS[row.id]:
        assert set(model.compat) <= set(quirks_of(model.api)), model.id
        if model.compat:
            msgspec.convert(model.compat, COMPAT[model.api]())


@rows
def test_the_figures_of_models_are_possible(row: Provider) -> None:
    for model in MODELS[row.id]:
        assert model.name, model.id
        assert 0 < model.max_tokens <= model.context_window, model.id
        assert set(model.thinking_levels) <= set(THINKING_LEVELS), model.id
        assert model.levels(), model.id
        price = model.price
        for rates in () if price is None else (price, *price.tiers):
            assert 0 <= rates.read <= rates.input * PRICE_OF_THE_SAME, model.id
            assert rates.read or not rates.input, model.id
            assert rates.output >= 0 and (rates.cache_write is None or rates.cache_write >= 0), model.id


@pytest.mark.parity("models.unpriced")
def test_a_price_of_nothing_is_one_only_for_what_is_free() -> None:
    priced = [model for model in EVERY_MODEL if model.price is not None]
    free = [
        model for model in priced if model.price is not None and model.price.input == model.price.output == 0
    ]
    assert {model.provider for model in free if "free" not in model.id.lower()} == {"local"}
    assert len(priced) > 0.9 * len(EVERY_MODEL)


def test_a_provider_without_a_file_has_no_models() -> None:
    assert load_catalog(Provider(id="nobody", name="", base_url="", api="")) == []


def found(provider: str, id: str) -> Model:
    return next(model for model in MODELS[provider] if model.id == id)


@pytest.mark.parity("models.prompt-cache-life")
@pytest.mark.parity("models.catalog-figures")
def test_some_known_figures() -> None:
    model = found("openai", "gpt-5.4")
    assert model.price is not None
    assert (model.price.input, model.price.output, model.price.cache_read) == (2.5, 15, 0.25)
    assert (model.price.tiers[0].input_tokens_above, model.price.tiers[0].output) == (272_000, 22.5)
    assert (model.context_window, model.max_tokens) == (272_000, 128_000)
    assert model.levels() == ("off", "low", "medium", "high", "xhigh")
    assert found("openai", "gpt-5").levels() == ("minimal", "low", "medium", "high")
    assert found("openai", "gpt-4o").levels() == ("off",) and "image" in found("openai", "gpt-4o").input
    claude = found("anthropic", "claude-haiku-4-5")
    assert claude.price is not None
    assert (claude.price.input, claude.price.short_write, claude.price.long_write) == (1, 1.25, 2)
    assert dict(claude.prompt_cache) == {"short": 300, "long": 3600}
    assert claude.input_limits["maxRequestBytes"] == 32 * 1024 * 1024


@pytest.mark.parity("models.first-model")
@pytest.mark.parametrize(
    ("provider", "id"),
    [
        ("openai", "gpt-6.2-sol"),
        ("anthropic", "claude-opus-5-5"),
        ("google", "gemini-4-argon"),
        ("openrouter", "moonshotai/kimi-k2.7-code"),
        ("amazon-bedrock", "us.anthropic.claude-opus-5-5"),
        ("mistral", "devstral-medium-latest"),
    ],
)
def test_the_model_to_begin_with_stands_first(provider: str, id: str) -> None:
    assert MODELS[provider][0].id == id


def test_a_model_stands_where_its_api_is_spoken() -> None:
    apis = {model.api: model.base_url for model in MODELS["opencode"]}
    assert apis["anthropic-messages"] == "https://opencode.ai/inference/anthropic"
    assert apis["google-generative-ai"] == "https://opencode.ai/inference/google/v1beta"
    assert apis["openai-completions"] == "https://opencode.ai/inference/openai/v1"


@pytest.mark.parity("models.providers")
def test_the_providers_of_the_reference_are_there() -> None:
    """All that its page on providers lists, but those that serve no chat over an API of anybody else's."""
    assert {
        "amazon-bedrock", "ant-ling", "anthropic", "azure", "baseten", "cerebras", "cloudflare-ai-gateway",
        "cloudflare-workers-ai", "deepseek", "fireworks", "github-copilot", "google", "google-vertex", "groq",
        "huggingface", "kimi-coding", "meta", "minimax", "minimax-cn", "mistral", "moonshotai", "moonshotai-cn",
        "nvidia", "openai", "openai-codex", "opencode", "opencode-go", "openrouter", "qwen-token-plan",
        "qwen-token-plan-cn", "qwen-token-plan-individual", "qwen-token-plan-individual-cn", "together",
        "vercel-ai-gateway", "xai", "xiaomi", "xiaomi-token-plan-ams", "xiaomi-token-plan-cn",
        "xiaomi-token-plan-sgp", "zai", "zai-coding-cn",
    } <= set(ROWS)  # fmt: skip


def test_ant_ling_s_models_can_be_asked_with_its_key() -> None:
    models = Models(environ={"ANT_LING_API_KEY": "k"})
    assert models.configured("ant-ling")
    ring = models.find("ant-ling", "Ring-2.6-1T")
    assert ring is not None and ring.base_url == "https://api.ant-ling.com/v1"
    assert (ring.levels(), ring.price is not None) == (("high", "xhigh"), True)


@pytest.mark.parity("models.long-retention")
def test_a_long_life_of_the_cache_is_asked_for_where_it_is_known_to_be_had() -> None:
    field = "supportsLongCacheRetention"
    said = {
        model.provider
        for model in EVERY_MODEL
        if model.api == "openai-completions" and {**ROWS[model.provider].compat, **model.compat}.get(field)
    }
    assert said == {"openrouter"}
    marked = [model for model in MODELS["openrouter"] if model.compat.get(field)]
    assert marked and all(model.compat.get("cacheControlFormat") == "anthropic" for model in marked)


@pytest.mark.fault("B10")
def test_b10_rows_name_the_field_of_the_output_limit() -> None:
    asked = {
        row.id
        for row in BUILTIN_PROVIDERS
        if row.server is None and row.compat.get("maxTokensField") == "max_tokens"
    }
    assert asked == {
        "ant-ling", "baseten", "cloudflare-ai-gateway", "deepseek", "kimi-coding", "moonshotai", "moonshotai-cn",
        "nvidia", "opencode", "opencode-go", "together", "zai", "zai-coding-cn",
    }  # fmt: skip


@pytest.mark.fault("B01")
def test_b01_only_openai_is_told_in_the_role_of_a_developer_over_chat_completions() -> None:
    told = {
        model.provider
        for model in EVERY_MODEL
        if model.api == "openai-completions"
        and {**ROWS[model.provider].compat, **model.compat}.get("supportsDeveloperRole")
    }
    assert told == set() and ROWS["openai"].compat["supportsDeveloperRole"] is True


@pytest.mark.parametrize(
    ("key", "factor"),
    [("openai/gpt-5.5", 2.5), ("opencode/gpt-5.5", 2.5), ("openai/gpt-4.1", 1.75), ("openai/gpt-5.4", 2)],
)
def test_what_is_served_with_priority_costs_what_its_model_asks_for_that(key: str, factor: float) -> None:
    from cantle_ai.apis.openai_responses_compat import compat_of
    from cantle_ai.apis.openai_responses_tiers import at_tier
    from cantle_ai.usage import Usage, cost_of

    model = next(model for model in EVERY_MODEL if model.key == key)
    usage = Usage(input=1000, output=10)
    list_price = cost_of(usage, model.price).total
    for tier in ("priority", "fast"):
        told = at_tier(usage, model.price, tier, compat_of(model).service_tier_prices)
        assert told.cost.total == pytest.approx(factor * list_price)
