"""The named quirks of endpoints that speak OpenAI's Responses API, for all doors to it.

The names are those of the `compat` objects in `models.json`, in camel case there. A quirk is set in the row of a
provider or model, never guessed from an address.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from cantle_ai.apis.model_quirks import model_quirks
from cantle_ai.codec import Json
from cantle_ai.model import Model

__all__ = ["OpenAIResponsesCompat", "compat_of"]


class OpenAIResponsesCompat(Struct, frozen=True, kw_only=True, rename="camel"):
    """How an endpoint differs from the plainest one. The defaults suit a server that is not known.

    Unless a quirk names another source, it is from the reference's manual, `models-configuration.md`.
    """

    supports_developer_role: bool = False
    """The system prompt of reasoning models goes out in the role `developer`, else in `system`."""
    supports_reasoning_effort: bool = True
    """It knows `reasoning.effort`. From the reference's catalog: a few models reason and cannot be told how much."""
    supports_max_output_tokens: bool = True
    """It takes `max_output_tokens`."""
    supports_strict_mode: bool = False
    """Tools say whether they are `strict`, and are wherever their schema allows it."""
    session_affinity_format: Literal["openai", "openai-nosession", "openrouter"] = "openai"
    """Which headers carry the session id, so that one machine serves a conversation: `session-id` and
    `x-client-request-id`; the latter alone; or `x-session-id`."""
    prompt_cache_key_mode: Literal["auto", "enabled", "disabled"] = "auto"
    """Whether `prompt_cache_key` is sent: always (`auto` means the same here), or never."""
    supports_long_cache_retention: bool = True
    """It keeps prompts for long when asked: `prompt_cache_retention`, or a `ttl` where it has explicit caching."""
    supports_explicit_prompt_cache_mode: bool = False
    """It knows `prompt_cache_options`, and bills what it writes to the cache: a request without a next one turns
    that off."""
    service_tier_prices: Mapping[str, float] = {}
    """What a request of a service tier costs, as a multiple of the list price, over those that OpenAI publishes
    for most models (https://openai.com/api/pricing): `flex` 0.5, `priority` and `fast` 2."""


def compat_of(model: Model, defaults: Mapping[str, Json] | None = None) -> OpenAIResponsesCompat:
    """The quirks of a model, over the `defaults` of its door. Names that belong to other APIs are passed over.

    Raises :class:`ConfigurationError` for a value of the wrong type.
    """
    return model_quirks(model, OpenAIResponsesCompat, defaults)
