"""Which failures are tried again, and how long after."""

from __future__ import annotations

import pytest

from cantle_ai.codec import Json, JsonObject
from cantle_ai.messages import AssistantMessage, StopReason
from cantle_ai.retry import delay_ms, retryable
from cantle_ai.retry_policy import RetryPolicy
from cantle_ai.usage import Usage


def failure(text: str = "", **details: Json) -> AssistantMessage:
    return AssistantMessage(
        [],
        "api",
        "provider",
        "model",
        stop_reason="error",
        error_message=text,
        extra={"errorDetails": details} if details else None,
    )


PASSING = [
    ("read ECONNRESET", {}),
    ("write EPIPE", {}),
    ("connect ETIMEDOUT 10.0.0.1:443", {}),
    ("getaddrinfo EAI_AGAIN api.example.com", {}),
    ("terminated", {}),
    ("TypeError: terminated", {}),
    ("Connection closed.", {}),
    ("Connection error.", {}),
    ("socket hang up", {}),
    ("fetch failed", {}),
    ("upstream connect error or disconnect/reset before headers", {}),
    ("The request ended without sending any chunks", {}),
    ("The stream ended before a terminal event", {}),
    ("Premature close", {}),
    ("unexpected EOF", {}),
    ("520 status code (no body)", {"status": 520}),
    ("524 A Timeout Occurred", {"status": 524}),
    ("status code 524", {}),
    ("HTTP 503", {}),
    ("error code: 520", {}),
    ("server_busy", {}),
    ("busy", {"code": "server_busy", "status": 400}),
    ("The server is currently overloaded", {}),
    ("Overloaded", {}),
    ("ResourceExhausted: too many tokens in flight", {}),
    ("RESOURCE_EXHAUSTED", {}),
    ("full", {"code": "ResourceExhausted"}),
    ("Rate limit reached for gpt-5", {"status": 429, "code": "rate_limit_exceeded"}),
    ("Too Many Requests", {"status": 429}),
    ("slow", {"status": 408}),
    ("The server had an error", {"status": 500}),
    ("Bad Gateway", {"status": 502}),
    ("Service Unavailable", {"status": 503}),
    ("Gateway Timeout", {"status": 504}),
    ("overloaded", {"status": 529}),
    ("in a stream", {"status": None, "code": "server_error", "kind": "http"}),
    ("anything", {"status": None, "kind": "network"}),
    ("anything", {"status": None, "kind": "timeout"}),
    ("Please try again later", {}),
]

FINAL = [
    ("You exceeded your current quota, please check your plan and billing details.", {"status": 429}),
    ("Too Many Requests", {"status": 429, "code": "insufficient_quota"}),
    ("Rate limit. insufficient_quota", {"status": 429, "code": "rate_limit_exceeded"}),
    ("Your credit balance is too low to access the API", {"status": 400}),
    ("Payment Required", {"status": 402}),
    ("Incorrect API key provided: sk-…", {"status": 401, "code": "invalid_api_key"}),
    ("Unauthorized", {"status": 401}),
    ("Forbidden", {"status": 403}),
    ("The model does not exist", {"status": 404, "code": "model_not_found"}),
    ("Invalid value: the connection timed out is no role", {"status": 400}),
    ("Unsupported parameter", {"status": 400, "code": "unsupported_parameter"}),
    ("Not Implemented", {"status": 501}),
    ("maximum context length is 8192 tokens", {"status": 400, "code": "context_length_exceeded"}),
    ("The endpoint does not speak this API", {"kind": "protocol", "status": None}),
    ("No API key for the provider openai. Set OPENAI_API_KEY", {}),
    ("it moved", {"status": 301}),
    # Words that only look like it: no part of a longer word counts.
    ("The account was terminated", {}),
    ("unterminated string", {}),
    ("The tool preoverloaded2 is not known", {}),
    ("line 503 of the schema is wrong", {}),
    ("", {}),
]


@pytest.mark.parametrize(("text", "details"), PASSING)
def test_d06_what_may_pass_is_tried_again(text: str, details: JsonObject) -> None:
    assert retryable(failure(text, **details))


@pytest.mark.parametrize(("text", "details"), FINAL)
def test_quota_and_client_errors_are_final(text: str, details: JsonObject) -> None:
    assert not retryable(failure(text, **details))


@pytest.mark.parametrize("stop_reason", ["stop", "length", "toolUse", "aborted", "deferred"])
def test_only_errors_are_tried_again(stop_reason: StopReason) -> None:
    message = failure("Overloaded", status=529)
    assert retryable(message)
    message.stop_reason = stop_reason
    assert not retryable(message)


@pytest.mark.parametrize("details", [None, "x", [], {"status": "503"}, {"code": 5, "kind": []}])
def test_odd_details_leave_the_text_to_decide(details: Json) -> None:
    for text, expected in (("Overloaded", True), ("no", False)):
        message = AssistantMessage(
            [], "a", "p", "m", Usage(), "error", error_message=text, extra={"errorDetails": details}
        )
        assert retryable(message) is expected


@pytest.mark.parity("models.retry-backoff")
def test_waits_are_two_four_and_eight_seconds() -> None:
    policy = RetryPolicy()
    assert policy.max_retries == 3
    assert [delay_ms(failure("x"), attempt, policy) for attempt in (1, 2, 3)] == [2000, 4000, 8000]


@pytest.mark.parity("models.retry-cap")
def test_no_wait_is_longer_than_the_limit() -> None:
    assert delay_ms(failure("x"), 40, RetryPolicy()) == 60_000
    assert delay_ms(failure("x", retryAfterMs=3_600_000), 1, RetryPolicy()) == 60_000
    assert delay_ms(failure("x", retryAfterMs=3_600_000), 1, RetryPolicy(max_delay_ms=0)) == 3_600_000


def test_the_server_s_wait_is_obeyed() -> None:
    assert delay_ms(failure("x", retryAfterMs=500), 3, RetryPolicy()) == 500
    assert delay_ms(failure("x", retryAfterMs=20_000), 1, RetryPolicy()) == 20_000


@pytest.mark.parametrize("asked", [None, 0, -5, "soon", float("nan"), float("inf"), True, []])
def test_d07_a_wait_that_cannot_be_read_means_the_usual_one(asked: Json) -> None:
    assert delay_ms(failure("x", retryAfterMs=asked), 2, RetryPolicy()) == 4000
