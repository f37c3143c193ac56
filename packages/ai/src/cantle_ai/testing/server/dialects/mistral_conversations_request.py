"""The rules for a whole request of Mistral's chat API: headers, fields, their types and limits.

From the type `ChatCompletionStreamRequest` of Mistral's SDK for Python. The endpoint refuses what it does not know
("Extra inputs are not permitted").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from cantle_ai.codec import Json, JsonObject
from cantle_ai.testing.server.body import Body, read_body
from cantle_ai.testing.server.dialects.mistral_conversations_messages import TOOL_NAME, check_messages
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
from cantle_ai.testing.server.strictness import Strictness, check_bearer, check_json, check_streamed

__all__ = ["check_request"]

_FIELDS = frozenset(
    {
        "model", "messages", "temperature", "top_p", "max_tokens", "stream", "stop", "random_seed", "metadata",
        "response_format", "tools", "tool_choice", "presence_penalty", "frequency_penalty", "min_tokens",
        "repetition_penalty", "top_k", "logprobs", "top_logprobs", "prompt_logprobs", "top_prompt_logprobs", "n",
        "prediction", "parallel_tool_calls", "reasoning_effort", "prompt_mode", "guardrails", "prompt_cache_key",
        "service_tier", "safe_prompt",
    }
)  # fmt: skip
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_RANGES = {
    "temperature": (0.0, 1.5),
    "top_p": (0.0, 1.0),
    "presence_penalty": (-2.0, 2.0),
    "frequency_penalty": (-2.0, 2.0),
}
_CHOICES = ("auto", "none", "any", "required")


def check_request(headers: Mapping[str, str], data: bytes, strictness: Strictness) -> Body:
    """The body of a request that Mistral would take. Raises :class:`Refusal` with the first fault."""
    check_json(headers)
    check_bearer(headers, strictness)
    body = read_body(data)
    values = body.values
    known_fields(values, _FIELDS | set(strictness.extra_fields), "the request")
    text_of(values.get("model"), "model")
    check_streamed(values)
    limit = limit_of(values.get("max_tokens", 0), 0, None, "max_tokens")
    _sampling(values)
    _thinking(values)
    if "tools" in values:
        _tools(values["tools"])
    _choice(values)
    _format(values)
    if "prompt_cache_key" in values:
        text_of(values["prompt_cache_key"], "prompt_cache_key")
    check_messages(values.get("messages"))
    strictness.check_fits(len(data), limit)
    return body


def _sampling(values: JsonObject) -> None:
    for name, (low, high) in _RANGES.items():
        number_of(values.get(name, low), low, high, name)


def _thinking(values: JsonObject) -> None:
    if values.get("reasoning_effort", "none") not in _EFFORTS:
        raise Refusal(
            "effort", f"reasoning_effort is {values['reasoning_effort']!r}: it must be {', '.join(_EFFORTS)}"
        )
    if values.get("prompt_mode", "reasoning") != "reasoning":
        raise Refusal("prompt-mode", f"prompt_mode is {values['prompt_mode']!r}: it must be reasoning")


def _tools(value: Json) -> None:
    names: set[str] = set()
    for index, item in enumerate(list_of(value, "tools")):
        path = f"tools[{index}]"
        tool = object_of(item, path)
        known_fields(tool, {"type", "function"}, path)
        if tool.get("type") != "function":
            raise Refusal("type", f"{path}.type must be 'function', not {tool.get('type')!r}")
        function = object_of(tool.get("function"), f"{path}.function")
        known_fields(function, {"name", "description", "parameters", "strict"}, f"{path}.function")
        new_name(function.get("name"), TOOL_NAME, names, f"{path}.function.name")
        if not isinstance(function.get("description", ""), str):
            raise Refusal("type", f"{path}.function.description must be a string")
        flag_of(function.get("strict", False), f"{path}.function.strict")
        where = f"{path}.function.parameters"
        check_schema(object_of(function.get("parameters"), where), where)


def _choice(values: JsonObject) -> None:
    if "tool_choice" not in values:
        return
    choice = values["tool_choice"]
    if "tools" not in values:
        raise Refusal("tool-choice", "tool_choice may only be given with tools")
    if isinstance(choice, str):
        if choice not in _CHOICES:
            raise Refusal("tool-choice", f"tool_choice is {choice!r}, which is none of {', '.join(_CHOICES)}")
        return
    named = object_of(choice, "tool_choice")
    known_fields(named, {"type", "function"}, "tool_choice")
    function = object_of(named.get("function"), "tool_choice.function")
    known_fields(function, {"name"}, "tool_choice.function")
    tools = cast("list[dict[str, JsonObject]]", values["tools"])
    if function.get("name") not in [tool["function"].get("name") for tool in tools]:
        raise Refusal(
            "tool-choice", f"tool_choice.function.name is {function.get('name')!r}, which is no tool"
        )


def _format(values: JsonObject) -> None:
    if "response_format" not in values:
        return
    wanted = object_of(values["response_format"], "response_format")
    known_fields(wanted, {"type", "json_schema"}, "response_format")
    if wanted.get("type") not in ("text", "json_object", "json_schema"):
        raise Refusal("format", f"response_format.type is {wanted.get('type')!r}")
    if wanted["type"] == "json_schema":
        schema = object_of(wanted.get("json_schema"), "response_format.json_schema")
        known_fields(schema, {"name", "description", "schema", "strict"}, "response_format.json_schema")
        text_of(schema.get("name"), "response_format.json_schema.name")
        object_of(schema.get("schema"), "response_format.json_schema.schema")
