"""`models.json`: what it may say, and what is said about mistakes in it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cantle_ai.codec import Json, JsonObject
from cantle_ai.errors import ConfigurationError
from cantle_ai.model import Model, Provider
from cantle_ai.model_entries import ModelEntry
from cantle_ai.models import Models
from cantle_ai.models_file import load_models_file
from cantle_ai.providers import BUILTIN_PROVIDERS
from cantle_ai.usage import Price, PriceTier
from tests.support.paths import ROOT

LOCAL: dict[str, Any] = {
    "baseUrl": "http://127.0.0.1:1/v1",
    "api": "openai-completions",
    "models": [{"id": "m"}],
}


def written(tmp_path: Path, value: Json | str) -> Path:
    path = tmp_path / "models.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def models(tmp_path: Path, value: Json | str) -> Models:
    result = Models(environ={})
    result.apply(load_models_file(written(tmp_path, value)))
    return result


def found(runtime: Models, provider: str, model: str) -> Model:
    result = runtime.find(provider, model)
    assert result is not None
    return result


@pytest.mark.parametrize(
    "text", ["", "{}", "// nothing", '{"providers": {}}', '{"providers": null}', "\ufeff{}"]
)
def test_a_file_may_say_nothing(tmp_path: Path, text: str) -> None:
    file = load_models_file(written(tmp_path, text))
    assert (dict(file.providers), dict(file.models), file.warnings) == ({}, {}, ())


def test_a_file_need_not_exist(tmp_path: Path) -> None:
    assert load_models_file(tmp_path / "models.json").providers == {}


def test_the_path_may_be_a_text(tmp_path: Path) -> None:
    path = written(tmp_path, {"providers": {"p": LOCAL}})
    assert load_models_file(str(path)) == load_models_file(path)
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_models_file(str(tmp_path))


@pytest.mark.parity("models.defaults")
def test_a_model_needs_no_more_than_an_id(tmp_path: Path) -> None:
    model = found(models(tmp_path, {"providers": {"p": LOCAL}}), "p", "m")
    assert model == Model(id="m", provider="p", api="openai-completions", base_url="http://127.0.0.1:1/v1")
    assert (model.context_window, model.max_tokens, model.input, model.reasoning) == (
        128_000,
        16_384,
        ("text",),
        False,
    )
    assert model.price is None


@pytest.mark.parity("models.prompt-cache-life")
@pytest.mark.parity("models.fields")
def test_every_field_of_a_model_arrives(tmp_path: Path) -> None:
    entry: JsonObject = {
        "id": "org/m:7b",
        "name": "M",
        "api": "other-api",
        "baseUrl": "http://127.0.0.1:2",
        "reasoning": True,
        "thinkingLevelMap": {"off": None, "high": "hard"},
        "input": ["text", "image"],
        "inputLimits": {"images": {"maxPerRequest": 3}},
        "cost": {
            "input": 1,
            "output": 2.5,
            "cacheRead": 0.1,
            "cacheWrite": 0,
            "tiers": [{"inputTokensAbove": 1000, "input": 2, "output": 5, "cacheRead": 0.2, "cacheWrite": 0}],
        },
        "promptCache": {"short": 300},
        "contextWindow": 32768,
        "maxTokens": 4096.0,
        "samplingParams": {"top_k": 20},
        "samplingParamsByThinkingLevel": {"high": {"top_k": 5}},
        "headers": {"X-A": "$A"},
        "compat": {"supportsStore": False},
        "somethingNew": [1],
    }
    provider: JsonObject = {**LOCAL, "models": [entry], "alsoNew": {}}
    model = found(models(tmp_path, {"$schema": "x", "providers": {"p": provider}}), "p", "org/m:7b")
    tier = PriceTier(input_tokens_above=1000, input=2, output=5, cache_read=0.2, cache_write=0)
    assert model == Model(
        id="org/m:7b",
        provider="p",
        name="M",
        api="other-api",
        base_url="http://127.0.0.1:2",
        reasoning=True,
        thinking_levels={"off": None, "high": "hard"},
        input=("text", "image"),
        input_limits={"images": {"maxPerRequest": 3}},
        price=Price(input=1, output=2.5, cache_read=0.1, cache_write=0, tiers=(tier,)),
        prompt_cache={"short": 300},
        context_window=32768,
        max_tokens=4096,
        sampling={"top_k": 20},
        sampling_by_level={"high": {"top_k": 5}},
        headers={"X-A": "$A"},
        compat={"supportsStore": False},
    )


def test_every_field_of_a_provider_arrives(tmp_path: Path) -> None:
    entry: JsonObject = {
        **LOCAL,
        "name": "Local",
        "apiKey": "$KEY",
        "headers": {"X-B": "b"},
        "compat": {"supportsStore": False},
        "authHeader": True,
    }
    provider = models(tmp_path, {"providers": {"p": entry}}).provider("p")
    assert provider is not None
    assert (provider.name, provider.api_key, provider.auth_header) == ("Local", "$KEY", True)
    assert (dict(provider.headers), dict(provider.compat)) == ({"X-B": "b"}, {"supportsStore": False})
    assert (provider.base_url, provider.api) == ("http://127.0.0.1:1/v1", "openai-completions")


def test_a_provider_may_be_a_server_that_is_asked(tmp_path: Path) -> None:
    entry: JsonObject = {"baseUrl": "http://127.0.0.1:1/v1", "api": "openai-completions", "server": "openai"}
    file = load_models_file(
        written(tmp_path, {"providers": {"mine": entry, "vllm": {"server": "llama.cpp"}}})
    )
    runtime = Models(environ={})
    runtime.apply(file)
    mine, known = runtime.provider("mine"), runtime.provider("vllm")
    assert mine is not None and known is not None and file.warnings == ()
    assert (mine.server, mine.key_optional, mine.automatic) == ("openai", True, False)
    assert (known.server, known.base_url) == ("llama.cpp", "http://127.0.0.1:8000/v1")


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ({"server": "ollama", "api": "x"}, "providers.p.baseUrl is missing"),
        ({"server": "ollama", "baseUrl": "http://127.0.0.1:1"}, "providers.p.api is missing"),
        (
            {**LOCAL, "server": "Ollama"},
            "providers.p.server must be one of llama.cpp, ollama, lm-studio, openai",
        ),
    ],
)
def test_a_server_is_whole_and_of_a_known_kind(tmp_path: Path, entry: JsonObject, text: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(text)):
        load_models_file(written(tmp_path, {"providers": {"p": entry}}))


def test_a_server_whose_models_are_listed_may_be_taken_unasked(tmp_path: Path) -> None:
    listed: JsonObject = {"models": [{"id": "m"}]}
    moved: JsonObject = {"baseUrl": "http://127.0.0.1:1/v1"}
    runtime = models(
        tmp_path,
        {
            "providers": {
                "ollama": {**LOCAL, **listed},
                "vllm": moved,
                "local": {"models": [{"id": "m", "baseUrl": "m.gguf"}]},
            }
        },
    )
    automatic = {row.id: row.automatic for row in runtime.providers}
    assert (automatic["ollama"], automatic["vllm"], automatic["local"]) == (True, False, False)


@pytest.mark.parity("models.provider-base-url")
def test_a_known_provider_can_be_sent_elsewhere(tmp_path: Path) -> None:
    changed = models(tmp_path, {"providers": {"openai": {"baseUrl": "http://127.0.0.1:9/v1"}}})
    plain = Models(environ={})
    assert {model.base_url for model in changed.list("openai")} == {"http://127.0.0.1:9/v1"}
    assert [model.id for model in changed.list("openai")] == [model.id for model in plain.list("openai")]
    provider = changed.provider("openai")
    assert provider is not None and provider.key_variables == ("OPENAI_API_KEY",)


def test_the_models_of_a_known_provider_keep_what_is_known_of_them(tmp_path: Path) -> None:
    added: JsonObject = {"api": "openai-completions", "models": [{"id": "mine"}]}
    changed, plain = models(tmp_path, {"providers": {"openai": added}}), Models(environ={})
    assert found(changed, "openai", "mine").api == "openai-completions"
    assert [model for model in changed.list("openai") if model.id != "mine"] == plain.list("openai")


@pytest.mark.parity("models.gateway-address")
def test_another_address_of_a_gateway_is_that_of_all_its_apis(tmp_path: Path) -> None:
    added: list[Json] = [{"id": "mine", "api": "anthropic-messages"}]
    moved: JsonObject = {"baseUrl": "http://127.0.0.1:1/proxy", "models": added}
    changed = models(tmp_path, {"providers": {"opencode": moved}}).list("opencode")
    assert len({model.api for model in changed}) == 4
    assert {model.base_url for model in changed} == {"http://127.0.0.1:1/proxy"}
    plain = models(tmp_path, {"providers": {"opencode": {"models": added}}})
    assert found(plain, "opencode", "mine").base_url == "https://opencode.ai/inference/anthropic"


@pytest.mark.parity("models.added-models")
def test_an_entry_adds_a_model_or_replaces_one(tmp_path: Path) -> None:
    entries: list[Json] = [{"id": "gpt-5", "maxTokens": 5}, {"id": "mine"}]
    changed = models(tmp_path, {"providers": {"openai": {"models": entries}}})
    assert found(changed, "openai", "gpt-5").max_tokens == 5
    assert found(changed, "openai", "gpt-5").price is None
    assert found(changed, "openai", "mine").base_url == "https://api.openai.com/v1"
    assert found(changed, "openai", "mine").api == "openai-responses"
    assert len(changed.list("openai")) == len(Models(environ={}).list("openai")) + 1


@pytest.mark.parity("models.overrides")
def test_an_override_changes_fields_and_merges_objects(tmp_path: Path) -> None:
    before = found(Models(environ={}), "openai", "gpt-5.4")
    override: JsonObject = {
        "name": "Mine",
        "contextWindow": 1000,
        "cost": {"input": 9},
        "thinkingLevelMap": {"low": None},
        "compat": {"supportsStore": True},
        "inputLimits": {"images": {"maxPerRequest": 2}},
        "samplingParamsByThinkingLevel": {"high": {"a": 1}},
    }
    entry: JsonObject = {"modelOverrides": {"gpt-5.4": override, "no-such-model": {"name": "x"}}}
    after = found(models(tmp_path, {"providers": {"openai": entry}}), "openai", "gpt-5.4")
    assert (after.name, after.context_window, after.max_tokens) == ("Mine", 1000, before.max_tokens)
    assert before.price is not None and after.price is not None
    assert (after.price.input, after.price.output) == (9, before.price.output)
    assert after.price.tiers == before.price.tiers
    assert after.thinking_levels == {**before.thinking_levels, "low": None}
    assert after.compat == {**before.compat, "supportsStore": True}
    limits, old = after.input_limits["images"], before.input_limits["images"]
    assert isinstance(limits, dict) and isinstance(old, dict)
    assert limits == {**old, "maxPerRequest": 2}
    assert after.sampling_by_level == {"high": {"a": 1}}


MISTAKES: list[tuple[Json, str]] = [
    ([], "the file must be an object, not a list"),
    ({"providers": []}, "providers must be an object, not a list"),
    ({"providers": {"p": 5}}, "providers.p must be an object, not a number"),
    ({"providers": {"p": {**LOCAL, "apiKey": 5}}}, "providers.p.apiKey must be a string, not a number"),
    (
        {"providers": {"p": {**LOCAL, "headers": {"a": 1}}}},
        "providers.p.headers.a must be a string, not a number",
    ),
    ({"providers": {"p": {**LOCAL, "authHeader": "yes"}}}, "providers.p.authHeader must be true or false"),
    ({"providers": {"p": {"api": "x", "models": [{"id": "m"}]}}}, "providers.p.baseUrl is missing"),
    ({"providers": {"p": {"baseUrl": "x", "models": [{"id": "m"}]}}}, "providers.p.api is missing"),
    ({"providers": {"openai": {"models": {}}}}, "providers.openai.models must be a list, not an object"),
    (
        {"providers": {"openai": {"models": ["gpt"]}}},
        "providers.openai.models[0] must be an object, not a string",
    ),
    ({"providers": {"openai": {"models": [{}]}}}, "providers.openai.models[0].id is missing"),
    ({"providers": {"openai": {"models": [{"id": ""}]}}}, "providers.openai.models[0].id must not be empty"),
]
FIELDS: list[tuple[JsonObject, str]] = [
    ({"reasoning": "yes"}, "reasoning must be true or false, not a string"),
    ({"contextWindow": "128k"}, "contextWindow must be a number, not a string"),
    ({"contextWindow": 0}, "contextWindow must be a whole number above 0"),
    ({"maxTokens": 1.5}, "maxTokens must be a whole number above 0"),
    ({"maxTokens": True}, "maxTokens must be a number, not true or false"),
    ({"input": ["text", "audio"]}, 'input must be a list of "text" and "image"'),
    ({"input": "text"}, "input must be a list, not a string"),
    ({"cost": {"input": 1}}, "cost.output is missing"),
    ({"cost": {"input": -1}}, "cost.input must be a number that is not negative"),
    (
        {"cost": {"input": 1, "output": 1, "cacheRead": 1, "cacheWrite": 1, "tiers": [{}]}},
        "cost.tiers[0].inputTokens",
    ),
    ({"thinkingLevelMap": {"high": 3}}, "thinkingLevelMap.high must be a string, not a number"),
    ({"samplingParams": []}, "samplingParams must be an object, not a list"),
    (
        {"samplingParamsByThinkingLevel": {"hard": {}}},
        "samplingParamsByThinkingLevel.hard is not a thinking level",
    ),
    ({"promptCache": {"short": "5m"}}, "promptCache.short must be a number, not a string"),
    ({"compat": True}, "compat must be an object, not true or false"),
    ({"thinkingLevelMap": {"highest": "x"}}, "thinkingLevelMap.highest is not a thinking level"),
    (
        {"inputLimits": {"maxRequestBytes": "1M"}},
        "inputLimits.maxRequestBytes must be a number, not a string",
    ),
    (
        {"inputLimits": {"images": {"maxPerMessage": 0}}},
        "inputLimits.images.maxPerMessage must be a whole number",
    ),
    ({"inputLimits": {"images": {"maxPerRequest": 1.5}}}, "inputLimits.images.maxPerRequest must be a whole"),
    ({"inputLimits": {"images": []}}, "inputLimits.images must be an object, not a list"),
    (
        {"inputLimits": {"images": {"resize": {"maxWidth": -1}}}},
        "inputLimits.images.resize.maxWidth must be a number that is not negative",
    ),
]
MISTAKES += [
    ({"providers": {"openai": {"models": [{"id": "m", **field}]}}}, f"providers.openai.models[0].{text}")
    for field, text in FIELDS
]


@pytest.mark.parametrize(("value", "text"), MISTAKES, ids=[text for _, text in MISTAKES])
def test_a_wrong_field_is_named_with_its_path(tmp_path: Path, value: Json, text: str) -> None:
    path = written(tmp_path, value)
    before = path.read_bytes()
    with pytest.raises(ConfigurationError, match=re.escape(f"{path}: {text}")):
        load_models_file(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (
            {**LOCAL, "compat": {"supportsStore": "yes"}},
            "providers.p.compat.supportsStore is wrong: expected `bool`, got `str`",
        ),
        (
            {**LOCAL, "models": [{"id": "a"}, {"id": "b", "compat": {"maxTokensField": "x"}}]},
            "providers.p.models[1].compat.maxTokensField is wrong: invalid enum value 'x'",
        ),
        (
            {
                **LOCAL,
                "models": [{"id": "a", "api": "anthropic-messages", "compat": {"supportsTemperature": 1}}],
            },
            "providers.p.models[0].compat.supportsTemperature is wrong: expected `bool`, got `int`",
        ),
    ],
)
def test_a_quirk_of_the_wrong_kind_is_named_with_its_path(
    tmp_path: Path, entry: JsonObject, text: str
) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(text)) as caught:
        load_models_file(written(tmp_path, {"providers": {"p": entry}}))
    assert "models.json" in str(caught.value)


def test_quirks_of_other_apis_may_be_anything(tmp_path: Path) -> None:
    entry: JsonObject = {**LOCAL, "compat": {"supportsTemperature": "no", "of the future": {}}}
    other: JsonObject = {**LOCAL, "api": "mine", "compat": {"supportsStore": "yes"}}
    assert models(tmp_path, {"providers": {"p": entry, "q": other}}).list("q")


def test_nan_is_no_number(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="contextWindow must be a number that is not negative"):
        models(tmp_path, '{"providers": {"openai": {"models": [{"id": "m", "contextWindow": NaN}]}}}')


def test_bad_json_is_found_by_line_and_column(tmp_path: Path) -> None:
    path = written(tmp_path, '{\n  "providers": {\n    "p": }\n}')
    with pytest.raises(ConfigurationError, match=re.escape(f"{path}: line 3, column 10: expecting value")):
        load_models_file(path)


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_models_file(tmp_path)


@pytest.mark.parity("models.own-gateway")
def test_a_login_flow_of_the_reference_is_refused_in_a_sentence(tmp_path: Path) -> None:
    value: JsonObject = {"providers": {"p": {**LOCAL, "oauth": "radius"}, "q": {"apiKey": "k"}}}
    file = load_models_file(written(tmp_path, value))
    assert [warning.partition(": ")[2] for warning in file.warnings] == [
        "providers.p.oauth asks for a login that is not built in; give the provider an apiKey.",
        "providers.q is not a known provider and lists no models.",
    ]
    runtime = Models(environ={})
    runtime.apply(file)
    assert {provider.id for provider in runtime.providers} - {row.id for row in BUILTIN_PROVIDERS} == {"p"}


def test_a_part_of_a_price_is_none(tmp_path: Path) -> None:
    """A model without prices, of which somebody knows one, costs what nobody knows."""
    runtime = Models(environ={})
    runtime.add_provider(Provider(id="p", name="P", base_url="", api="x"), [ModelEntry(id="m")])
    part: JsonObject = {"input": 1}
    for cost, price in (
        (part, None),
        ({**part, "output": 2, "cacheRead": 0}, Price(input=1, output=2, cache_read=0)),
    ):
        value: JsonObject = {"providers": {"p": {"modelOverrides": {"m": {"cost": cost}}}}}
        runtime.apply(load_models_file(written(tmp_path, value), known=["p"]))
        assert found(runtime, "p", "m").price == price


def test_null_counts_as_absent(tmp_path: Path) -> None:
    entry: JsonObject = {
        **LOCAL,
        "apiKey": None,
        "models": [{"id": "m", "name": None, "cost": None, "input": None}],
    }
    value: JsonObject = {"providers": {"p": entry, "q": None}}
    assert found(models(tmp_path, value), "p", "m").price is None


def test_models_may_say_for_themselves_where_they_are(tmp_path: Path) -> None:
    entries: list[Json] = [{"id": "a", "baseUrl": "http://127.0.0.1:1", "api": "x"}]
    model = found(models(tmp_path, {"providers": {"p": {"models": entries}}}), "p", "a")
    assert (model.base_url, model.api) == ("http://127.0.0.1:1", "x")


def test_the_documented_example_loads(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "formats" / "models.md").read_text(encoding="utf-8")
    example = re.search(r"```json\n(.*?)```", page, re.DOTALL)
    assert example is not None
    runtime = models(tmp_path, example[1])
    assert [provider.id for provider in runtime.providers] == [*(row.id for row in BUILTIN_PROVIDERS), "home"]
    assert found(runtime, "home", "qwen2.5-coder:7b").context_window == 32_768
    assert found(runtime, "openai", "gpt-5").max_tokens == 32_000
    assert runtime.configured("home")
