"""The body of a Converse request."""

from __future__ import annotations

from collections.abc import Mapping

from cantle_ai.apis.bedrock_converse_compat import BedrockConverseCompat, compat_of
from cantle_ai.apis.bedrock_converse_messages import ConverseMessages, encode_messages
from cantle_ai.apis.bedrock_converse_thinking import Thinking, thinking_of
from cantle_ai.apis.output_limit import output_limit, room_for_output
from cantle_ai.apis.sampling import sampling_layers
from cantle_ai.apis.strict_schemas import StrictSchema
from cantle_ai.apis.tool_schemas import object_schema, strict_tools_for_anthropic
from cantle_ai.call_ids import fitting_name
from cantle_ai.codec import Json, JsonObject, encode_json, wire_json
from cantle_ai.context import Context, ToolDefinition
from cantle_ai.model import Model, NamedTool, StreamOptions

__all__ = ["request_body"]

_OURS = frozenset({"modelId", "messages", "system", "toolConfig"})
"""Fields that sampling options cannot replace."""
_FIELDS = frozenset(
    {
        "inferenceConfig",
        "guardrailConfig",
        "additionalModelRequestFields",
        "promptVariables",
        "additionalModelResponseFieldPaths",
        "requestMetadata",
        "performanceConfig",
        "serviceTier",
        "outputConfig",
        "projectIdentifier",
    }
)
"""The request's own fields, from the service's model in botocore."""
_INFERENCE = {
    "temperature": "temperature",
    "topP": "topP",
    "top_p": "topP",
    "maxTokens": "maxTokens",
    "max_tokens": "maxTokens",
    "stopSequences": "stopSequences",
    "stop": "stopSequences",
}
"""Names of sampling parameters that are fields of `inferenceConfig`. All other names are the model's own."""
_ONCE_OFFERED = "A tool that was offered earlier in this conversation."


def request_body(model: Model, context: Context, options: StreamOptions) -> bytes:
    """The body, its `messages` put together from the messages' own encodings."""
    compat = compat_of(model)
    cache_point = _cache_point(options, compat)
    messages = encode_messages(model, context, options, compat, cache_point)
    parts = [b'{"messages":[', b",".join(messages.parts), b"]"]
    if context.system_prompt.strip():
        system: list[Json] = [{"text": context.system_prompt}]
        if cache_point is not None:
            system.append(cache_point)
        parts += [b',"system":', wire_json(system)]
    tools = _tools(context, options, compat, messages)
    if tools:
        config: JsonObject = {"tools": tools}
        if context.tools and (choice := _tool_choice(options)) is not None:
            config["toolChoice"] = choice
        parts += [b',"toolConfig":', wire_json(config)]
    fields = _fields(model, context, options, compat, sum(map(len, parts)), messages)
    return b"".join([*parts, b",", wire_json(fields)[1:]])


def _fields(
    model: Model,
    context: Context,
    options: StreamOptions,
    compat: BedrockConverseCompat,
    size: int,
    messages: ConverseMessages,
) -> JsonObject:
    size -= messages.image_bytes
    thinking = thinking_of(
        model,
        compat,
        options,
        limit=output_limit(model, options, context.messages, size, messages.images),
        room=room_for_output(model, context.messages, size, messages.images),
        forced=options.tool_choice == "required" or isinstance(options.tool_choice, NamedTool),
    )
    fields: JsonObject = {"inferenceConfig": _inference(options, compat, thinking)}
    if thinking.fields:
        fields["additionalModelRequestFields"] = dict(thinking.fields)
    if (wanted := options.response_schema) is not None:
        definition: JsonObject = {"name": wanted.name, "schema": encode_json(wanted.schema).decode()}
        structure: JsonObject = {"jsonSchema": definition}
        fields["outputConfig"] = {"textFormat": {"type": "json_schema", "structure": structure}}
    for sampling in sampling_layers(model, options, thinking.level):
        _sample(fields, sampling)
    return {name: value for name, value in fields.items() if value != {}}


def _inference(options: StreamOptions, compat: BedrockConverseCompat, thinking: Thinking) -> JsonObject:
    config: JsonObject = {}
    if thinking.max_tokens is not None:
        config["maxTokens"] = thinking.max_tokens
    takes = compat.supports_temperature and (
        compat.supports_temperature_while_thinking or not thinking.fields
    )
    if options.temperature is not None and takes and thinking.max_tokens is not None:
        config["temperature"] = options.temperature
    return config


def _sample(fields: JsonObject, sampling: Mapping[str, Json]) -> None:
    """Put each parameter where Converse has it: a field of the request, of `inferenceConfig`, or the model's own."""
    for name, value in sampling.items():
        if name in _OURS:
            continue
        if name in _INFERENCE:
            _lay(fields, "inferenceConfig", {_INFERENCE[name]: value})
        elif name not in _FIELDS:
            _lay(fields, "additionalModelRequestFields", {name: value})
        elif isinstance(value, dict):
            _lay(fields, name, value)
        else:
            fields[name] = value


def _lay(fields: JsonObject, name: str, more: JsonObject) -> None:
    """Lay `more` over the object `fields[name]`. Names of betas are added to those that are there."""
    known = fields.get(name)
    merged = dict(known) if isinstance(known, dict) else {}
    for key, value in more.items():
        before = merged.get(key)
        both = key == "anthropic_beta" and isinstance(before, list) and isinstance(value, list)
        merged[key] = [*before, *value] if both else value  # type: ignore[misc]
    fields[name] = merged


def _cache_point(options: StreamOptions, compat: BedrockConverseCompat) -> JsonObject | None:
    if options.cache_retention == "none" or not compat.supports_prompt_caching:
        return None
    point: JsonObject = {"type": "default"}
    if options.cache_retention == "long" and compat.supports_long_cache_retention:
        point["ttl"] = "1h"
    return {"cachePoint": point}


def _tools(
    context: Context, options: StreamOptions, compat: BedrockConverseCompat, messages: ConverseMessages
) -> list[Json]:
    """The tools of the request; empty where the field is to be left out.

    Converse refuses a conversation that has called tools in a request that offers none, and has no way to forbid
    calls: then those it has called stand there by their names, or the tools themselves.
    """
    if options.tool_choice == "none" and not messages.tools:
        return []
    if not context.tools:
        return [_spec(ToolDefinition(name, _ONCE_OFFERED, {"type": "object"})) for name in messages.tools]
    if not compat.supports_strict_mode:
        return [_spec(tool) for tool in context.tools]
    strict = strict_tools_for_anthropic(tool.parameters for tool in context.tools)
    return [_spec(tool, schema) for tool, schema in zip(context.tools, strict, strict=True)]


def _spec(tool: ToolDefinition, strict: StrictSchema | None = None) -> JsonObject:
    name = fitting_name(tool.name)
    spec: JsonObject = {
        "name": name,
        "description": tool.description if tool.description.strip() else name,
        "inputSchema": {"json": object_schema(tool.parameters) if strict is None else strict.parameters},
    }
    if strict is not None:
        spec["strict"] = True
    return {"toolSpec": spec}


def _tool_choice(options: StreamOptions) -> JsonObject | None:
    match options.tool_choice:
        case NamedTool(name):
            return {"tool": {"name": fitting_name(name)}}
        case "required":
            return {"any": {}}
        case _:  # "auto" is the default, and saying so is refused by models that know no choice
            return None
