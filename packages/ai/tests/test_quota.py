"""How providers say that an account has nothing left to spend."""

from __future__ import annotations

import pytest

from cantle_ai.codec import Json
from cantle_ai.messages import AssistantMessage
from cantle_ai.quota import is_quota_exhausted
from cantle_ai.retry import retryable


def failure(text: str, **details: Json) -> AssistantMessage:
    return AssistantMessage(
        [], "a", "p", "m", stop_reason="error", error_message=text, extra={"errorDetails": details}
    )


@pytest.mark.parametrize(
    ("text", "details"),
    [
        ("You exceeded your current quota, please check your plan and billing details.", {"status": 429}),
        ("no", {"status": 429, "code": "insufficient_quota"}),
        ("no", {"code": "InsufficientQuota"}),
        ("no", {"status": 402}),
        ("Your credit balance is too low to access the API", {"status": 400}),
        ("Out of credits", {}),
    ],
)
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
        ("Incorrect API key provided", {"status": 401, "code": "invalid_api_key"}),
        ("", {}),
    ],
)
def test_other_failures(text: str, details: dict[str, Json]) -> None:
    assert not is_quota_exhausted(failure(text, **details))
