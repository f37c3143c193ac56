"""The rules for the body of a request for a response: fields, their types and limits."""

from __future__ import annotations

from collections.abc import Mapping

from cantle_ai.codec import Json, JsonObject
from cantle_ai.testing.server.body import Body, read_body
from cantle_ai.testing.server.dialects.openai_responses_input import TOOL_NAME, check_input
from cantle_ai.testing.server.refusal import (
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
from cantle_ai.testing.server.strictness import Strictness, check_streamed

__all__ = ["check_body"]

_FIELDS = frozenset(
    {
        "background", "context_management", "conversation", "include", "input", "instructions",
        "max_output_tokens", "max_tool_calls", "metadata", "model", "parallel_tool_calls", "previous_response_id",
        "prompt", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "reasoning",
        "safety_identifier", "service_tier", "store", "stream", "stream_options", "temperature", "text",
        "tool_choice", "tools", "top_logprobs", "top_p", "truncation", "user",
    }
)  # fmt: skip
_INCLUDABLE = frozenset(
    {
        "file_search_call.results", "web_search_call.results", "web_search_call.action.sources",
        "message.input_image.image_url", "computer_call_output.output.image_url",
        "code_interpreter_call.outputs", "reasoning.encrypted_content", "message.output_text.logprobs",
    }
)  # fmt: skip
_ONE_OF: Mapping[str, tuple[str, ...]] = {
    "prompt_cache_retention": ("in_memory", "24h"),
    "service_tier": ("auto", "default", "flex", "scale", "priority", "fast", "ultrafast"),
    "truncation": ("auto", "disabled"),
}
_REASONING: Mapping[str, tuple[str, ...]] = {
    "effort": ("none", "minimal", "low", "medium", "high", "xhigh", "max"),
    "summary": ("auto", "concise", "detailed"),
    "context": ("auto", "current_turn", "all_turns"),
}
_CACHE: Mapping[str, tuple[str, ...]] = {"mode": ("implicit", "explicit"), "ttl": ("30m", "12h")}
_TOOL_FIELDS = {
    "function": {"type", "name", "description", "parameters", "strict"},
    "custom": {"type", "name", "description", "format"},
}


def check_body(data: bytes, strictness: Strictness, needed: Mapping[str, str]) -> Body:
    """The body of a request that the service would take. Raises :class:`Refusal` with the first fault."""
    body = read_body(data)
    values = body.values
    known_fields(values, _FIELDS | set(strictness.extra_fields), "the request")
    for name, wanted in needed.items():
        if body.raw.get(name) != wanted:
            raise Refusal("field", f"{name} must be {wanted}")
    text_of(values.get("model"), "model")
    check_streamed(values)
    _limits(values)
    _thinking(values)
    _cache(values)
    names = _tools(values["tools"]) if "tools" in values else {}
    if "tool_choice" in values:
        _choice(values["tool_choice"], names)
    if "text" in values:
        _text(object_of(values["text"], "text"))
    if "instructions" in values:
        text_of(values["instructions"], "instructions")
    check_input(values.get("input"), stored=values.get("store", True) is True)
    answer = values.get("max_output_tokens", 0)
    strictness.check_fits(len(data), answer if isinstance(answer, int) else 0)
    return body


def _limits(values: JsonObject) -> None:
    limit_of(values.get("max_output_tokens", 16), 16, 1_000_000, "max_output_tokens")
    for name, top in (("temperature", 2), ("top_p", 1)):
        number_of(values.get(name, 0), 0, top, name)
    for name in ("store", "parallel_tool_calls", "background"):
        flag_of(values.get(name, False), name)
    _words(values, _ONE_OF, "")


def _words(values: JsonObject, allowed: Mapping[str, tuple[str, ...]], path: str) -> None:
    for name, words in allowed.items():
        if name in values and values[name] not in words:
            raise Refusal("value", f"{path}{name} is {values[name]!r}: it must be {', '.join(words)}")


def _thinking(values: JsonObject) -> None:
    reasoning = object_of(values.get("reasoning", {}), "reasoning")
    known_fields(reasoning, set(_REASONING) | {"generate_summary", "mode"}, "reasoning")
    _words(reasoning, _REASONING, "reasoning.")
    if reasoning.get("effort", "none") != "none" and "temperature" in values:
        raise Refusal("temperature", "temperature is not supported while the model reasons")
    if "include" in values:
        for index, name in enumerate(list_of(values["include"], "include")):
            if name not in _INCLUDABLE:
                raise Refusal("include", f"include[{index}] is {name!r}, which cannot be included")


def _cache(values: JsonObject) -> None:
    key = values.get("prompt_cache_key", "-")
    if not isinstance(key, str) or not 1 <= len(key) <= 64:
        raise Refusal("cache-key", "prompt_cache_key must be a string of 1 to 64 characters")
    if "prompt_cache_options" in values:
        options = object_of(values["prompt_cache_options"], "prompt_cache_options")
        known_fields(options, {*_CACHE, "prewarm", "comparison_response_id"}, "prompt_cache_options")
        _words(options, _CACHE, "prompt_cache_options.")


def _tools(value: Json) -> dict[str, str]:
    """The names of the tools that a client runs, with their types."""
    names: dict[str, str] = {}
    for index, item in enumerate(list_of(value, "tools")):
        path = f"tools[{index}]"
        tool = object_of(item, path)
        kind = text_of(tool.get("type"), f"{path}.type")
        if kind not in _TOOL_FIELDS:
            continue  # the service's own tools
        known_fields(tool, _TOOL_FIELDS[kind], path)
        name = matching(tool.get("name"), TOOL_NAME, f"{path}.name")
        if name in names:
            raise Refusal("tool-name", f"{path}.name is {name!r}, which another tool has")
        names[name] = kind
        if "description" in tool:
            text_of(tool["description"], f"{path}.description")
        strict = tool.get("strict", False)
        if not isinstance(strict, bool | None):
            raise Refusal("type", f"{path}.strict must be true or false, not {strict!r}")
        if kind == "function":
            parameters = object_of(tool.get("parameters"), f"{path}.parameters")
            check_schema(parameters, f"{path}.parameters", strict=bool(strict))
    return names


def _choice(choice: Json, names: Mapping[str, str]) -> None:
    if isinstance(choice, dict):
        kind, name = choice.get("type"), choice.get("name")
        if kind in _TOOL_FIELDS and names.get(str(name)) != kind:
            raise Refusal("tool-choice", f"tool_choice names {name!r}, which is not among the tools")
    elif choice not in ("auto", "none", "required"):
        raise Refusal(
            "tool-choice", f"tool_choice is {choice!r}: it must be auto, none, required or an object"
        )
    elif choice == "required" and not names:
        raise Refusal("tool-choice", "tool_choice is 'required', and there are no tools")


def _text(text: JsonObject) -> None:
    known_fields(text, {"format", "verbosity"}, "text")
    _words(text, {"verbosity": ("low", "medium", "high")}, "text.")
    form = object_of(text.get("format", {"type": "text"}), "text.format")
    match form.get("type"):
        case "text" | "json_object":
            known_fields(form, {"type"}, "text.format")
        case "json_schema":
            known_fields(form, {"type", "name", "schema", "strict", "description"}, "text.format")
            matching(form.get("name"), TOOL_NAME, "text.format.name")
            schema = object_of(form.get("schema"), "text.format.schema")
            check_schema(schema, "text.format.schema", strict=form.get("strict") is True)
        case kind:
            raise Refusal("format", f"text.format.type is {kind!r}, which is no format")
