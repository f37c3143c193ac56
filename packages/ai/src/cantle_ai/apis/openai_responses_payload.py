"""The body of a request for a response, and the headers that depend on it. Shared by the doors to the API."""

from __future__ import annotations

from cantle_ai.apis.openai_responses_compat import OpenAIResponsesCompat
from cantle_ai.apis.openai_responses_messages import encode_input
from cantle_ai.apis.output_limit import output_limit
from cantle_ai.apis.sampling import add_sampling
from cantle_ai.apis.session_keys import cache_key
from cantle_ai.codec import Json, JsonObject, wire_json
from cantle_ai.context import Context, ToolDefinition
from cantle_ai.model import Model, NamedTool, StreamOptions

__all__ = ["request_body", "session_headers"]

_LEAST_OUTPUT = 16
"""The service refuses a smaller `max_output_tokens`."""
_AFFINITY_HEADERS = {
    "openai": ("session-id", "x-client-request-id"),
    "openai-nosession": ("x-client-request-id",),
    "openrouter": ("x-session-id",),
}
_OURS = frozenset({"model", "input", "tools", "stream"})
"""Fields that sampling options cannot replace."""


def request_body(
    model: Model,
    context: Context,
    options: StreamOptions,
    compat: OpenAIResponsesCompat,
    *,
    name: str | None = None,
    defaults: JsonObject | None = None,
) -> bytes:
    """The body, its `input` put together from the messages' own encodings.

    `name` is what the endpoint calls the model, if not by its id; `defaults` are fields that a door sends of its own.
    """
    developer = compat.supports_developer_role and model.reasoning
    encoded = encode_input(model, context, options, role="developer" if developer else "system")
    parts = [b'{"model":', wire_json(name or model.id), b',"input":[', b",".join(encoded.parts), b"]"]
    if context.tools:
        parts += [b',"tools":', wire_json([_tool(tool, compat) for tool in context.tools])]
    size = sum(map(len, parts)) - encoded.image_bytes
    fields: JsonObject = {"stream": True, "store": False, **(defaults or {})}
    fields.update(_cache_fields(options, compat))
    fields.update(_thinking_fields(model, options, compat))
    if compat.supports_max_output_tokens:
        limit = output_limit(model, options, context.messages, size, encoded.images)
        fields["max_output_tokens"] = max(limit, _LEAST_OUTPUT)
    if context.tools and options.tool_choice is not None:
        fields["tool_choice"] = _tool_choice(options.tool_choice)
    add_sampling(fields, model, options, except_for=_OURS)
    _add_format(fields, options)
    return b"".join([*parts, b",", wire_json(fields)[1:]])


def session_headers(options: StreamOptions, compat: OpenAIResponsesCompat) -> dict[str, str]:
    """Headers by which requests of one session find the same machine. None for a request that has no next."""
    key = cache_key(options)
    return {} if key is None else dict.fromkeys(_AFFINITY_HEADERS[compat.session_affinity_format], key)


def _cache_fields(options: StreamOptions, compat: OpenAIResponsesCompat) -> JsonObject:
    explicit = compat.supports_explicit_prompt_cache_mode
    if options.cache_retention == "none":
        return {"prompt_cache_options": {"mode": "explicit"}} if explicit else {}
    fields: JsonObject = {}
    if (key := cache_key(options)) is not None and compat.prompt_cache_key_mode != "disabled":
        fields["prompt_cache_key"] = key
    if options.cache_retention == "long" and compat.supports_long_cache_retention:
        if explicit:
            fields["prompt_cache_options"] = {"ttl": "30m"}
        else:
            fields["prompt_cache_retention"] = "24h"
    return fields


def _thinking_fields(model: Model, options: StreamOptions, compat: OpenAIResponsesCompat) -> JsonObject:
    """How much the model is to reason, and whether a temperature can be asked for.

    "Off" is said with the effort `none`. A model that cannot be kept from reasoning is told nothing then: it does
    what it does by itself, which some endpoints insist on.
    """
    fields: JsonObject = {}
    level = model.clamp(options.thinking)
    cannot = options.thinking == "off" and level != "off"
    name = model.thinking_levels.get(level) or ("none" if level == "off" else level)
    if model.reasoning:
        if not cannot and compat.supports_reasoning_effort:
            effort: JsonObject = {"effort": name}
            fields["reasoning"] = effort if level == "off" else {**effort, "summary": "auto"}
        if name != "none":
            fields["include"] = ["reasoning.encrypted_content"]
    # Reasoning models refuse a temperature while they reason.
    if options.temperature is not None and not (model.reasoning and level != "off"):
        fields["temperature"] = options.temperature
    return fields


def _tool(tool: ToolDefinition, compat: OpenAIResponsesCompat) -> JsonObject:
    plain: JsonObject = {"type": "function", "name": tool.name, "description": tool.description}
    from cantle_ai.apis.object_schemas import plain_object

    if not compat.supports_strict_mode:
        return {**plain, "parameters": plain_object(tool.parameters)}
    from cantle_ai.apis.tool_schemas import strict_for_openai

    strict = strict_for_openai(tool.parameters)
    if strict is None:
        return {**plain, "parameters": plain_object(tool.parameters), "strict": False}
    return {**plain, "parameters": strict.parameters, "strict": True}


def _tool_choice(choice: str | NamedTool) -> Json:
    return {"type": "function", "name": choice.name} if isinstance(choice, NamedTool) else choice


def _add_format(fields: JsonObject, options: StreamOptions) -> None:
    """Ask for an answer by a schema, beside whatever else is said about the text."""
    wanted = options.response_schema
    if wanted is None:
        return
    from cantle_ai.apis.tool_schemas import answer_schema_for_openai

    schema, strict = answer_schema_for_openai(wanted)
    form: JsonObject = {"type": "json_schema", "name": wanted.name, "schema": schema, "strict": strict}
    text = fields.get("text")
    fields["text"] = {**(text if isinstance(text, dict) else {}), "format": form}
