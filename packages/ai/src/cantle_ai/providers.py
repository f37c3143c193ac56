"""The tables of what exists: providers as rows, and wire APIs by name. Adding one is adding a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from cantle_ai.model import Provider

if TYPE_CHECKING:
    from cantle_ai.apis.port import WireApi

__all__ = ["BUILTIN_PROVIDERS", "LOCAL_API", "WIRE_APIS"]

LOCAL_API = "llama-cpp"
"""The API of models that run in this process. Their `base_url` is the path of a GGUF file."""

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
    Provider(
        id="local",
        name="Local model",
        base_url="",
        api=LOCAL_API,
        key_optional=True,
        automatic=False,
    ),
)
"""The providers that are known without configuration. Their models are in :mod:`cantle_ai.catalog`."""


def _openai_completions() -> WireApi:
    from cantle_ai.apis import openai_completions

    return openai_completions.source


def _mistral_conversations() -> WireApi:
    from cantle_ai.apis import mistral_conversations

    return mistral_conversations.source


def _llama_cpp() -> WireApi:
    from cantle_ai.apis.llama_cpp import LlamaCpp

    return LlamaCpp()


WIRE_APIS: Mapping[str, Callable[[], WireApi]] = {
    LOCAL_API: _llama_cpp,
    "openai-completions": _openai_completions,
    "mistral-conversations": _mistral_conversations,
}
"""What loads the module of a wire API, by the API's name; called when the first request speaks it."""
