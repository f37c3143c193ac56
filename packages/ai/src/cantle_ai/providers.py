"""The tables of what exists: providers as rows, and wire APIs by name. Adding one is adding a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from cantle_ai.model import Provider

if TYPE_CHECKING:
    from cantle_ai.apis.port import WireApi

__all__ = ["BUILTIN_PROVIDERS", "WIRE_APIS"]

BUILTIN_PROVIDERS: tuple[Provider, ...] = (
    Provider(
        id="openai",
        name="OpenAI",
        base_url="https://api.openai.com/v1",
        api="openai-completions",
        key_variables=("OPENAI_API_KEY",),
        compat={
            "supportsStore": True,
            "supportsDeveloperRole": True,
            "promptCacheKeyMode": "enabled",
            "supportsLongCacheRetention": True,
        },
    ),
)
"""The providers that are known without configuration. Their models are in :mod:`cantle_ai.catalog`."""


def _openai_completions() -> WireApi:
    from cantle_ai.apis import openai_completions

    return openai_completions.source


WIRE_APIS: Mapping[str, Callable[[], WireApi]] = {"openai-completions": _openai_completions}
"""What loads the module of a wire API, by the API's name; called when the first request speaks it."""
