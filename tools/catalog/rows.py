"""From facts about a provider's models to its file in the catalog."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cantle_ai.apis.compat_table import quirks_of
from cantle_ai.model import Provider

__all__ = ["catalog_text"]

_COPIED = (
    "name",
    "reasoning",
    "thinkingLevelMap",
    "contextWindow",
    "maxTokens",
    "inputLimits",
    "promptCache",
)
_UNSAID: Mapping[str, Any] = {"reasoning": False, "thinkingLevelMap": {}, "input": ["text"]}
"""What a model is where its entry says nothing."""

_IMPLIED: Mapping[str, Mapping[str, Any]] = {
    "openai-responses": {"supportsDeveloperRole": True},
    "openai-codex-responses": {"supportsDeveloperRole": True},
}
"""Quirks that models have in the reference without saying so, and not here."""

_NO_EFFORT_NONE = {("github-copilot", "openai-responses")}
"""Where thinking cannot be turned off: the effort `none` is refused, and saying nothing leaves it on."""

_PRIORITY_PRICES: Mapping[str, float] = {
    "gpt-4.1": 1.75,
    "gpt-4.1-mini": 1.75,
    "gpt-4o": 1.7,
    "gpt-4o-2024-05-13": 1.75,
    "gpt-4o-2024-08-06": 1.7,
    "gpt-4o-2024-11-20": 1.7,
    "gpt-4o-mini": 1.666667,
    "gpt-5-mini": 1.8,
    "gpt-5.5": 2.5,
    "o3": 1.75,
    "o4-mini": 1.818182,
}
"""What OpenAI asks for the tier `priority`, as a multiple of the list price, where that is not twice as much:
https://openai.com/api-priority-processing, and for GPT-5.5 what the reference computes."""
_OF_OPENAI = ("openai", "opencode")
"""Providers that pass OpenAI's prices on."""

_RATES = ("input", "output", "cacheRead", "cacheWrite")
_SHARED = (
    "compat",
    "inputLimits",
    "thinkingLevelMap",
    "promptCache",
    "input",
    "reasoning",
    "contextWindow",
    "maxTokens",
)
"""Fields of which most entries of one API tend to have the same value."""


def catalog_text(provider: Provider, facts: Mapping[str, Any], *, source: str, date: str) -> str:
    """The file of `provider`, a model a line. `facts` are its `models`, and the id of the `first` one to offer."""
    models = sorted(facts["models"], key=lambda model: model["id"] != facts.get("first"))
    entries = [_entry(provider, model) for model in models]
    defaults = {
        api: shared
        for api in dict.fromkeys(entry.get("api", provider.api) for entry in entries)
        if (shared := _shared([entry for entry in entries if entry.get("api", provider.api) == api]))
    }
    lines = [
        _line(dict(_without(defaults.get(entry.get("api", provider.api), {}), entry))) for entry in entries
    ]
    head = {"source": source, "date": date, "provider": provider.id, "defaults": defaults}
    parts = [f"  {_line({key: value})[1:-1]}" for key, value in head.items()]
    body = ",\n".join(f"    {line}" for line in lines)
    return "{\n" + ",\n".join(parts) + f',\n  "models": [\n{body}\n  ]\n}}\n'


def _entry(provider: Provider, model: Mapping[str, Any]) -> dict[str, Any]:
    """What the catalog says of a model, in full."""
    api = model["api"]
    entry: dict[str, Any] = {"id": model["id"]}
    if api != provider.api:
        entry["api"] = api
    if _differs(model.get("baseUrl"), provider.url_of(api)):
        entry["baseUrl"] = model["baseUrl"]
    entry |= {key: model[key] for key in _COPIED if key in model}
    if (provider.id, api) in _NO_EFFORT_NONE and "thinkingLevelMap" in entry:
        entry["thinkingLevelMap"] = {**entry["thinkingLevelMap"], "off": None}
    entry["input"] = [kind for kind in ("text", "image") if kind in model["input"]]
    entry["cost"] = _cost(model)
    entry["compat"] = _compat(provider, api, model["id"], model.get("compat", {}))
    headers = {
        name: value for name, value in model.get("headers", {}).items() if provider.headers.get(name) != value
    }
    if headers:
        entry["headers"] = headers
    return {
        key: value for key, value in entry.items() if value not in (None, {}) and _UNSAID.get(key) != value
    }


def _differs(address: str | None, usual: str) -> bool:
    """Whether it is an address of the model's own. A row without one leaves it to the API to work it out."""
    return bool(address and usual) and str(address).rstrip("/") != usual.rstrip("/")


def _cost(model: Mapping[str, Any]) -> dict[str, Any] | None:
    """Its prices; None where nobody knows them: a price of nothing is one only for what says that it is free."""
    cost = model["cost"]
    if not any(cost[key] for key in _RATES) and "free" not in model["id"].lower():
        return None
    if any(cost[key] < 0 for key in _RATES):
        return None
    tiers = [
        {"inputTokensAbove": tier["inputTokensAbove"], **_rates(tier)} for tier in cost.get("tiers") or ()
    ]
    return {**_rates(cost), **({"tiers": tiers} if tiers else {})}


def _rates(cost: Mapping[str, float]) -> dict[str, float]:
    """The rates that are known: reading a cache is never free where reading anything else is not."""
    known = [key for key in _RATES if key != "cacheRead" or cost[key] or not cost["input"]]
    return {key: _number(cost[key]) for key in known}


def _number(value: float) -> float:
    """A price to the millionth of a dollar, without the noise of its arithmetic."""
    rounded = round(value, 6)
    return int(rounded) if rounded == int(rounded) else rounded


def _tier_prices(provider: Provider, id: str) -> dict[str, Any]:
    factor = _PRIORITY_PRICES.get(id) if provider.id in _OF_OPENAI else None
    return {} if factor is None else {"serviceTierPrices": {"priority": factor, "fast": factor}}


def _compat(provider: Provider, api: str, id: str, said: Mapping[str, Any]) -> dict[str, Any]:
    """The quirks that the provider's row does not give already, of those that the API has."""
    known = quirks_of(api)
    implied = {
        **_IMPLIED.get(api, {}),
        **_tier_prices(provider, id),
        **({"supportsLongCacheRetention": True} if "cacheControlFormat" in said else {}),
    }
    wanted = {name: value for name, value in {**implied, **said}.items() if name in known}
    given = {name: provider.compat.get(name, field.default) for name, field in known.items()}
    return {name: value for name, value in wanted.items() if given[name] != value}


def _shared(entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The values that are worth saying once for all `entries`."""
    shared: dict[str, Any] = {}
    for key in _SHARED:
        values = Counter(json.dumps(entry[key]) for entry in entries if key in entry)
        if not values:
            continue
        text, count = values.most_common(1)[0]
        unsaid = sum(key not in entry for entry in entries)
        if count > 1 and count * (len(text) + len(key) + 4) > unsaid * (len(key) + 8):
            shared[key] = json.loads(text)
    return shared


def _without(defaults: Mapping[str, Any], entry: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    yield from ((key, value) for key, value in entry.items() if defaults.get(key) != value)
    yield from ((key, None) for key in defaults if key not in entry)


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
