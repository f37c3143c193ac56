"""The body of a `streamGenerateContent` request, for Gemini's API and for Vertex AI.

{"contents": […], "systemInstruction"?, "tools"?: [{"functionDeclarations": […]}], "toolConfig"?,
 "generationConfig": {"maxOutputTokens", "temperature"?, "thinkingConfig"?, "responseJsonSchema"?, …}}
"""

from __future__ import annotations

from collections.abc import Mapping

from cantle_ai.apis.google_compat import GoogleCompat
from cantle_ai.apis.google_messages import encoded_contents
from cantle_ai.apis.google_thinking import thinking_config
from cantle_ai.apis.sampling import sampling_layers
from cantle_ai.apis.tool_schemas import gemini_schema, object_schema, openapi_schema
from cantle_ai.codec import Json, JsonObject, wire_json
from cantle_ai.context import Context, ToolDefinition
from cantle_ai.model import Model, NamedTool, StreamOptions, ToolChoice

__all__ = ["request_body"]

_OURS = frozenset({"contents", "systemInstruction", "tools", "candidateCount"})
"""Fields that sampling options cannot replace: an answer would be read wrongly, or not at all."""
_BESIDE = frozenset({"toolConfig", "safetySettings", "cachedContent", "labels", "serviceTier", "store"})
"""Fields of the request itself; all others belong to its `generationConfig`."""


def request_body(model: Model, context: Context, options: StreamOptions, compat: GoogleCompat) -> bytes:
    """The body, its `contents` put together from the messages' own encodings."""
    contents = encoded_contents(model, context, options, compat)
    fields: JsonObject = {}
    if context.system_prompt.strip():
        fields["systemInstruction"] = {"parts": [{"text": context.system_prompt}], "role": "user"}
    if context.tools:
        fields["tools"] = [{"functionDeclarations": [_function(tool, compat) for tool in context.tools]}]
        if options.tool_choice is not None:
            fields["toolConfig"] = {"functionCallingConfig": _calling(options.tool_choice)}
    generation = _generation(model, options, compat)
    for sampling in sampling_layers(model, options):
        _merge(sampling, fields, generation)
    fields["generationConfig"] = generation
    return b'{"contents":[' + b",".join(contents) + b"]," + wire_json(fields)[1:]


def _generation(model: Model, options: StreamOptions, compat: GoogleCompat) -> JsonObject:
    wanted = model.max_tokens if options.max_tokens is None else options.max_tokens
    generation: JsonObject = {"maxOutputTokens": max(1, min(wanted, model.max_tokens))}
    if options.temperature is not None:
        generation["temperature"] = options.temperature
    thinking = thinking_config(model, options, compat)
    if thinking is not None:
        generation["thinkingConfig"] = thinking
    if options.response_schema is not None:
        generation["responseMimeType"] = "application/json"
        if compat.supports_parameters_json_schema:
            generation["responseJsonSchema"] = gemini_schema(options.response_schema.schema)
        else:
            generation["responseSchema"] = openapi_schema(options.response_schema.schema)
    return generation


def _merge(sampling: Mapping[str, Json], fields: JsonObject, generation: JsonObject) -> None:
    for name, value in sampling.items():
        if name in _OURS:
            continue
        if name == "generationConfig" and isinstance(value, dict):
            _merge(value, fields, generation)
        elif name in _BESIDE:
            fields[name] = value
        else:
            generation[name] = value


def _function(tool: ToolDefinition, compat: GoogleCompat) -> JsonObject:
    function: JsonObject = {"name": tool.name, "description": tool.description}
    parameters = object_schema(tool.parameters)
    if compat.supports_parameters_json_schema:
        function["parametersJsonSchema"] = gemini_schema(parameters)
    elif parameters.get("properties"):  # an object without properties is refused there
        function["parameters"] = openapi_schema(parameters)
    return function


def _calling(choice: ToolChoice) -> JsonObject:
    match choice:
        case NamedTool(name=name):
            return {"mode": "ANY", "allowedFunctionNames": [name]}
        case "required":
            return {"mode": "ANY"}
        case "none":
            return {"mode": "NONE"}
        case "auto":
            return {"mode": "AUTO"}
