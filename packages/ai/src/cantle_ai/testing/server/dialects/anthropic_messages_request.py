"""The rules for a whole Messages request: headers, fields, their types and limits.

From "Messages", "Thinking", "Prompt caching" and "Structured outputs" at platform.claude.com, and the parameter
types of Anthropic's SDK for Python.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from cantle_ai.codec import Json, JsonObject
from cantle_ai.testing.server.body import Body, read_body
from cantle_ai.testing.server.dialects.anthropic_messages_messages import (
    TOOL_NAME,
    check_mark,
    check_messages,
    check_text_blocks,
)
from cantle_ai.testing.server.refusal import (
    Path,
    Refusal,
    flag_of,
    known_fields,
    limit_of,
    list_of,
    matching,
    new_name,
    number_of,
    object_of,
    text_of,
)
from cantle_ai.testing.server.schemas import check_schema
from cantle_ai.testing.server.strictness import (
    Strictness,
    check_bearer,
    check_json,
    check_key,
    check_streamed,
)

__all__ = ["check_request"]

_FIELDS = frozenset(
    {
        "model", "messages", "max_tokens", "system", "tools", "tool_choice", "thinking", "output_config",
        "temperature", "top_p", "top_k", "stop_sequences", "stream", "metadata", "service_tier", "container",
        "cache_control", "diagnostics", "inference_geo", "speed",
    }
)  # fmt: skip
_TOOL_FIELDS = frozenset(
    {
        "type", "name", "description", "input_schema", "cache_control", "eager_input_streaming", "strict",
        "allowed_callers", "defer_loading", "input_examples",
    }
)  # fmt: skip
_THINKING_FIELDS = {
    "enabled": {"type", "budget_tokens", "display", "block_binding"},
    "adaptive": {"type", "display", "block_binding"},
    "disabled": {"type"},
    "between_tools": {"type"},
}
_EFFORTS = ("low", "medium", "high", "xhigh", "max")
_CHOICES = {
    "auto": {"type", "disable_parallel_tool_use"},
    "any": {"type", "disable_parallel_tool_use"},
    "tool": {"type", "name", "disable_parallel_tool_use"},
    "none": {"type"},
}
_MOST_MARKS = 4
_BINDING = "thinking-binding-controls-2026-08-01"
_REFUSED_KEYWORDS = (
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength",
    "maxItems", "uniqueItems", "oneOf", "not", "if", "patternProperties",
)  # fmt: skip
"""What a strict schema must not have."""


def check_request(headers: Mapping[str, str], data: bytes, strictness: Strictness) -> Body:
    """The body of a request that everybody would take. Raises :class:`Refusal` with the first fault."""
    betas = _headers(headers, strictness)
    body = read_body(data)
    values = body.values
    known_fields(values, _FIELDS | set(strictness.extra_fields), "the request")
    text_of(values.get("model"), "model")
    check_streamed(values)
    limit = limit_of(values.get("max_tokens"), 1, 10_000_000, "max_tokens")
    thinks = _thinking(values, limit, betas)
    _sampling(values, thinks)
    if "system" in values:
        check_text_blocks(values["system"], "system")
    if "tools" in values:
        _tools(values["tools"])
    _choice(values, thinks)
    _output(values)
    check_messages(values.get("messages"))
    _marks(values)
    strictness.check_fits(len(data), limit)
    return body


def _headers(headers: Mapping[str, str], strictness: Strictness) -> list[str]:
    check_json(headers)
    if "authorization" in headers:
        if "x-api-key" in headers:
            raise Refusal("authorization", "x-api-key and authorization cannot both be given", status=401)
        check_bearer(headers, strictness)
    else:
        check_key(headers.get("x-api-key", ""), strictness, "x-api-key")
    matching(headers.get("anthropic-version", ""), r"\d{4}-\d\d-\d\d", "the header anthropic-version")
    betas = headers["anthropic-beta"].split(",") if "anthropic-beta" in headers else []
    for name in betas:
        matching(name, r"[a-z0-9-]+-\d{4}-\d\d-\d\d", "the header anthropic-beta")
    if len(set(betas)) < len(betas):
        raise Refusal("beta", "the header anthropic-beta names a beta twice")
    return betas


def _thinking(values: JsonObject, limit: int, betas: list[str]) -> bool:
    """Whether the model may think."""
    if "thinking" not in values:
        return False
    thinking = object_of(values["thinking"], "thinking")
    kind = thinking.get("type")
    if not isinstance(kind, str) or kind not in _THINKING_FIELDS:
        raise Refusal(
            "thinking", f"thinking.type is {kind!r}, which is none of {', '.join(_THINKING_FIELDS)}"
        )
    known_fields(thinking, _THINKING_FIELDS[kind], "thinking")
    if thinking.get("display", "summarized") not in ("summarized", "omitted"):
        raise Refusal("thinking", f"thinking.display is {thinking['display']!r}")
    if "block_binding" in thinking and _BINDING not in betas:
        raise Refusal("beta", f"thinking.block_binding needs the beta {_BINDING}")
    if kind == "enabled":
        budget = thinking.get("budget_tokens")
        if not isinstance(budget, int) or budget < 1024:
            raise Refusal("budget", f"thinking.budget_tokens is {budget!r}: it must be at least 1024")
        if budget >= limit:
            raise Refusal(
                "budget", f"max_tokens ({limit}) must be greater than thinking.budget_tokens ({budget})"
            )
    return kind in ("enabled", "adaptive")


def _sampling(values: JsonObject, thinks: bool) -> None:
    for name in ("temperature", "top_p"):
        number_of(values.get(name, 0), 0, 1, name)
    if thinks and values.get("temperature", 1) != 1:
        raise Refusal("temperature", "temperature may only be set to 1 when thinking is enabled")
    if thinks and "top_k" in values:
        raise Refusal("temperature", "top_k must be unset when thinking is enabled")


def _choice(values: JsonObject, thinks: bool) -> None:
    if "tool_choice" not in values:
        return
    choice = object_of(values["tool_choice"], "tool_choice")
    kind = choice.get("type")
    if not isinstance(kind, str) or kind not in _CHOICES:
        raise Refusal("tool-choice", f"tool_choice.type is {kind!r}, which is none of {', '.join(_CHOICES)}")
    known_fields(choice, _CHOICES[kind], "tool_choice")
    if "tools" not in values:
        raise Refusal("tool-choice", "tool_choice may only be given with tools")
    if thinks and kind in ("any", "tool"):
        raise Refusal("tool-choice", "thinking may not be enabled when tool_choice forces tool use")
    if kind == "tool":
        names = [tool.get("name") for tool in cast("list[JsonObject]", values["tools"])]
        if choice.get("name") not in names:
            raise Refusal("tool-choice", f"tool_choice.name is {choice.get('name')!r}, which is no tool")


def _output(values: JsonObject) -> None:
    if "output_config" not in values:
        return
    output = object_of(values["output_config"], "output_config")
    known_fields(output, {"effort", "format"}, "output_config")
    if output.get("effort", "low") not in _EFFORTS:
        raise Refusal(
            "effort", f"output_config.effort is {output['effort']!r}: it must be {', '.join(_EFFORTS)}"
        )
    if "format" in output:
        form = object_of(output["format"], "output_config.format")
        known_fields(form, {"type", "schema"}, "output_config.format")
        if form.get("type") != "json_schema":
            raise Refusal(
                "format", f"output_config.format.type is {form.get('type')!r}: it must be json_schema"
            )
        _closed(object_of(form.get("schema"), "output_config.format.schema"), "output_config.format.schema")


def _tools(value: Json) -> None:
    names: set[str] = set()
    strict = optional = 0
    for index, item in enumerate(list_of(value, "tools")):
        path = f"tools[{index}]"
        tool = object_of(item, path)
        known_fields(tool, _TOOL_FIELDS, path)
        new_name(tool.get("name"), TOOL_NAME, names, f"{path}.name")
        if "description" in tool:
            text_of(tool["description"], f"{path}.description")
        for flag in ("strict", "eager_input_streaming", "defer_loading"):
            flag_of(tool.get(flag, False), f"{path}.{flag}")
        schema = object_of(tool.get("input_schema"), f"{path}.input_schema")
        check_schema(schema, f"{path}.input_schema")
        if tool.get("strict") is True:
            strict += 1
            optional += _closed(schema, f"{path}.input_schema")
    if strict > 20 or optional > 24:
        raise Refusal("schema", f"{strict} strict tools with {optional} optional properties are too complex")


def _closed(node: Json, path: Path) -> int:
    """Refuse a schema that cannot bind a model. How many of its properties are optional."""
    if isinstance(node, list):
        return sum(_closed(child, f"{path}[{index}]") for index, child in enumerate(node))
    if not isinstance(node, dict):
        return 0
    for keyword in _REFUSED_KEYWORDS:
        if keyword in node:
            raise Refusal("schema", f"{path}: the property {keyword!r} is not supported in a strict schema")
    if node.get("minItems", 0) not in (0, 1):
        raise Refusal("schema", f"{path}.minItems must be 0 or 1 in a strict schema")
    optional = 0
    if node.get("type") == "object":
        if node.get("additionalProperties") is not False:
            raise Refusal("schema", f"{path}.additionalProperties must be false in a strict schema")
        required = node.get("required", [])
        properties = object_of(node.get("properties", {}), f"{path}.properties")
        optional = sum(name not in cast("list[Json]", required) for name in properties)
    for name, child in node.items():
        if name in ("properties", "$defs"):
            children = object_of(child, f"{path}.{name}")
            optional += sum(_closed(each, f"{path}.{name}.{key}") for key, each in children.items())
        elif name in ("items", "anyOf", "allOf"):
            optional += _closed(child, f"{path}.{name}")
    return optional


def _marks(values: JsonObject) -> None:
    """The cache marks of a request, in the order in which the prompt is read: tools, system, messages."""
    marks: list[JsonObject] = []
    for name in ("tools", "system", "messages"):
        _collect(values.get(name), marks)
    if len(marks) > _MOST_MARKS:
        raise Refusal(
            "cache-control", f"a maximum of 4 blocks with cache_control may be provided, not {len(marks)}"
        )
    times = [mark.get("ttl", "5m") for mark in marks]
    if "5m" in times and "1h" in times[times.index("5m") :]:
        raise Refusal("cache-control", "a cache_control with ttl 1h must not come after one with ttl 5m")


def _collect(value: Json, marks: list[JsonObject]) -> None:
    for item in value if isinstance(value, list) else []:
        if isinstance(item, dict):
            if "cache_control" in item:
                marks.append(check_mark(item["cache_control"]))
            _collect(item.get("content"), marks)
