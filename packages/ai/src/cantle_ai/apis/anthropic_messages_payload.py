"""The body of a Messages request, and the betas that it needs."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from cantle_ai.apis.anthropic_messages_compat import AnthropicMessagesCompat
from cantle_ai.apis.anthropic_messages_thinking import Thinking, thinking_of
from cantle_ai.apis.anthropic_messages_turns import REPLAY_RULES, encode_turns, marked
from cantle_ai.apis.output_limit import room_for_output
from cantle_ai.apis.sampling import add_sampling
from cantle_ai.apis.strict_schemas import StrictSchema
from cantle_ai.apis.tool_schemas import object_schema, strict_for_anthropic, strict_tools_for_anthropic
from cantle_ai.call_ids import fitting_name
from cantle_ai.codec import JsonObject, wire_json
from cantle_ai.context import Context, ToolDefinition
from cantle_ai.history import project
from cantle_ai.model import Model, NamedTool, StreamOptions

__all__ = ["Payload", "payload_of"]

_FINE_GRAINED = "fine-grained-tool-streaming-2025-05-14"
_OURS = frozenset({"model", "messages", "system", "tools", "stream"})
"""Fields that sampling options cannot replace."""


class Payload(Struct, frozen=True):
    """A request's body, and the names of betas that it makes use of."""

    body: bytes
    betas: tuple[str, ...]


def payload_of(
    model: Model, context: Context, options: StreamOptions, compat: AnthropicMessagesCompat
) -> Payload:
    """The request, its `messages` put together from the messages' own encodings.

    At most four places carry a cache mark: the last tool, the system prompt, and the ends of the last user
    messages, in the order in which the API reads a prompt.
    """
    mark = _cache_mark(options, compat)
    turns = project(context.messages, model, options, REPLAY_RULES).turns
    messages = encode_turns(turns, compat, mark=mark)
    parts = [b'{"model":', wire_json(model.id)]
    if context.system_prompt.strip():
        system = wire_json({"type": "text", "text": context.system_prompt})
        parts += [b',"system":[', system if mark is None else marked(system, mark), b"]"]
    if context.tools:
        parts += [b',"tools":[', _tools(context, compat, mark), b"]"]
    parts += [b',"messages":[', b",".join(messages.parts), b"]"]
    size = sum(map(len, parts)) - messages.image_bytes
    room = room_for_output(model, context.messages, size, messages.images)
    thinking = thinking_of(model, compat, options, room)
    fields = _fields(model, context, options, compat, thinking)
    betas = thinking.betas
    if context.tools and not compat.supports_eager_tool_input_streaming:
        betas = (*betas, _FINE_GRAINED)
    return Payload(b"".join([*parts, b",", wire_json(fields)[1:]]), betas)


def _fields(
    model: Model,
    context: Context,
    options: StreamOptions,
    compat: AnthropicMessagesCompat,
    thinking: Thinking,
) -> JsonObject:
    fields: JsonObject = {"max_tokens": thinking.max_tokens, "stream": True}
    if thinking.config is not None:
        fields["thinking"] = thinking.config
    output = _output_config(options, thinking)
    if output:
        fields["output_config"] = output
    if context.tools and options.tool_choice is not None:
        fields["tool_choice"] = _tool_choice(options)
    if options.temperature is not None and compat.supports_temperature and not thinking.possible:
        fields["temperature"] = options.temperature
    add_sampling(fields, model, options, except_for=_OURS)
    return fields


def _output_config(options: StreamOptions, thinking: Thinking) -> JsonObject:
    output: JsonObject = {}
    if thinking.effort is not None:
        output["effort"] = thinking.effort
    if options.response_schema is not None:
        given = options.response_schema.schema
        strict = strict_for_anthropic(given)
        output["format"] = {"type": "json_schema", "schema": given if strict is None else strict.parameters}
    return output


def _tool_choice(options: StreamOptions) -> JsonObject:
    match options.tool_choice:
        case NamedTool(name):
            return {"type": "tool", "name": fitting_name(name)}
        case "required":
            return {"type": "any"}
        case other:
            return {"type": other}


def _cache_mark(options: StreamOptions, compat: AnthropicMessagesCompat) -> bytes | None:
    if options.cache_retention == "none":
        return None
    if options.cache_retention == "long" and compat.supports_long_cache_retention:
        return b'"cache_control":{"type":"ephemeral","ttl":"1h"}'
    return b'"cache_control":{"type":"ephemeral"}'


def _tools(context: Context, compat: AnthropicMessagesCompat, mark: bytes | None) -> bytes:
    strict: Sequence[StrictSchema | None] = [None] * len(context.tools)
    if compat.supports_strict_tools:
        strict = strict_tools_for_anthropic(tool.parameters for tool in context.tools)
    tools = [
        wire_json(_tool(tool, compat, schema)) for tool, schema in zip(context.tools, strict, strict=True)
    ]
    if mark is not None and compat.supports_cache_control_on_tools:
        tools[-1] = marked(tools[-1], mark)
    return b",".join(tools)


def _tool(tool: ToolDefinition, compat: AnthropicMessagesCompat, strict: StrictSchema | None) -> JsonObject:
    described: JsonObject = {"name": tool.name}
    if tool.description.strip():
        described["description"] = tool.description
    if compat.supports_eager_tool_input_streaming:
        described["eager_input_streaming"] = True
    if strict is not None:
        described["strict"] = True
    described["input_schema"] = object_schema(tool.parameters) if strict is None else strict.parameters
    return described
