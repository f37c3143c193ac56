"""How providers say that a request was too long."""

from __future__ import annotations

import re

import pytest

from cantle_ai.codec import Json
from cantle_ai.messages import AssistantMessage, StopReason
from cantle_ai.overflow import CODES, NOT_LENGTH_CODES, TEXTS, is_overflow
from cantle_ai.retry import retryable
from cantle_ai.usage import Usage

WINDOW = 1000


def failure(text: str, provider: str = "openai", **details: Json) -> AssistantMessage:
    extra: dict[str, Json] = {"errorDetails": details}
    return AssistantMessage(
        [], "api", provider, "m", stop_reason="error", error_message=text, extra=extra if details else None
    )


TOO_LONG = [
    "The context window is too small",
    "Input is too long for requested model.",
    "Too many input tokens",
    "The token limit was exceeded",
    "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
    "Requested tokens (9000) exceed the window of 8192",
    "The request exceeds the limit of 8192 tokens",
    "context_length_exceeded",
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "prompt too long; exceeded max context length by 12 tokens",
    "Prompt exceeds max length",
    "The input is longer than the maximum allowed input length of 32768",
    "maximum context length (32768)",
    "litellm.ContextWindowExceededError: the request is too large",
    "prompt is too long: 210000 tokens > 200000 maximum",
    "the request exceeds the available context size, try increasing it",
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "tokens to keep from the initial prompt is greater than the context length",
    "Please reduce the length of the messages or completion.",
    "input length and `max_tokens` exceed context limit: exceeds the context window",
    "exceeded model token limit: 131072",
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
]

OTHER = [
    "Rate limit reached: too many tokens per minute",
    "ThrottlingException: Too many tokens, please wait before trying again.",
    "413 Request Entity Too Large",
    "400 Bad Request",
    "Invalid value for 'context'",
    "The image exceeds the maximum size",
    "Overloaded",
    "",
]


@pytest.mark.fault("D10")
@pytest.mark.parametrize("text", TOO_LONG)
def test_d10_a_refusal_for_length_is_known_by_its_words(text: str) -> None:
    assert is_overflow(failure(text), WINDOW)
    assert not retryable(failure(text, status=500))


@pytest.mark.parametrize("text", OTHER)
def test_other_refusals_are_not_for_length(text: str) -> None:
    assert not is_overflow(failure(text), WINDOW)


@pytest.mark.fault("D10")
@pytest.mark.parametrize("pattern", TEXTS)
def test_d10_every_row_of_the_table_of_texts_has_an_example(pattern: str) -> None:
    assert any(re.search(pattern, text, re.IGNORECASE) for text in TOO_LONG), pattern


@pytest.mark.fault("D10")
@pytest.mark.parametrize("code", sorted(CODES))
def test_d10_a_refusal_for_length_is_known_by_its_code(code: str) -> None:
    assert is_overflow(failure("No.", status=413, code=code), None)


@pytest.mark.parametrize("code", sorted(NOT_LENGTH_CODES))
def test_a_limit_over_time_is_known_by_its_code_whatever_its_words(code: str) -> None:
    said = failure("429 Too many tokens, please wait before trying again.", status=429, code=code)
    assert not is_overflow(said, WINDOW)
    assert retryable(said)


@pytest.mark.fault("D11")
@pytest.mark.parametrize("status", [400, 413])
@pytest.mark.parametrize("text", ["{} status code (no body)", "{} Bad Request"])
def test_d11_a_status_without_a_body_counts_only_where_that_is_how_it_is_said(status: int, text: str) -> None:
    words = text.format(status)
    assert not is_overflow(failure(words, status=status), WINDOW)
    assert is_overflow(failure(words, "cerebras", status=status), WINDOW)
    assert not is_overflow(failure("400 messages.1.role is wrong", "cerebras", status=status), WINDOW)
    assert not is_overflow(failure(words.replace("4", "5", 1), "cerebras", status=500), WINDOW)


@pytest.mark.parametrize(
    ("stop_reason", "usage", "expected"),
    [
        ("stop", Usage(input=1001, output=5), True),
        ("stop", Usage(input=1, cache_read=900, cache_write=100), True),
        ("stop", Usage(input=1000, output=5), False),
        ("length", Usage(input=995), True),
        ("length", Usage(input=995, output=1), False),
        ("length", Usage(input=500), False),
        ("toolUse", Usage(input=2000), False),
        ("aborted", Usage(input=2000), False),
    ],
)
def test_an_answer_shows_it_by_its_usage(stop_reason: StopReason, usage: Usage, expected: bool) -> None:
    message = AssistantMessage([], "api", "p", "m", usage, stop_reason)
    assert is_overflow(message, WINDOW) is expected
    assert not is_overflow(message, None)
