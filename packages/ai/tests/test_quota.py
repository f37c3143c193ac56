"""How providers say that an account has nothing left to spend."""

from __future__ import annotations

import re

import pytest

from cantle_ai.codec import Json
from cantle_ai.messages import AssistantMessage
from cantle_ai.quota import CODES, TEXTS, is_quota_exhausted
from cantle_ai.retry import retryable


def failure(text: str, **details: Json) -> AssistantMessage:
    return AssistantMessage(
        [], "a", "p", "m", stop_reason="error", error_message=text, extra={"errorDetails": details}
    )


EXHAUSTED: list[tuple[str, dict[str, Json]]] = [
    ("You exceeded your current quota, please check your plan and billing details.", {"status": 429}),
    ("no", {"status": 429, "code": "insufficient_quota"}),
    ("no", {"code": "InsufficientQuota"}),
    ("no", {"status": 402}),
    ("Your credit balance is too low to access the API", {"status": 400}),
    ("Out of credits", {}),
    ("insufficient_quota", {}),
    ("Quota exceeded", {}),
    ("Please check your billing", {}),
    ("The billing limit is reached", {}),
    ("Payment required", {}),
    ("The weekly limit has been reached", {}),
]


@pytest.mark.parametrize("pattern", TEXTS)
def test_every_row_of_the_table_of_texts_has_an_example(pattern: str) -> None:
    assert any(re.search(pattern, text, re.IGNORECASE) for text, _ in EXHAUSTED), pattern


@pytest.mark.parametrize("code", sorted(CODES))
def test_a_code_says_so_whatever_the_status(code: str) -> None:
    assert is_quota_exhausted(failure("no", code=code, status=429))


@pytest.mark.parametrize(("text", "details"), EXHAUSTED)
def test_an_exhausted_account(text: str, details: dict[str, Json]) -> None:
    message = failure(text, **details)
    assert is_quota_exhausted(message)
    assert not retryable(message)
    message.stop_reason = "aborted"
    assert not is_quota_exhausted(message)


@pytest.mark.parametrize(
    ("text", "details"),
    [
        ("Rate limit reached for gpt-5", {"status": 429, "code": "rate_limit_exceeded"}),
        ("Too many tokens per minute", {"status": 429}),
        ("You exceeded your current quota. Please retry in 4.2s.", {"status": 429}),
        ("Incorrect API key provided", {"status": 401, "code": "invalid_api_key"}),
        ("", {}),
    ],
)
def test_other_failures(text: str, details: dict[str, Json]) -> None:
    assert not is_quota_exhausted(failure(text, **details))
