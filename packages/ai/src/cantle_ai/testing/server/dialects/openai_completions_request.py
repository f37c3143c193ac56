"""The rules for a whole chat-completions request: headers, fields, their types and limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from cantle_ai.codec import Json, JsonObject
from cantle_ai.testing.server.body import Body, read_body
from cantle_ai.testing.server.dialects.openai_completions_messages import TOOL_NAME, check_messages
from cantle_ai.testing.server.refusal import (
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
from cantle_ai.testing.server.strictness import Strictness, check_bearer, check_json, check_streamed

__all__ = ["check_request"]

_FIELDS = frozenset(
    {
        "model", "messages", "stream", "stream_options", "tools", "tool_choice", "parallel_tool_calls",
        "max_tokens", "max_completion_tokens", "temperature", "top_p", "stop", "n", "seed", "presence_penalty",
        "frequency_penalty", "logit_bias", "logprobs", "top_logprobs", "user", "response_format",
        "reasoning_effort", "store", "metadata", "service_tier", "prompt_cache_key", "prompt_cache_retention",
        "safety_identifier", "verbosity", "modalities", "prediction",
    }
)  # fmt: skip
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


def check_request(headers: Mapping[str, str], data: bytes, strictness: Strictness) -> Body:
    """The body of a request that every vendor would take. Raises :class:`Refusal` with the first fault."""
    check_json(headers)
    check_bearer(headers, strictness)
    body = read_body(data)
    values = body.values
    known_fields(values, _FIELDS | set(strictness.extra_fields), "the request")
    text_of(values.get("model"), "model")
    _stream(values)
    _limits(values)
    if "tools" in values:
        _tools(values["tools"])
    for name in ("tool_choice", "parallel_tool_calls"):
        if name in values and "tools" not in values:
            raise Refusal("tools", f"{name} needs tools")
    if "tool_choice" in values:
        _tool_choice(values["tool_choice"], values["tools"])
    if "response_format" in values:
        _response_format(values["response_format"])
    check_messages(values.get("messages"))
    answer = cast("int", values.get("max_tokens", values.get("max_completion_tokens", 0)))
    strictness.check_fits(len(data), answer)
    return body


def _stream(values: JsonObject) -> None:
    check_streamed(values)
    if "stream_options" in values:
        options = object_of(values["stream_options"], "stream_options")
        known_fields(options, {"include_usage", "include_obfuscation"}, "stream_options")
        for name, value in options.items():
            flag_of(value, f"stream_options.{name}")


def _limits(values: JsonObject) -> None:
    if "max_tokens" in values and "max_completion_tokens" in values:
        raise Refusal("max-tokens", "max_tokens and max_completion_tokens cannot both be given")
    for name in ("max_tokens", "max_completion_tokens"):
        limit_of(values.get(name, 1), 1, 1_000_000, name)
    for name, top in (("temperature", 2), ("top_p", 1)):
        number_of(values.get(name, 0), 0, top, name)
    effort = values.get("reasoning_effort", "low")
    if effort not in _EFFORTS:
        raise Refusal("effort", f"reasoning_effort is {effort!r}: it must be {', '.join(_EFFORTS)}")
    key = values.get("prompt_cache_key", "-")
    if not isinstance(key, str) or not 1 <= len(key) <= 64:
        raise Refusal("cache-key", "prompt_cache_key must be a string of 1 to 64 characters")


def _tools(value: Json) -> None:
    names: set[str] = set()
    for index, item in enumerate(list_of(value, "tools")):
        path = f"tools[{index}]"
        tool = object_of(item, path)
        known_fields(tool, {"type", "function", "cache_control"}, path)
        if tool.get("type") != "function":
            raise Refusal("type", f"{path}.type must be 'function', not {tool.get('type')!r}")
        function = object_of(tool.get("function"), f"{path}.function")
        known_fields(function, {"name", "description", "parameters", "strict"}, f"{path}.function")
        new_name(function.get("name"), TOOL_NAME, names, f"{path}.function.name")
        if "description" in function:
            text_of(function["description"], f"{path}.function.description")
        strict = flag_of(function.get("strict", False), f"{path}.function.strict")
        parameters = object_of(function.get("parameters"), f"{path}.function.parameters")
        check_schema(parameters, f"{path}.function.parameters", strict=strict)


def _tool_choice(value: Json, tools: Json) -> None:
    if isinstance(value, str):
        if value not in ("auto", "none", "required"):
            raise Refusal(
                "tool-choice", f"tool_choice is {value!r}: it must be auto, none, required or a tool"
            )
        return
    choice = object_of(value, "tool_choice")
    known_fields(choice, {"type", "function"}, "tool_choice")
    name = object_of(choice.get("function"), "tool_choice.function").get("name")
    named = [object_of(object_of(tool, "tools").get("function"), "tools") for tool in list_of(tools, "tools")]
    if choice.get("type") != "function" or name not in [function.get("name") for function in named]:
        raise Refusal("tool-choice", f"tool_choice names {name!r}, which is no tool of this request")


def _response_format(value: Json) -> None:
    form = object_of(value, "response_format")
    kind = form.get("type")
    if kind in ("text", "json_object"):
        return
    if kind != "json_schema":
        raise Refusal("type", f"response_format.type must be text, json_object or json_schema, not {kind!r}")
    inner = object_of(form.get("json_schema"), "response_format.json_schema")
    known_fields(inner, {"name", "description", "schema", "strict"}, "response_format.json_schema")
    matching(inner.get("name"), TOOL_NAME, "response_format.json_schema.name")
    schema = object_of(inner.get("schema"), "response_format.json_schema.schema")
    check_schema(schema, "response_format.json_schema.schema", strict=inner.get("strict") is True)
