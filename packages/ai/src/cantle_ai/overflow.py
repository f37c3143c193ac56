"""Whether an answer failed, or was cut, because its input did not fit the model's context window.

A provider says so with a code, in words of its own, or not at all. Statuses alone prove nothing: a 400 or
413 without a body counts only for those providers that are known to answer so.
"""

from __future__ import annotations

import re

from cantle_ai.messages import AssistantMessage

__all__ = ["CODES", "NOT_LENGTH_CODES", "SILENT_PROVIDERS", "TEXTS", "is_overflow"]


def is_overflow(message: AssistantMessage, context_window: int | None) -> bool:
    """Whether `message` says that its request was too long.

    An error says it in its code or text. An answer that was not refused says it when its input is more than
    `context_window` tokens, or was cut at the limit before one token came; None leaves that out.
    """
    if message.stop_reason == "error":
        return _refused(message)
    if context_window is None:
        return False
    usage = message.usage
    used = usage.input + usage.cache_read + usage.cache_write
    if message.stop_reason == "stop":
        return used > context_window
    return message.stop_reason == "length" and usage.output == 0 and used >= context_window * _NEARLY_FULL


def _refused(message: AssistantMessage) -> bool:
    details = message.error_details
    if details is not None and details.word in CODES:
        return True
    text = message.error_message or ""
    if _NOT_LENGTH.search(text) or (details is not None and details.word in NOT_LENGTH_CODES):
        return False
    if _TOO_LONG.search(text):
        return True
    bare = details is not None and details.status in (400, 413) and _NO_BODY.fullmatch(text) is not None
    return bare and message.provider in SILENT_PROVIDERS


_NEARLY_FULL = 0.99

CODES = frozenset(
    {
        "context_length_exceeded",
        "context_window_exceeded",
        "model_context_window_exceeded",
        "model_max_prompt_tokens_exceeded",
        "string_above_max_length",
        "request_too_large",
    }
)

SILENT_PROVIDERS = frozenset({"cerebras"})
"""Providers that refuse too long a request with a status and no body."""

_NO_BODY = re.compile(r"4\d\d(?: status code)? (?:\(no body\)|[A-Z][A-Za-z' -]*)")
"""All that is left to say without a body: the status and its standard phrase."""

NOT_LENGTH_CODES = frozenset(
    {"rate_limit_error", "rate_limit_exceeded", "rate_limited", "throttling_exception", "too_many_requests"}
)
"""Limits of tokens over time, such as Bedrock's "Too many tokens, please wait before trying again"."""

_NOT_LENGTH = re.compile(
    r"rate.?limit|too many requests|per (?:minute|day|hour)|throttl|resource.?exhausted", re.IGNORECASE
)
"""Limits of tokens over time use much the same words."""

TEXTS = (
    r"context[_ ]length[_ ]exceeded",
    r"context ?window ?exceeded(?:error)?",
    r"maximum (?:model )?context length",
    r"exceeds? (?:the |its |this model's )?(?:maximum |max |available |model's )*context(?: length| window| size)?",
    r"(?:greater|longer|larger) than (?:the )?context (?:length|window|size)",
    r"context (?:length|window|size) (?:is |was )?(?:exceeded|too (?:small|short))",
    r"prompt (?:is )?too long",
    r"prompt exceeds max(?:imum)? length",
    r"input (?:is )?too long",
    r"input token count[^.]*exceeds",
    r"(?:input|prompt|request)[^.]{0,60}exceeds[^.]{0,40}(?:context|maximum|limit of \d+ tokens)",
    r"maximum allowed input length",
    r"maximum prompt length",
    r"reduce the length of (?:the|your) (?:messages|prompt|input)",
    r"too many (?:input |prompt )?tokens",
    r"token limit (?:has been |was )?exceeded",
    r"exceeded model token limit",
    r"too large for model with \d+ maximum context length",
    r"requested tokens \(\d+\) exceed",
)
"""In the words of OpenAI, Anthropic, Google, Mistral, Bedrock, xAI, Groq, z.ai, Kimi, DeepSeek, LiteLLM, llama.cpp,
Ollama, LM Studio, vLLM and SGLang."""

_TOO_LONG = re.compile(r"(?<!\w)(?:" + "|".join(TEXTS) + ")", re.IGNORECASE)
