"""The body of a chat completions request, and the headers that depend on it."""

from __future__ import annotations

from collections.abc import Sequence

from cantle_ai.apis.openai_completions_compat import OpenAICompletionsCompat
from cantle_ai.apis.openai_completions_messages import ChatMessages, MessageEncoder
from cantle_ai.apis.openai_completions_thinking import thinking_fields
from cantle_ai.apis.output_limit import output_limit
from cantle_ai.codec import Json, JsonObject, wire_json
from cantle_ai.context import Context, ToolDefinition
from cantle_ai.messages import ThinkingLevel
from cantle_ai.model import Model, NamedTool, ResponseSchema, StreamOptions, ToolChoice

__all__ = ["request_body", "session_headers"]

_AFFINITY_HEADERS = {
    "openai": ("session_id", "x-client-request-id", "x-session-affinity"),
    "openai-nosession": ("x-client-request-id", "x-session-affinity"),
    "openrouter": ("x-session-id",),
}
_OURS = frozenset({"model", "messages", "tools", "stream"})
"""Fields that sampling options cannot replace."""


def request_body(
    model: Model,
    context: Context,
    options: StreamOptions,
    compat: OpenAICompletionsCompat,
    *,
    name: str | None = None,
) -> bytes:
    """The body, its `messages` put together from the messages' own encodings. `name` is sent for the model's id."""
    mark = _cache_mark(options, compat)
    messages = MessageEncoder(model, compat, options, mark=mark).encode(context)
    parts = [b'{"model":', wire_json(name or model.id), b',"messages":[', b",".join(messages.parts), b"]"]
    tools = _tools(context, messages, compat, mark)
    if tools is not None:
        parts += [b',"tools":', tools]
    size = sum(map(len, parts)) - messages.image_bytes
    limit = output_limit(model, options, context.messages, size, messages.images)
    fields = _fields(model, context, options, compat, limit)
    fields[compat.max_tokens_field] = limit
    if model.sampling or model.sampling_by_level or options.sampling:
        from cantle_ai.apis.sampling import add_sampling

        add_sampling(fields, model, options, except_for=_OURS)
    return b"".join([*parts, b",", wire_json(fields)[1:]])


def session_headers(options: StreamOptions, compat: OpenAICompletionsCompat) -> dict[str, str]:
    """Headers by which requests of one session find the same machine, and the prompt that it keeps."""
    if not compat.send_session_affinity_headers:
        return {}
    from cantle_ai.apis.session_keys import cache_key

    key = cache_key(options)
    if key is None:
        return {}
    return dict.fromkeys(_AFFINITY_HEADERS[compat.session_affinity_format], key)


def _fields(
    model: Model, context: Context, options: StreamOptions, compat: OpenAICompletionsCompat, limit: int
) -> JsonObject:
    level = model.clamp(options.thinking)
    fields: JsonObject = {"stream": True}
    if compat.supports_usage_in_streaming:
        fields["stream_options"] = {"include_usage": True}
    if compat.supports_store:
        fields["store"] = False
    fields.update(_cache_fields(options, compat))
    fields.update(thinking_fields(model, compat, level, _budget(model, options, level, limit)))
    if options.tool_choice is not None and context.tools:
        fields["tool_choice"] = _tool_choice(options.tool_choice)
    if options.response_schema is not None:
        fields["response_format"] = _response_format(options.response_schema)
    # Reasoning models refuse a temperature while they reason.
    if options.temperature is not None and not (model.reasoning and level != "off"):
        fields["temperature"] = options.temperature
    if compat.zai_tool_stream and context.tools:
        fields["tool_stream"] = True
    if compat.vllm_priority is not None:
        fields["priority"] = compat.vllm_priority
    if compat.open_router_routing:
        fields["provider"] = dict(compat.open_router_routing)
    if compat.vercel_gateway_routing:
        fields["providerOptions"] = {"gateway": dict(compat.vercel_gateway_routing)}
    return fields


def _budget(model: Model, options: StreamOptions, level: ThinkingLevel, limit: int) -> int | None:
    if level == "off" or not model.reasoning:
        return None
    from cantle_ai.apis.thinking_budgets import thinking_budget

    return thinking_budget(options, level, limit)


def _cache_fields(options: StreamOptions, compat: OpenAICompletionsCompat) -> JsonObject:
    if options.cache_retention == "none":
        return {}
    long = options.cache_retention == "long" and compat.supports_long_cache_retention
    mode = compat.prompt_cache_key_mode
    fields: JsonObject = {}
    if mode == "enabled" or (mode == "auto" and long):
        from cantle_ai.apis.session_keys import cache_key

        if (key := cache_key(options)) is not None:
            fields["prompt_cache_key"] = key
    if long and compat.cache_control_format is None:
        fields["prompt_cache_retention"] = "24h"
    return fields


def _cache_mark(options: StreamOptions, compat: OpenAICompletionsCompat) -> JsonObject | None:
    if compat.cache_control_format is None or options.cache_retention == "none":
        return None
    if options.cache_retention == "long" and compat.supports_long_cache_retention:
        return {"type": "ephemeral", "ttl": "1h"}
    return {"type": "ephemeral"}


def _tools(
    context: Context, messages: ChatMessages, compat: OpenAICompletionsCompat, mark: JsonObject | None
) -> bytes | None:
    """The tools, or None where the field is to be left out: several endpoints refuse an empty list."""
    if not context.tools:
        return b"[]" if compat.requires_tools_with_tool_history and messages.has_tool_history else None
    tools: list[Json] = _declarations(context.tools, compat)
    last = tools[-1]
    if mark is not None and isinstance(last, dict):
        last["cache_control"] = mark
    return wire_json(tools)


def _declarations(tools: Sequence[ToolDefinition], compat: OpenAICompletionsCompat) -> list[Json]:
    from cantle_ai.apis.object_schemas import plain_object

    if not compat.supports_strict_mode:
        return [_tool(tool.name, tool.description, plain_object(tool.parameters)) for tool in tools]
    from cantle_ai.apis.tool_schemas import strict_for_openai

    strict = [strict_for_openai(tool.parameters) for tool in tools]
    if compat.requires_uniform_strict_mode and None in strict:
        strict = [None] * len(tools)
    return [
        _tool(
            tool.name,
            tool.description,
            made.parameters if made else plain_object(tool.parameters),
            strict=made is not None,
        )
        for tool, made in zip(tools, strict, strict=True)
    ]


def _tool(name: str, description: str, parameters: JsonObject, **more: bool) -> JsonObject:
    function: JsonObject = {"name": name, "description": description, "parameters": parameters, **more}
    return {"type": "function", "function": function}


def _tool_choice(choice: ToolChoice) -> Json:
    if isinstance(choice, NamedTool):
        return {"type": "function", "function": {"name": choice.name}}
    return choice


def _response_format(wanted: ResponseSchema) -> JsonObject:
    from cantle_ai.apis.tool_schemas import answer_schema_for_openai

    schema, strict = answer_schema_for_openai(wanted)
    return {"type": "json_schema", "json_schema": {"name": wanted.name, "schema": schema, "strict": strict}}
