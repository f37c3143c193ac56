"""How a thinking level is put into a request, for each dialect of chat completions."""

from __future__ import annotations

from collections.abc import Mapping

from cantle_ai.apis.openai_completions_compat import OpenAICompletionsCompat
from cantle_ai.codec import Json, JsonObject
from cantle_ai.messages import ThinkingLevel
from cantle_ai.model import Model

__all__ = ["thinking_fields"]

_OFF_AS_EFFORT = ("openai", "baseten")
"""Formats in which "off", too, is told by an effort, where the model has a word for it."""


def thinking_fields(
    model: Model, compat: OpenAICompletionsCompat, level: ThinkingLevel, budget: int | None = None
) -> JsonObject:
    """The request fields for `level`, which must be one that the model has. Empty without reasoning.

    `budget` bounds the thinking in tokens, where the endpoint has a field for that.

    "Off" is said in the dialect's own way where it has one, and by silence where it has none:

    =================== ============================== =================================================
    format              off                            on
    =================== ============================== =================================================
    openai              effort, if the model maps it   effort
    openrouter          reasoning.effort "none"        reasoning.effort
    deepseek            thinking.type "disabled"       thinking.type "enabled", effort
    together            reasoning.enabled false        reasoning.enabled true, effort
    zai                 thinking.type "disabled"       thinking.type "enabled", clear_thinking false, effort
    qwen                enable_thinking false          enable_thinking true, effort
    qwen-chat-template  chat_template_kwargs.enable_thinking and preserve_thinking
    chat-template       chat_template_kwargs, as configured
    baseten             chat_template_args, as configured, and effort; off as with openai
    string-thinking     thinking "none"                thinking with the level's name
    ant-ling            –                              reasoning.effort, if the model maps it
    =================== ============================== =================================================

    Here "effort" is `reasoning_effort` with the provider's name of the level, where that field is known.
    """
    if not model.reasoning:
        return {}
    fields = _level_fields(model, compat, level, budget)
    field = compat.thinking_token_budget_field
    if field is None and compat.supports_thinking_token_budget:
        field = "thinking_token_budget"
    if field is not None and budget is not None:
        fields[field] = budget
    return fields


def _level_fields(
    model: Model, compat: OpenAICompletionsCompat, level: ThinkingLevel, budget: int | None
) -> JsonObject:
    on = level != "off"
    mapped = model.thinking_levels.get(level)
    name = mapped if mapped is not None else level if on else None
    effort: JsonObject = {}
    if (
        name is not None
        and compat.supports_reasoning_effort
        and (on or compat.thinking_format in _OFF_AS_EFFORT)
    ):
        effort = {"reasoning_effort": name}
    match compat.thinking_format:
        case "openai":
            return effort
        case "openrouter":
            return {"reasoning": {"effort": name or "none"}}
        case "deepseek":
            return {"thinking": {"type": "enabled" if on else "disabled"}, **effort}
        case "together":
            return {"reasoning": {"enabled": on}, **effort}
        case "zai":
            on_fields: JsonObject = {"type": "enabled", "clear_thinking": False}
            return {"thinking": on_fields if on else {"type": "disabled"}, **effort}
        case "qwen":
            return {"enable_thinking": on, **effort}
        case "qwen-chat-template":
            return {"chat_template_kwargs": {"enable_thinking": on, "preserve_thinking": True}}
        case "chat-template":
            return {"chat_template_kwargs": _template(compat.chat_template_kwargs, on, name, budget)}
        case "baseten":
            return {"chat_template_args": _template(compat.chat_template_args, on, name, budget), **effort}
        case "string-thinking":
            return {"thinking": name or "none"}
        case "ant-ling":
            return {} if mapped is None else {"reasoning": {"effort": mapped}}


def _template(arguments: Mapping[str, Json], on: bool, name: str | None, budget: int | None) -> JsonObject:
    values: JsonObject = {
        "thinking.enabled": on,
        "thinking.effort": name if on else None,
        "thinking.budget": budget,
    }
    filled: JsonObject = {}
    for key, value in arguments.items():
        variable = value.get("$var") if isinstance(value, dict) else None
        if isinstance(variable, str):
            value = values.get(variable)
            if value is None:
                continue
        filled[key] = value
    return filled
