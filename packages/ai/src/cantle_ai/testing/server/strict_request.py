"""The rules for a whole chat-completions request: headers, fields, their types and limits."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import cast

from msgspec import Struct

from cantle_ai.codec import JsonObject
from cantle_ai.testing.estimate import CHARACTERS
from cantle_ai.testing.server.body import Body, read_body
from cantle_ai.testing.server.refusal import Refusal, known_fields, object_of, text_of
from cantle_ai.testing.server.strict_messages import check_messages
from cantle_ai.testing.server.strict_tools import check_tools

__all__ = ["Strictness", "check_request"]

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


class Strictness(Struct, frozen=True, kw_only=True):
    """What a server asks for beside the API's own rules."""

    api_key: str | None = None
    """The one key that is right; None takes any that is not empty."""
    need_key: bool = True
    context_window: int | None = None
    """Tokens, at four characters each, that prompt and answer must fit in together."""
    extra_fields: Collection[str] = ()
    """Names of request fields that this vendor has and the API has not."""


def check_request(headers: Mapping[str, str], data: bytes, strictness: Strictness) -> Body:
    """The body of a request that every vendor would take. Raises :class:`Refusal` with the first fault."""
    _headers(headers, strictness)
    body = read_body(data)
    values = body.values
    known_fields(values, _FIELDS | set(strictness.extra_fields), "the request")
    text_of(values.get("model"), "model")
    _stream(values)
    _limits(values)
    if "tools" in values:
        check_tools(values["tools"])
    for name in ("tool_choice", "parallel_tool_calls"):
        if name in values and "tools" not in values:
            raise Refusal("tools", f"{name} needs tools")
    check_messages(values.get("messages"))
    if strictness.context_window is not None:
        _fits(values, len(data), strictness.context_window)
    return body


def _headers(headers: Mapping[str, str], strictness: Strictness) -> None:
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refusal(
            "content-type", f"the content type is {kind!r}: it must be application/json", status=415
        )
    if not strictness.need_key:
        return
    scheme, _, key = headers.get("authorization", "").partition(" ")
    if scheme != "Bearer" or not key.strip() or key != key.strip():
        raise Refusal("authorization", "the authorization header must be 'Bearer' and a key", status=401)
    if strictness.api_key is not None and key != strictness.api_key:
        raise Refusal("authorization", "the API key is not right", status=401)


def _stream(values: JsonObject) -> None:
    if values.get("stream") is not True:
        raise Refusal("stream", "stream must be true: this server only streams")
    if "stream_options" in values:
        options = object_of(values["stream_options"], "stream_options")
        known_fields(options, {"include_usage", "include_obfuscation"}, "stream_options")
        if not all(isinstance(value, bool) for value in options.values()):
            raise Refusal("type", "the values of stream_options must be true or false")


def _limits(values: JsonObject) -> None:
    if "max_tokens" in values and "max_completion_tokens" in values:
        raise Refusal("max-tokens", "max_tokens and max_completion_tokens cannot both be given")
    for name in ("max_tokens", "max_completion_tokens"):
        limit = values.get(name, 1)
        if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= 1_000_000:
            raise Refusal("max-tokens", f"{name} is {limit!r}: it must be a whole number from 1 to 1000000")
    for name, top in (("temperature", 2), ("top_p", 1)):
        number = values.get(name, 0)
        if not isinstance(number, int | float) or isinstance(number, bool) or not 0 <= number <= top:
            raise Refusal("range", f"{name} is {number!r}: it must be a number from 0 to {top}")
    effort = values.get("reasoning_effort", "low")
    if effort not in _EFFORTS:
        raise Refusal("effort", f"reasoning_effort is {effort!r}: it must be {', '.join(_EFFORTS)}")
    key = values.get("prompt_cache_key", "-")
    if not isinstance(key, str) or not 1 <= len(key) <= 64:
        raise Refusal("cache-key", "prompt_cache_key must be a string of 1 to 64 characters")


def _fits(values: JsonObject, size: int, window: int) -> None:
    answer = cast("int", values.get("max_tokens", values.get("max_completion_tokens", 0)))
    if size // CHARACTERS + answer > window:
        raise Refusal(
            "context_length_exceeded",
            f"the prompt of about {size // CHARACTERS} tokens and an answer of up to {answer} "
            f"exceed this model's maximum context length of {window} tokens",
        )
