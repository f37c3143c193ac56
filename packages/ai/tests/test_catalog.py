"""The catalog's data holds together."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import cantle_ai.catalog
from cantle_ai.catalog import load_catalog
from cantle_ai.codec import decode_object
from cantle_ai.model import THINKING_LEVELS, Model, Provider
from cantle_ai.providers import BUILTIN_PROVIDERS, WIRE_APIS

FOLDER = Path(cantle_ai.catalog.__file__).parent
MODELS = [model for provider in BUILTIN_PROVIDERS for model in load_catalog(provider)]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.name)
def test_figures_say_where_and_when_they_were_taken(path: Path) -> None:
    raw = decode_object(path.read_bytes())
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", str(raw["date"])) and raw["source"]
    assert raw["provider"] == path.stem and path.stem in {provider.id for provider in BUILTIN_PROVIDERS}


@pytest.mark.parametrize("provider", BUILTIN_PROVIDERS, ids=lambda provider: provider.id)
def test_every_provider_has_models_that_can_be_asked(provider: Provider) -> None:
    models = load_catalog(provider)
    assert models and len({model.id for model in models}) == len(models)
    assert provider.key_variables or provider.key_optional
    assert all(model.api in WIRE_APIS and model.base_url == provider.base_url for model in models)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.id)
def test_the_figures_of_a_model_are_possible(model: Model) -> None:
    assert model.name and model.price is not None
    assert 0 < model.max_tokens <= model.context_window
    assert set(model.thinking_levels) <= set(THINKING_LEVELS)
    assert model.levels()
    assert 0 <= model.price.cache_read <= model.price.input <= model.price.output
    assert all(tier.input > model.price.input for tier in model.price.tiers)


def test_a_provider_without_a_file_has_no_models() -> None:
    assert load_catalog(Provider(id="nobody", name="", base_url="", api="")) == []


@pytest.mark.parity("models.catalog-figures")
def test_some_known_figures() -> None:
    models = {model.id: model for model in MODELS}
    model = models["gpt-5.4"]
    assert model.price is not None
    assert (model.price.input, model.price.output, model.price.cache_read) == (2.5, 15, 0.25)
    assert (model.price.tiers[0].input_tokens_above, model.price.tiers[0].output) == (272_000, 22.5)
    assert (model.context_window, model.max_tokens) == (272_000, 128_000)
    assert model.levels() == ("off", "low", "medium", "high", "xhigh")
    assert models["gpt-5"].levels() == ("minimal", "low", "medium", "high")
    assert models["gpt-4o"].levels() == ("off",) and "image" in models["gpt-4o"].input
    assert MODELS[0].id == "gpt-6.2-sol"
