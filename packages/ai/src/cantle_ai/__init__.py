"""Model runtime: messages, one event stream for all models, providers as data, keys, prices, scripted models.

    >>> import cantle_ai
    >>> cantle_ai.ask("openai/gpt-5", "Name a river.")

The names below are loaded when they are first used. The twelve events are in :mod:`cantle_ai.events`, what
tests need in :mod:`cantle_ai.testing`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cantle_ai.abort import AbortController, AbortError, AbortSignal
    from cantle_ai.apis.port import WireApi
    from cantle_ai.auth.credential_file import CredentialFile
    from cantle_ai.auth.request_auth import RequestAuth
    from cantle_ai.codec import JsonObject
    from cantle_ai.content import (
        Content,
        ImageContent,
        TextContent,
        ThinkingContent,
        ToolCall,
        UnknownContent,
    )
    from cantle_ai.context import Context, ToolDefinition
    from cantle_ai.errors import CantleAIError, ConfigurationError, ErrorDetails, ProviderError
    from cantle_ai.events import AssistantMessageEvent
    from cantle_ai.history import ProjectionReport
    from cantle_ai.messages import (
        AssistantMessage,
        Message,
        StopReason,
        ThinkingLevel,
        ToolResultMessage,
        UnknownMessage,
        UserMessage,
    )
    from cantle_ai.model import (
        CacheRetention,
        Model,
        NamedTool,
        Provider,
        ResponseSchema,
        StreamOptions,
        ToolChoice,
    )
    from cantle_ai.model_entries import ModelEntry
    from cantle_ai.model_patterns import ModelPatternError, resolve_model
    from cantle_ai.models import Models
    from cantle_ai.models_file import ModelsFile, load_models_file
    from cantle_ai.overflow import is_overflow
    from cantle_ai.quota import is_quota_exhausted
    from cantle_ai.retry import delay_ms, retryable
    from cantle_ai.retry_policy import RetryPolicy
    from cantle_ai.shortcuts import ask, complete
    from cantle_ai.sse import ServerSentEvent
    from cantle_ai.stream import AssistantMessageStream, StreamFunction, StreamReader
    from cantle_ai.transport.port import HttpRequest, HttpResponse, Transport
    from cantle_ai.usage import Cost, Price, PriceTier, Usage, cost_of, total_usage

__all__ = [
    "AbortController",
    "AbortError",
    "AbortSignal",
    "AssistantMessage",
    "AssistantMessageEvent",
    "AssistantMessageStream",
    "CacheRetention",
    "CantleAIError",
    "ConfigurationError",
    "Content",
    "Context",
    "Cost",
    "CredentialFile",
    "ErrorDetails",
    "HttpRequest",
    "HttpResponse",
    "ImageContent",
    "JsonObject",
    "Message",
    "Model",
    "ModelEntry",
    "ModelPatternError",
    "Models",
    "ModelsFile",
    "NamedTool",
    "Price",
    "PriceTier",
    "ProjectionReport",
    "Provider",
    "ProviderError",
    "RequestAuth",
    "ResponseSchema",
    "RetryPolicy",
    "ServerSentEvent",
    "StopReason",
    "StreamFunction",
    "StreamOptions",
    "StreamReader",
    "TextContent",
    "ThinkingContent",
    "ThinkingLevel",
    "ToolCall",
    "ToolChoice",
    "ToolDefinition",
    "ToolResultMessage",
    "Transport",
    "UnknownContent",
    "UnknownMessage",
    "Usage",
    "UserMessage",
    "WireApi",
    "ask",
    "complete",
    "cost_of",
    "delay_ms",
    "is_overflow",
    "is_quota_exhausted",
    "load_models_file",
    "resolve_model",
    "retryable",
    "total_usage",
]

_MODULES = {
    "AbortController": "cantle_ai.abort",
    "AbortError": "cantle_ai.abort",
    "AbortSignal": "cantle_ai.abort",
    "AssistantMessage": "cantle_ai.messages",
    "AssistantMessageEvent": "cantle_ai.events",
    "AssistantMessageStream": "cantle_ai.stream",
    "CacheRetention": "cantle_ai.model",
    "CantleAIError": "cantle_ai.errors",
    "ConfigurationError": "cantle_ai.errors",
    "Content": "cantle_ai.content",
    "Context": "cantle_ai.context",
    "Cost": "cantle_ai.usage",
    "CredentialFile": "cantle_ai.auth.credential_file",
    "ErrorDetails": "cantle_ai.errors",
    "HttpRequest": "cantle_ai.transport.port",
    "HttpResponse": "cantle_ai.transport.port",
    "ImageContent": "cantle_ai.content",
    "JsonObject": "cantle_ai.codec",
    "Message": "cantle_ai.messages",
    "Model": "cantle_ai.model",
    "ModelEntry": "cantle_ai.model_entries",
    "ModelPatternError": "cantle_ai.model_patterns",
    "Models": "cantle_ai.models",
    "ModelsFile": "cantle_ai.models_file",
    "NamedTool": "cantle_ai.model",
    "Price": "cantle_ai.usage",
    "PriceTier": "cantle_ai.usage",
    "ProjectionReport": "cantle_ai.history",
    "Provider": "cantle_ai.model",
    "ProviderError": "cantle_ai.errors",
    "RequestAuth": "cantle_ai.auth.request_auth",
    "ResponseSchema": "cantle_ai.model",
    "RetryPolicy": "cantle_ai.retry_policy",
    "ServerSentEvent": "cantle_ai.sse",
    "StopReason": "cantle_ai.messages",
    "StreamFunction": "cantle_ai.stream",
    "StreamOptions": "cantle_ai.model",
    "StreamReader": "cantle_ai.stream",
    "TextContent": "cantle_ai.content",
    "ThinkingContent": "cantle_ai.content",
    "ThinkingLevel": "cantle_ai.messages",
    "ToolCall": "cantle_ai.content",
    "ToolChoice": "cantle_ai.model",
    "ToolDefinition": "cantle_ai.context",
    "ToolResultMessage": "cantle_ai.messages",
    "Transport": "cantle_ai.transport.port",
    "UnknownContent": "cantle_ai.content",
    "UnknownMessage": "cantle_ai.messages",
    "Usage": "cantle_ai.usage",
    "UserMessage": "cantle_ai.messages",
    "WireApi": "cantle_ai.apis.port",
    "ask": "cantle_ai.shortcuts",
    "complete": "cantle_ai.shortcuts",
    "cost_of": "cantle_ai.usage",
    "delay_ms": "cantle_ai.retry",
    "is_overflow": "cantle_ai.overflow",
    "is_quota_exhausted": "cantle_ai.quota",
    "load_models_file": "cantle_ai.models_file",
    "resolve_model": "cantle_ai.model_patterns",
    "retryable": "cantle_ai.retry",
    "total_usage": "cantle_ai.usage",
}


def __getattr__(name: str) -> object:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
