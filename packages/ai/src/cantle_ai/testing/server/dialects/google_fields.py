"""The rules for a whole `streamGenerateContent` request: headers, fields, their types and limits.

From the reference of the API (ai.google.dev/api/generate-content), and the types of Google's own SDK.
"""

from __future__ import annotations

from collections.abc import Mapping

from cantle_ai.codec import Json, JsonObject
from cantle_ai.testing.server.body import Body, read_body
from cantle_ai.testing.server.dialects.google_contents import (
    FUNCTION_NAME,
    ModelRules,
    check_contents,
    rules_of,
)
from cantle_ai.testing.server.refusal import (
    Path,
    Refusal,
    flag_of,
    known_fields,
    limit_of,
    list_of,
    matching,
    number_of,
    object_of,
    text_of,
)
from cantle_ai.testing.server.schemas import check_schema
from cantle_ai.testing.server.strictness import Strictness, check_json

__all__ = ["check_request"]

_FIELDS = frozenset(
    {
        "contents", "systemInstruction", "tools", "toolConfig", "safetySettings", "generationConfig",
        "cachedContent", "labels", "serviceTier", "store",
    }
)  # fmt: skip
_GENERATION = frozenset(
    {
        "maxOutputTokens", "temperature", "topP", "topK", "candidateCount", "stopSequences", "seed",
        "presencePenalty", "frequencyPenalty", "responseMimeType", "responseSchema", "responseJsonSchema",
        "responseLogprobs", "logprobs", "responseModalities", "mediaResolution", "speechConfig", "thinkingConfig",
        "imageConfig",
    }
)  # fmt: skip
_MOST_TOKENS = 1_000_000
_LEVELS = ("MINIMAL", "LOW", "MEDIUM", "HIGH", "XHIGH")
_BUDGETS = {
    "gemini-2.5-pro": (128, 32768),
    "gemini-2.5-flash-lite": (512, 24576),
    "gemini-2.5-flash": (1, 24576),
}
"""Tokens that a model may be told to think for, beside 0 (not for Pro) and -1."""
_OPENAPI = frozenset(
    {
        "type", "format", "title", "description", "nullable", "enum", "maxItems", "minItems", "properties",
        "required", "minProperties", "maxProperties", "minLength", "maxLength", "pattern", "example", "anyOf",
        "propertyOrdering", "default", "items", "minimum", "maximum",
    }
)  # fmt: skip
_NO_KEYWORDS = frozenset({"$schema", "$id", "$ref", "$defs", "definitions", "const", "$comment"})


def check_request(headers: Mapping[str, str], data: bytes, model: str, strictness: Strictness) -> Body:
    """The body of a request that would be taken. Raises :class:`Refusal` with the first fault."""
    check_json(headers)
    body = read_body(data)
    values, rules = body.values, rules_of(model)
    known_fields(values, _FIELDS | set(strictness.extra_fields), "the request")
    check_contents(values.get("contents"), rules)
    if "systemInstruction" in values:
        _system(values["systemInstruction"])
    names = _tools(values["tools"]) if "tools" in values else []
    if "toolConfig" in values:
        _tool_config(values["toolConfig"], names)
    answer = _generation(values.get("generationConfig", {}), rules, bool(names))
    strictness.check_fits(len(data), answer)
    return body


def _system(value: Json) -> None:
    system = object_of(value, "systemInstruction")
    known_fields(system, {"parts", "role"}, "systemInstruction")
    for index, item in enumerate(list_of(system.get("parts"), "systemInstruction.parts")):
        path = f"systemInstruction.parts[{index}]"
        part = object_of(item, path)
        known_fields(part, {"text"}, path)
        text_of(part.get("text"), f"{path}.text")


def _tools(value: Json) -> list[str]:
    names: list[str] = []
    for index, item in enumerate(list_of(value, "tools")):
        path = f"tools[{index}]"
        tool = object_of(item, path)
        known_fields(tool, {"functionDeclarations"}, path)
        declared = list_of(tool.get("functionDeclarations"), f"{path}.functionDeclarations")
        for number, function in enumerate(declared):
            where = f"{path}.functionDeclarations[{number}]"
            names.append(_function(object_of(function, where), where))
    if len(set(names)) < len(names):
        raise Refusal("tool-name", "duplicate function declaration found")
    return names


def _function(function: JsonObject, path: Path) -> str:
    known_fields(function, {"name", "description", "parameters", "parametersJsonSchema"}, path)
    text_of(function.get("description"), f"{path}.description")
    if "parameters" in function and "parametersJsonSchema" in function:
        raise Refusal("schema", f"{path} has parameters of both kinds")
    for name in ("parameters", "parametersJsonSchema"):
        if name in function:
            schema = object_of(function[name], f"{path}.{name}")
            check_schema(schema, f"{path}.{name}")
            _keywords(schema, f"{path}.{name}", openapi=name == "parameters")
    return matching(function.get("name"), FUNCTION_NAME, f"{path}.name")


def _keywords(node: Json, path: Path, *, openapi: bool) -> None:
    if not isinstance(node, dict):
        return
    unknown = node.keys() - _OPENAPI if openapi else node.keys() & _NO_KEYWORDS
    if unknown:
        raise Refusal("schema", f"{path}: unknown name {', '.join(sorted(unknown))}: cannot find field")
    if openapi and isinstance(node.get("type"), list):
        raise Refusal("schema", f"{path}.type: proto field is not repeating, cannot start list")
    if openapi and node.get("type") == "object" and node.get("properties") == {}:
        raise Refusal("schema", f"{path}.properties: should be non-empty for OBJECT type")
    properties = node.get("properties")
    for name, child in (properties if isinstance(properties, dict) else {}).items():
        _keywords(child, f"{path}.properties.{name}", openapi=openapi)
    _keywords(node.get("items"), f"{path}.items", openapi=openapi)
    variants = node.get("anyOf")
    for index, child in enumerate(variants if isinstance(variants, list) else []):
        _keywords(child, f"{path}.anyOf[{index}]", openapi=openapi)


def _tool_config(value: Json, names: list[str]) -> None:
    if not names:
        raise Refusal("tools", "toolConfig needs function declarations")
    config = object_of(value, "toolConfig")
    known_fields(config, {"functionCallingConfig"}, "toolConfig")
    calling = object_of(config.get("functionCallingConfig"), "toolConfig.functionCallingConfig")
    known_fields(calling, {"mode", "allowedFunctionNames"}, "toolConfig.functionCallingConfig")
    mode = calling.get("mode")
    if mode not in ("AUTO", "ANY", "NONE", "VALIDATED"):
        raise Refusal("mode", f"toolConfig.functionCallingConfig.mode is {mode!r}")
    if "allowedFunctionNames" in calling:
        allowed = list_of(calling["allowedFunctionNames"], "allowedFunctionNames")
        if mode not in ("ANY", "VALIDATED") or not set(map(str, allowed)) <= set(names):
            raise Refusal("mode", "allowedFunctionNames go with the mode ANY, and name declared functions")


def _generation(value: Json, rules: ModelRules, tools: bool) -> int:
    """Checks `generationConfig`; gives the limit of the answer."""
    config = object_of(value, "generationConfig")
    known_fields(config, _GENERATION, "generationConfig")
    limit = limit_of(config.get("maxOutputTokens", 1), 1, _MOST_TOKENS, "maxOutputTokens")
    for name, top in (("temperature", 2), ("topP", 1)):
        number_of(config.get(name, 0), 0, top, name)
    schemas = config.keys() & {"responseSchema", "responseJsonSchema"}
    json_type = config.get("responseMimeType") == "application/json"
    if schemas and (len(schemas) > 1 or not json_type):
        raise Refusal("schema", "a response schema needs responseMimeType application/json, and comes once")
    if json_type and tools and not rules.modern:
        raise Refusal("schema", "function calling with the response type application/json is unsupported")
    for name in schemas:
        schema = object_of(config[name], f"generationConfig.{name}")
        _keywords(schema, f"generationConfig.{name}", openapi=name == "responseSchema")
    if "thinkingConfig" in config:
        _thinking(object_of(config["thinkingConfig"], "thinkingConfig"), rules)
    return limit


def _thinking(config: JsonObject, rules: ModelRules) -> None:
    known_fields(config, {"includeThoughts", "thinkingBudget", "thinkingLevel"}, "thinkingConfig")
    flag_of(config.get("includeThoughts", True), "thinkingConfig.includeThoughts")
    if "thinkingBudget" in config and "thinkingLevel" in config:
        raise Refusal("thinking", "you can only set one of thinking budget and thinking level")
    if "thinkingLevel" in config:
        if not rules.modern or config["thinkingLevel"] not in _LEVELS:
            raise Refusal("thinking", f"thinking level {config['thinkingLevel']!r} is not supported")
    if "thinkingBudget" in config:
        _budget(config["thinkingBudget"], rules.name)


def _budget(budget: Json, model: str) -> None:
    if not isinstance(budget, int) or isinstance(budget, bool):
        raise Refusal("type", f"thinkingConfig.thinkingBudget is {budget!r}: it must be a whole number")
    bounds = next((_BUDGETS[name] for name in _BUDGETS if model.startswith(name)), None)
    if bounds is None or budget == -1:
        return
    if budget == 0 and model.startswith("gemini-2.5-pro"):
        raise Refusal("thinking", "budget 0 is invalid: this model only works in thinking mode")
    if budget != 0 and not bounds[0] <= budget <= bounds[1]:
        raise Refusal("thinking", f"the thinking budget {budget} is out of range: {bounds[0]} to {bounds[1]}")
