"""A model as configuration describes it, and how such a description becomes, or changes, a :class:`Model`.

The same shape stands in `models.json` (:mod:`cantle_ai.models_file`) and in the catalog's data.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, cast

import msgspec
from msgspec import Struct

from cantle_ai.codec import Json, JsonObject
from cantle_ai.fields import FieldError, Fields
from cantle_ai.model import THINKING_LEVELS, Model, Provider
from cantle_ai.usage import Price, PriceTier

__all__ = ["ModelEntry", "changed_model", "new_model", "read_model_entry"]

_RATES = {
    "input": "input",
    "output": "output",
    "cacheRead": "cache_read",
    "cacheWrite": "cache_write",
    "cacheWrite1h": "cache_write_1h",
}
_PRICED = {"input", "output"}
_DERIVED = ("cacheRead", "cacheWrite", "cacheWrite1h")
"""Rates that follow from the input's where they are not given."""
_REQUEST = ("maxRequestBytes",)
_IMAGES = ("maxPerMessage", "maxPerRequest")
_RESIZE = ("maxWidth", "maxHeight", "maxBytes", "jpegQuality")
_INPUT_KINDS = ("text", "image")


class ModelEntry(Struct, frozen=True, kw_only=True):
    """What an entry says; None where it is silent."""

    id: str
    name: str | None = None
    api: str | None = None
    base_url: str | None = None
    reasoning: bool | None = None
    thinking_levels: Mapping[str, str | None] | None = None
    input: tuple[Literal["text", "image"], ...] | None = None
    rates: Mapping[str, float] | None = None
    """Dollars for a million tokens, by the names of :class:`Price`'s fields; only those that are given."""
    tiers: tuple[PriceTier, ...] | None = None
    context_window: int | None = None
    max_tokens: int | None = None
    headers: Mapping[str, str] | None = None
    compat: Mapping[str, Json] | None = None
    sampling: JsonObject | None = None
    sampling_by_level: Mapping[str, JsonObject] | None = None
    input_limits: JsonObject | None = None
    prompt_cache: Mapping[str, float] | None = None


def read_model_entry(fields: Fields, *, id: str | None = None) -> ModelEntry:
    """An entry from its JSON: a whole description, or, with `id`, changes to the model of that id.

    Raises :class:`FieldError`. Fields that are not known are passed over.
    """
    cost = fields.part("cost")
    return ModelEntry(
        id=fields.needed_text("id") if id is None else id,
        name=fields.text("name"),
        api=fields.text("api"),
        base_url=fields.text("baseUrl"),
        reasoning=fields.flag("reasoning"),
        thinking_levels=_thinking_levels(fields.part("thinkingLevelMap")),
        input=_input(fields),
        rates=None if cost is None else _rates(cost, whole=id is None),
        tiers=None if cost is None else _tiers(cost),
        context_window=fields.count("contextWindow"),
        max_tokens=fields.count("maxTokens"),
        headers=fields.texts("headers"),
        compat=fields.json_object("compat"),
        sampling=fields.json_object("samplingParams"),
        sampling_by_level=_sampling_by_level(fields.part("samplingParamsByThinkingLevel")),
        input_limits=_input_limits(fields),
        prompt_cache=_lifetimes(fields.part("promptCache")),
    )


def new_model(entry: ModelEntry, provider: Provider) -> Model:
    """The model that a whole description makes at `provider`, whose API and address count where it is silent."""
    api = entry.api or provider.api
    model = Model(id=entry.id, provider=provider.id, api=api, base_url=entry.base_url or provider.url_of(api))
    return changed_model(model, entry)


def changed_model(model: Model, entry: ModelEntry) -> Model:
    """`model` as `entry` changes it: objects merge field by field, other fields are replaced."""
    plain = {
        name: value
        for name in ("name", "api", "base_url", "reasoning", "input", "context_window", "max_tokens")
        if (value := getattr(entry, name)) is not None
    }
    merged: dict[str, object] = {
        name: _merged(getattr(model, name), value)
        for name in ("thinking_levels", "headers", "compat", "sampling", "prompt_cache", "input_limits")
        if (value := getattr(entry, name)) is not None
    }
    if entry.sampling_by_level is not None:
        levels = dict(model.sampling_by_level)
        for level, sampling in entry.sampling_by_level.items():
            levels[level] = {**levels.get(level, {}), **sampling}
        merged["sampling_by_level"] = levels
    return msgspec.structs.replace(model, **plain, **merged, price=_price(model.price, entry))


def _merged(old: Mapping[str, Json], new: Mapping[str, Json]) -> dict[str, Json]:
    """`new` over `old`, objects inside them too."""
    merged = dict(old)
    for key, value in new.items():
        before = merged.get(key)
        both = isinstance(before, dict) and isinstance(value, dict)
        merged[key] = _merged(cast("JsonObject", before), cast("JsonObject", value)) if both else value
    return merged


def _price(old: Price | None, entry: ModelEntry) -> Price | None:
    if entry.rates is None:
        return old
    if old is None and not entry.rates.keys() >= _PRICED:
        return None  # a part of a price is none
    before = old or Price(input=0.0, output=0.0)
    tiers = before.tiers if entry.tiers is None else entry.tiers
    return msgspec.structs.replace(before, **entry.rates, tiers=tiers)


def _thinking_levels(fields: Fields | None) -> dict[str, str | None] | None:
    """A level's name, or None for one that the model does not have. `null` is a value here."""
    if fields is None:
        return None
    return {level: fields.text(level) for level in _levels(fields)}


def _input(fields: Fields) -> tuple[Literal["text", "image"], ...] | None:
    kinds = fields.items("input")
    if kinds is None:
        return None
    if not kinds or any(kind not in _INPUT_KINDS for kind in kinds):
        raise FieldError(fields.where("input"), 'must be a list of "text" and "image"')
    return cast("tuple[Literal['text', 'image'], ...]", tuple(dict.fromkeys(cast("list[str]", kinds))))


def _rates(cost: Fields, *, whole: bool) -> dict[str, float]:
    rates = {name: rate for key, name in _RATES.items() if (rate := cost.number(key)) is not None}
    missing = [key for key, name in _RATES.items() if name not in rates and key not in _DERIVED]
    if whole and missing:
        raise FieldError(cost.where(missing[0]), "is missing: dollars for a million tokens, 0 if free")
    return rates


def _tiers(cost: Fields) -> tuple[PriceTier, ...] | None:
    if cost.items("tiers") is None:
        return None
    return tuple(_tier(tier) for tier in cost.parts("tiers"))


def _tier(fields: Fields) -> PriceTier:
    above = fields.count("inputTokensAbove")
    if above is None:
        raise FieldError(fields.where("inputTokensAbove"), "is missing")
    return PriceTier(input_tokens_above=above, **_rates(fields, whole=True))


def _sampling_by_level(fields: Fields | None) -> dict[str, JsonObject] | None:
    if fields is None:
        return None
    return {
        level: sampling for level in _levels(fields) if (sampling := fields.json_object(level)) is not None
    }


def _levels(fields: Fields) -> list[str]:
    for level in fields.names():
        if level not in THINKING_LEVELS:
            raise FieldError(fields.where(level), f"is not a thinking level ({', '.join(THINKING_LEVELS)})")
    return fields.names()


def _input_limits(fields: Fields) -> JsonObject | None:
    """The limits as they stand, when those that are known are whole numbers."""
    limits = fields.part("inputLimits")
    images = None if limits is None else limits.part("images")
    resize = None if images is None else images.part("resize")
    for part, names in ((limits, _REQUEST), (images, _IMAGES), (resize, _RESIZE)):
        if part is not None:
            for name in names:
                part.count(name)
    return fields.json_object("inputLimits")


def _lifetimes(fields: Fields | None) -> dict[str, float] | None:
    if fields is None:
        return None
    return {tier: seconds for tier in ("short", "long") if (seconds := fields.number(tier)) is not None}
