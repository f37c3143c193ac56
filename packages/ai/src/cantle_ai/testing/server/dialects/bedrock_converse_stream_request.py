"""The rules for a whole Converse request: headers, fields, their types and limits.

From the service's model in botocore, and "Inference request parameters", "Prompt caching", "Extended thinking" and
"Structured outputs" of AWS's documentation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import cast

from cantle_ai.codec import Json, JsonObject
from cantle_ai.testing.server.body import Body, read_body
from cantle_ai.testing.server.dialects.bedrock_converse_stream_messages import (
    TOOL_NAME,
    check_cache_point,
    check_messages,
    only_member,
)
from cantle_ai.testing.server.refusal import (
    Refusal,
    flag_of,
    known_fields,
    limit_of,
    list_of,
    new_name,
    number_of,
    object_of,
    text_of,
)
from cantle_ai.testing.server.schemas import check_schema
from cantle_ai.testing.server.strictness import Strictness, check_bearer, check_json

__all__ = ["check_request"]

_FIELDS = frozenset(
    {
        "messages", "system", "inferenceConfig", "toolConfig", "guardrailConfig", "additionalModelRequestFields",
        "promptVariables", "additionalModelResponseFieldPaths", "requestMetadata", "performanceConfig",
        "serviceTier", "outputConfig", "projectIdentifier",
    }
)  # fmt: skip
_SIGNATURE = re.compile(
    r"AWS4-HMAC-SHA256 Credential=[A-Z0-9]+/\d{8}/[a-z0-9-]+/bedrock/aws4_request, "
    r"SignedHeaders=([a-z0-9;-]+), Signature=[0-9a-f]{64}"
)
_MOST_CACHE_POINTS = 4
_BINDING = "thinking-binding-controls-2026-08-01"
_UNBOUND = (
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength",
    "maxItems", "uniqueItems", "patternProperties",
)  # fmt: skip
"""Keywords of JSON schema that "Structured outputs" lists as not supported."""
_EFFORTS = ("low", "medium", "high", "xhigh", "max")


def check_request(headers: Mapping[str, str], data: bytes, strictness: Strictness) -> Body:
    """The body of a request that everybody would take. Raises :class:`Refusal` with the first fault."""
    check_json(headers)
    _authorization(headers, strictness)
    body = read_body(data)
    values = body.values
    known_fields(values, _FIELDS | set(strictness.extra_fields), "the request")
    limit = _inference(values)
    thinks = _model_fields(values, limit)
    if "system" in values:
        for index, item in enumerate(list_of(values["system"], "system")):
            name, inner = only_member(item, {"text", "cachePoint"}, f"system.{index}")
            if name == "text":
                text_of(inner, f"system.{index}.text")
    if "toolConfig" in values:
        _tools(object_of(values["toolConfig"], "toolConfig"), thinks)
    if check_messages(values.get("messages")) and "toolConfig" not in values:
        raise Refusal(
            "tools", "the toolConfig field must be defined when using toolUse and toolResult content blocks"
        )
    _output(values)
    _cache_points(values)
    strictness.check_fits(len(data), limit)
    return body


def _authorization(headers: Mapping[str, str], strictness: Strictness) -> None:
    value = headers.get("authorization", "")
    if not value.startswith("AWS4-"):
        check_bearer(headers, strictness)
        return
    found = _SIGNATURE.fullmatch(value)
    if found is None:
        raise Refusal("signature", "the authorization header is no signature of version 4", status=403)
    signed = found[1].split(";")
    if "host" not in signed or "x-amz-date" not in signed or not set(signed) <= headers.keys():
        raise Refusal("signature", "host and x-amz-date must be signed, and what is signed sent", status=403)


def _inference(values: JsonObject) -> int:
    """The output limit. Without one Bedrock cuts answers at a limit of its own."""
    config = object_of(values.get("inferenceConfig"), "inferenceConfig")
    known_fields(config, {"maxTokens", "temperature", "topP", "stopSequences"}, "inferenceConfig")
    for name in ("temperature", "topP"):
        number_of(config.get(name, 0), 0, 1, f"inferenceConfig.{name}")
    return limit_of(config.get("maxTokens"), 1, None, "inferenceConfig.maxTokens")


def _model_fields(values: JsonObject, limit: int) -> bool:
    """Refuse fields that Claude would refuse. Whether it is to think."""
    if "additionalModelRequestFields" not in values:
        return False
    fields = object_of(values["additionalModelRequestFields"], "additionalModelRequestFields")
    betas = fields.get("anthropic_beta", [])
    if "thinking" not in fields:
        return False
    thinking = object_of(fields["thinking"], "thinking")
    known_fields(thinking, {"type", "budget_tokens", "display", "block_binding"}, "thinking")
    kind = thinking.get("type")
    if kind not in ("enabled", "adaptive", "disabled"):
        raise Refusal("thinking", f"thinking.type is {kind!r}")
    if "block_binding" in thinking and _BINDING not in cast("list[Json]", betas):
        raise Refusal("beta", f"thinking.block_binding needs the beta {_BINDING}")
    if kind == "enabled":
        budget = thinking.get("budget_tokens")
        if not isinstance(budget, int) or budget < 1024:
            raise Refusal("budget", f"thinking.budget_tokens is {budget!r}: it must be at least 1024")
        if budget >= limit:
            raise Refusal("budget", f"maxTokens ({limit}) must be greater than budget_tokens ({budget})")
    effort = object_of(fields.get("output_config", {}), "output_config").get("effort", "low")
    if effort not in _EFFORTS:
        raise Refusal("effort", f"output_config.effort is {effort!r}: it must be {', '.join(_EFFORTS)}")
    if kind != "disabled" and "temperature" in cast("JsonObject", values["inferenceConfig"]):
        raise Refusal("temperature", "temperature may only be set to 1 when thinking is enabled")
    return kind != "disabled"


def _tools(config: JsonObject, thinks: bool) -> None:
    known_fields(config, {"tools", "toolChoice"}, "toolConfig")
    names: set[str] = set()
    held = 0
    for index, item in enumerate(list_of(config.get("tools"), "toolConfig.tools")):
        path = f"toolConfig.tools.{index}"
        kind, inner = only_member(item, {"toolSpec", "cachePoint"}, path)
        if kind == "cachePoint":
            continue
        spec = object_of(inner, f"{path}.toolSpec")
        known_fields(spec, {"name", "description", "inputSchema", "strict"}, f"{path}.toolSpec")
        new_name(spec.get("name"), TOOL_NAME, names, f"{path}.toolSpec.name")
        if "description" in spec:
            text_of(spec["description"], f"{path}.toolSpec.description")
        strict = flag_of(spec.get("strict", False), f"{path}.toolSpec.strict")
        _, schema = only_member(spec.get("inputSchema"), {"json"}, f"{path}.toolSpec.inputSchema")
        where = f"{path}.toolSpec.inputSchema.json"
        check_schema(object_of(schema, where), where)
        if strict:
            held += 1
            _closed(schema, where)
    if held > 20:
        raise Refusal("schema", f"{held} strict tools are too many")
    if "toolChoice" in config:
        kind, inner = only_member(config["toolChoice"], {"auto", "any", "tool"}, "toolConfig.toolChoice")
        if kind != "auto" and thinks:
            raise Refusal("tool-choice", "thinking may not be enabled when toolChoice forces tool use")
        if kind == "tool" and object_of(inner, "toolConfig.toolChoice.tool").get("name") not in names:
            raise Refusal("tool-choice", f"toolConfig.toolChoice.tool is {inner!r}, which is no tool")


def _closed(node: Json, path: str) -> None:
    """Refuse a schema that cannot bind a model: objects that are open, and bounds on numbers and lengths."""
    if isinstance(node, list):
        for index, child in enumerate(node):
            _closed(child, f"{path}.{index}")
    if not isinstance(node, dict):
        return
    for keyword in _UNBOUND:
        if keyword in node:
            raise Refusal("schema", f"{path}: {keyword} is not supported in a strict schema")
    if node.get("type") == "object" and node.get("additionalProperties") is not False:
        raise Refusal("schema", f"{path}.additionalProperties must be false in a strict schema")
    for name, child in node.items():
        if name in ("properties", "$defs"):
            for key, each in object_of(child, f"{path}.{name}").items():
                _closed(each, f"{path}.{name}.{key}")
        elif name in ("items", "anyOf", "allOf"):
            _closed(child, f"{path}.{name}")


def _output(values: JsonObject) -> None:
    if "outputConfig" not in values:
        return
    config = object_of(values["outputConfig"], "outputConfig")
    known_fields(config, {"textFormat", "effort"}, "outputConfig")
    if "textFormat" in config:
        form = object_of(config["textFormat"], "outputConfig.textFormat")
        known_fields(form, {"type", "structure"}, "outputConfig.textFormat")
        if form.get("type") != "json_schema":
            raise Refusal("format", f"outputConfig.textFormat.type is {form.get('type')!r}")
        _, inner = only_member(form.get("structure"), {"jsonSchema"}, "outputConfig.textFormat.structure")
        definition = object_of(inner, "jsonSchema")
        known_fields(definition, {"schema", "name", "description"}, "jsonSchema")
        try:
            schema = json.loads(text_of(definition.get("schema"), "jsonSchema.schema"))
        except ValueError as error:
            raise Refusal("format", f"jsonSchema.schema must be JSON, as text: {error}") from None
        object_of(schema, "jsonSchema.schema")


def _cache_points(values: JsonObject) -> None:
    """The cache points of a request, in the order in which the prompt is read: tools, system, messages."""
    found: list[str] = []
    config = cast("JsonObject", values.get("toolConfig", {}))
    for blocks in (config.get("tools"), values.get("system")):
        _collect(blocks, found)
    for message in cast("list[JsonObject]", values["messages"]):
        _collect(message["content"], found)
    if len(found) > _MOST_CACHE_POINTS:
        raise Refusal("cache-point", f"at most 4 cache points may be set, not {len(found)}")
    if "5m" in found and "1h" in found[found.index("5m") :]:
        raise Refusal("cache-point", "a cachePoint with ttl 1h must not come after one with ttl 5m")


def _collect(blocks: Json, found: list[str]) -> None:
    for block in blocks if isinstance(blocks, list) else []:
        if isinstance(block, dict) and "cachePoint" in block:
            found.append(check_cache_point(block["cachePoint"], "cachePoint"))
