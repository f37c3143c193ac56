"""What is known about the built-in providers' models, as data.

One JSON file for each provider, loaded when its models are first asked for:

    {"source", "date", "provider", "defaults": {API: {…}}, "models": [entries as in models.json]}

`source` and `date` say where and when the figures were taken. `defaults` hold, field by field, for every entry of
that API that does not say otherwise; `null` there takes one back. The files are made by `tools/catalog`.

They are read by types, not by the reader of `models.json`: nobody needs a sentence about a mistake in them, and
naming a model by a part of its name reads them all.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from cantle_ai.model import Model, Provider
from cantle_ai.usage import Price, PriceTier

__all__ = ["FOLDER", "load_catalog"]

FOLDER = Path(__file__).parent
"""Where the files are."""


class _Rates(Struct, rename="camel"):
    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None
    cache_write_1h: float | None = None


class _Tier(_Rates, rename="camel", kw_only=True):
    input_tokens_above: int


class _Cost(_Rates, rename="camel"):
    tiers: list[_Tier] = []


class _Entry(Struct, rename="camel"):
    """An entry with its defaults. None is what was taken back, or never said."""

    id: str
    name: str
    api: str | None = None
    base_url: str | None = None
    reasoning: bool | None = None
    thinking_level_map: dict[str, str | None] | None = None
    input: tuple[Literal["text", "image"], ...] | None = None
    cost: _Cost | None = None
    context_window: int | None = None
    max_tokens: int | None = None
    headers: dict[str, str] | None = None
    compat: dict[str, Any] | None = None
    sampling_params: dict[str, Any] | None = None
    input_limits: dict[str, Any] | None = None
    prompt_cache: dict[str, float] | None = None


class _File(Struct):
    models: list[dict[str, Any]]
    defaults: dict[str, dict[str, Any]] = {}


def load_catalog(provider: Provider) -> list[Model]:
    """The models of `provider`, the one to begin with first. None for a provider without a file here."""
    try:
        data = (FOLDER / f"{provider.id}.json").read_bytes()
    except FileNotFoundError:
        return []
    file = msgspec.json.decode(data, type=_File)
    whole = [{**file.defaults.get(entry.get("api", provider.api), {}), **entry} for entry in file.models]
    return [_model(entry, provider) for entry in msgspec.convert(whole, list[_Entry])]


def _model(entry: _Entry, provider: Provider) -> Model:
    api = entry.api or provider.api
    return Model(
        id=entry.id,
        provider=provider.id,
        api=api,
        base_url=entry.base_url or provider.url_of(api),
        name=entry.name,
        reasoning=entry.reasoning or False,
        thinking_levels=entry.thinking_level_map or {},
        input=entry.input or ("text",),
        price=None if entry.cost is None else _price(entry.cost),
        context_window=entry.context_window or 128_000,
        max_tokens=entry.max_tokens or 16_384,
        headers=entry.headers or {},
        compat=entry.compat or {},
        sampling=entry.sampling_params or {},
        input_limits=entry.input_limits or {},
        prompt_cache=entry.prompt_cache or {},
    )


def _price(cost: _Cost) -> Price:
    return Price(
        input=cost.input,
        output=cost.output,
        cache_read=cost.cache_read,
        cache_write=cost.cache_write,
        cache_write_1h=cost.cache_write_1h,
        tiers=tuple(
            PriceTier(
                input_tokens_above=tier.input_tokens_above,
                input=tier.input,
                output=tier.output,
                cache_read=tier.cache_read,
                cache_write=tier.cache_write,
                cache_write_1h=tier.cache_write_1h,
            )
            for tier in cost.tiers
        ),
    )
