"""The named quirks of endpoints that speak Anthropic's Messages API.

The names are those of the `compat` objects in `models.json`, in camel case there. A quirk is set in the row
of a provider or model, never guessed from an address.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from cantle_ai.apis.model_quirks import model_quirks
from cantle_ai.model import Model

__all__ = ["AnthropicMessagesCompat", "compat_of"]


class AnthropicMessagesCompat(Struct, frozen=True, kw_only=True, rename="camel"):
    """How an endpoint, or a model behind it, differs from Anthropic's own first models.

    What an endpoint takes is documented under "Messages" at platform.claude.com; where another page is the
    source, the quirk names it.
    """

    supports_eager_tool_input_streaming: bool = True
    """Tools have `eager_input_streaming`, by which arguments arrive as they are written. Without it, the beta
    `fine-grained-tool-streaming-2025-05-14` asks for the same ("Fine-grained tool streaming")."""
    supports_long_cache_retention: bool = True
    """It keeps prompts for an hour when asked: `ttl` in the cache marks ("Prompt caching")."""
    supports_cache_control_on_tools: bool = True
    """Tools may carry a cache mark. Fireworks refuses it."""
    send_session_affinity_headers: bool = False
    """A header carries the session id, so that one machine serves a conversation: Fireworks and gateways
    route by it."""
    session_affinity_format: Literal["openai", "openai-nosession", "openrouter"] | None = None
    """Which header: `x-session-id` for OpenRouter, else `x-session-affinity`, one of those that the formats of
    chat completions name."""
    supports_temperature: bool = True
    """The model takes a `temperature`. From Claude Opus 4.7 on, all but the default is refused."""
    force_adaptive_thinking: bool = False
    """The model decides by itself how much it thinks, and is told an `effort`; otherwise it is given a budget
    of tokens ("Adaptive thinking")."""
    allow_empty_signature: bool = False
    """Its thinking has no signatures and is replayed as thinking all the same; otherwise it is replayed as text."""
    supports_strict_tools: bool = False
    """It can hold a model to the schemas of tools: `strict` ("Structured outputs")."""
    supports_mid_convo_effort: bool = False
    """Its thinking is bound to the conversation before it, and blocks whose conversation has changed can be dropped
    instead of refused: `block_binding`, of the beta `thinking-binding-controls-2026-08-01`."""


def compat_of(model: Model) -> AnthropicMessagesCompat:
    """The quirks of a model. Names that belong to other APIs are passed over.

    Raises :class:`ConfigurationError` for a value of the wrong type.
    """
    return model_quirks(model, AnthropicMessagesCompat)
