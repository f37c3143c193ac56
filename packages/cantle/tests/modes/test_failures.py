"""What is said about an answer that failed, from its facts."""

from __future__ import annotations

import pytest

from cantle.modes.failures import describe_failure
from cantle_ai.codec import JsonObject
from cantle_ai.messages import AssistantMessage

GO_ON = 'cantle -c "go on"'


def said(text: str, details: JsonObject | None) -> str:
    extra: JsonObject | None = None if details is None else {"errorDetails": details}
    message = AssistantMessage([], "a", "p", "m", stop_reason="error", error_message=text, extra=extra)
    return describe_failure(message, GO_ON)


@pytest.mark.parametrize(
    ("text", "details", "step"),
    [
        ("Bad", {"status": 400}, "The provider refused the request as it is; another model may take it."),
        ("No", {"status": 401}, "Check the key; `cantle auth check p` says where it is."),
        ("No", {"status": 403}, "Check what the key may do; `cantle auth check p` says where it is."),
        ("No", {"status": 404}, "Check the model's id and the provider's base URL."),
        ("Slow down", {"status": 429}, f"Try again later; `{GO_ON}` continues."),
        ("Down", {"status": 503}, f"Try again later; `{GO_ON}` continues."),
        (
            "Gone",
            {"kind": "network"},
            f"Check the connection and the provider's base URL; `{GO_ON}` continues.",
        ),
        ("Odd", {"status": "x", "kind": 5}, ""),
        ("No facts", None, ""),
    ],
)
def test_the_next_step_follows_from_the_facts(text: str, details: JsonObject | None, step: str) -> None:
    assert said(text, details) == (f"{text}. {step}" if step else f"{text}.")


@pytest.mark.parametrize(
    ("text", "details"),
    [
        ("Too many", {"status": 400, "code": "context_length_exceeded"}),
        ("This model's maximum context length is 8192 tokens", {"status": 400}),
        ("prompt is too long: 210000 tokens > 200000 maximum", None),
    ],
)
def test_a_conversation_that_is_too_long_is_not_offered_the_same_again(
    text: str, details: JsonObject | None
) -> None:
    sentence = said(text, details)
    assert "The conversation is longer than the model's context window" in sentence
    assert "another model may take it" not in sentence
    assert GO_ON not in sentence


@pytest.mark.parametrize(
    ("text", "details"),
    [
        ("Refused", {"status": 429, "code": "insufficient_quota"}),
        ("Payment Required", {"status": 402}),
        ("You exceeded your current quota", {"status": 429}),
    ],
)
def test_an_exhausted_account_is_not_told_to_wait(text: str, details: JsonObject) -> None:
    sentence = said(text, details)
    assert "check the account's credit" in sentence
    assert "later" not in sentence
    assert GO_ON not in sentence
