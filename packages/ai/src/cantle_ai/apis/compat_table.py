"""The named quirks of each wire API: which names a `compat` object of its models may have."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct
from msgspec.structs import FieldInfo, fields

__all__ = ["COMPAT", "quirks_of"]


def _openai_completions() -> type[Struct]:
    from cantle_ai.apis.openai_completions_compat import OpenAICompletionsCompat

    return OpenAICompletionsCompat


def _openai_responses() -> type[Struct]:
    from cantle_ai.apis.openai_responses_compat import OpenAIResponsesCompat

    return OpenAIResponsesCompat


def _anthropic_messages() -> type[Struct]:
    from cantle_ai.apis.anthropic_messages_compat import AnthropicMessagesCompat

    return AnthropicMessagesCompat


def _google() -> type[Struct]:
    from cantle_ai.apis.google_compat import GoogleCompat

    return GoogleCompat


def _mistral_conversations() -> type[Struct]:
    from cantle_ai.apis.mistral_conversations_compat import MistralConversationsCompat

    return MistralConversationsCompat


def _bedrock_converse() -> type[Struct]:
    from cantle_ai.apis.bedrock_converse_compat import BedrockConverseCompat

    return BedrockConverseCompat


COMPAT: Mapping[str, Callable[[], type[Struct]]] = {
    "openai-completions": _openai_completions,
    "openai-responses": _openai_responses,
    "azure-openai-responses": _openai_responses,
    "openai-codex-responses": _openai_responses,
    "anthropic-messages": _anthropic_messages,
    "google-generative-ai": _google,
    "google-vertex": _google,
    "bedrock-converse-stream": _bedrock_converse,
    "mistral-conversations": _mistral_conversations,
}
"""What gives the quirks of an API, by its name. An API that is not here has none."""


def quirks_of(api: str) -> Mapping[str, FieldInfo]:
    """The quirks of `api`, by their names in JSON."""
    load = COMPAT.get(api)
    return {} if load is None else {field.encode_name: field for field in fields(load())}
