"""Mistral's own chat API, streamed: `POST {base_url}/v1/chat/completions`.

It looks like OpenAI's chat completions and is another dialect: content in parts with thinking among them, calls
with ids of nine characters, a strict order of roles, and names of its own for what it caches by. The name is the
reference's; Mistral's stateful "conversations" are not used: each request carries its whole history.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from cantle_ai.abort import AbortSignal
from cantle_ai.apis.http_headers import key_headers, request_headers
from cantle_ai.apis.http_stream import stream_answer
from cantle_ai.apis.mistral_conversations_answer import MistralReader
from cantle_ai.apis.mistral_conversations_compat import MistralConversationsCompat, compat_of
from cantle_ai.apis.mistral_conversations_messages import encode_messages
from cantle_ai.apis.output_limit import output_limit
from cantle_ai.apis.port import WireApi
from cantle_ai.apis.sampling import add_sampling
from cantle_ai.apis.session_keys import cache_key
from cantle_ai.apis.tool_schemas import object_schema, strict_for_anthropic
from cantle_ai.auth.request_auth import RequestAuth
from cantle_ai.builder import AnswerBuilder
from cantle_ai.call_ids import fitting_name
from cantle_ai.codec import Json, JsonObject, wire_json
from cantle_ai.context import Context, ToolDefinition
from cantle_ai.events import AssistantMessageEvent
from cantle_ai.model import Model, NamedTool, StreamOptions
from cantle_ai.stream import EventSource
from cantle_ai.transport.port import HttpRequest, Transport

__all__ = ["source"]

_OURS = frozenset({"model", "messages", "tools", "stream"})
"""Fields that sampling options cannot replace."""


def source(
    model: Model,
    context: Context,
    options: StreamOptions,
    *,
    transport: Transport,
    auth: RequestAuth,
) -> EventSource:
    """The answer of one request; see :class:`cantle_ai.apis.port.WireApi`."""

    def events(builder: AnswerBuilder, signal: AbortSignal) -> AsyncIterator[Sequence[AssistantMessageEvent]]:
        request = _request(model, context, options, auth)
        reader = MistralReader(builder, model.id, context)
        return stream_answer(request, reader, builder, options=options, transport=transport, signal=signal)

    return events


_proof: WireApi = source


def _request(model: Model, context: Context, options: StreamOptions, auth: RequestAuth) -> HttpRequest:
    key = cache_key(options)
    affinity = {} if key is None else {"x-affinity": key}
    headers = request_headers({**affinity, **key_headers(auth)}, auth, options)
    url = f"{model.base_url.rstrip('/').removesuffix('/v1')}/v1/chat/completions"
    return HttpRequest("POST", url, headers, _body(model, context, options), options.timeout)


def _body(model: Model, context: Context, options: StreamOptions) -> bytes:
    """The body, its `messages` put together from the messages' own encodings."""
    compat = compat_of(model)
    messages = encode_messages(model, context, options)
    parts = [b'{"model":', wire_json(model.id), b',"messages":[', b",".join(messages.parts), b"]"]
    if context.tools:
        parts += [b',"tools":', wire_json([_tool(tool, compat) for tool in context.tools])]
    size = sum(map(len, parts)) - messages.image_bytes
    fields = _fields(model, context, options, compat)
    fields["max_tokens"] = output_limit(model, options, context.messages, size, messages.images)
    add_sampling(fields, model, options, except_for=_OURS)
    return b"".join([*parts, b",", wire_json(fields)[1:]])


def _fields(
    model: Model, context: Context, options: StreamOptions, compat: MistralConversationsCompat
) -> JsonObject:
    fields: JsonObject = {"stream": True, **_thinking(model, options, compat)}
    if options.temperature is not None:
        fields["temperature"] = options.temperature
    if (key := cache_key(options)) is not None:
        fields["prompt_cache_key"] = key
    if options.tool_choice is not None and context.tools:
        fields["tool_choice"] = _tool_choice(options.tool_choice)
    if (wanted := options.response_schema) is not None:
        schema: JsonObject = {"name": wanted.name, "schema": wanted.schema, "strict": wanted.strict}
        fields["response_format"] = {"type": "json_schema", "json_schema": schema}
    return fields


def _thinking(model: Model, options: StreamOptions, compat: MistralConversationsCompat) -> JsonObject:
    """How the level is asked for. "Off" is said where the model has a name for it, else by silence."""
    if not model.reasoning:
        return {}
    level = model.clamp(options.thinking)
    if compat.prompt_mode or (compat.prompt_mode is None and not model.thinking_levels):
        return {} if level == "off" else {"prompt_mode": "reasoning"}
    name = model.thinking_levels.get(level)
    if name is None and level != "off":
        name = level
    return {} if name is None else {"reasoning_effort": name}


def _tool(tool: ToolDefinition, compat: MistralConversationsCompat) -> JsonObject:
    strict = strict_for_anthropic(tool.parameters) if compat.supports_strict_mode else None
    function: JsonObject = {
        "name": fitting_name(tool.name),
        "description": tool.description,
        "parameters": object_schema(tool.parameters) if strict is None else strict.parameters,
    }
    if strict is not None:
        function["strict"] = True
    return {"type": "function", "function": function}


def _tool_choice(choice: str | NamedTool) -> Json:
    if isinstance(choice, NamedTool):
        return {"type": "function", "function": {"name": fitting_name(choice.name)}}
    return "any" if choice == "required" else choice
