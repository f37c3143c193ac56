"""Which failures are tried again, and how long after."""

from __future__ import annotations

import re

import pytest

from cantle_ai.codec import Json, JsonObject
from cantle_ai.messages import AssistantMessage, StopReason
from cantle_ai.retry import (
    FAULT_CODES,
    FINAL_CODES,
    FINAL_STATUSES,
    FINAL_TEXTS,
    LIMIT_CODES,
    PASSING_STATUSES,
    PASSING_TEXTS,
    VAGUE_CODES,
    delay_ms,
    retryable,
)
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


PASSING: list[tuple[str, JsonObject]] = [
    ("connect ECONNREFUSED 127.0.0.1:80", {}),
    ("ECONNABORTED", {}),
    ("ENETUNREACH", {}),
    ("EHOSTUNREACH", {}),
    ("Connection reset by peer", {}),
    ("The socket has been closed", {}),
    ("[Errno 32] Broken pipe", {}),
    ("other side closed", {}),
    ("Network error", {}),
    ("Temporary failure in name resolution", {}),
    ("Request timeout", {}),
    ("The read operation timed out", {}),
    ("Bad gateway", {}),
    ("Web server is down", {}),
    ("The model is at capacity", {}),
    ("Internal server error", {}),
    ("server_error", {}),
    ("Rate limited", {}),
    ("Too many requests", {}),
    (
        "You exceeded your current quota, please check your plan. Please retry in 32.1s.",
        {"status": 429, "code": "RESOURCE_EXHAUSTED"},
    ),
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

FINAL: list[tuple[str, JsonObject]] = [
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


@pytest.mark.fault("D06")
@pytest.mark.parametrize(("text", "details"), PASSING)
def test_d06_what_may_pass_is_tried_again(text: str, details: JsonObject) -> None:
    assert retryable(failure(text, **details))


@pytest.mark.parametrize(("text", "details"), FINAL)
def test_quota_and_client_errors_are_final(text: str, details: JsonObject) -> None:
    assert not retryable(failure(text, **details))


@pytest.mark.fault("D06")
@pytest.mark.parametrize("code", sorted(LIMIT_CODES))
@pytest.mark.parametrize("status", [None, 400, 429, 529])
def test_d06_a_full_server_is_asked_again_whatever_the_status(code: str, status: int | None) -> None:
    assert retryable(failure("no", code=code, status=status))


@pytest.mark.fault("D06")
@pytest.mark.parametrize("code", sorted(FAULT_CODES))
def test_d06_a_fault_inside_a_stream_is_asked_again(code: str) -> None:
    assert retryable(failure("no", code=code))
    assert not retryable(failure("no", code=code, status=400))


@pytest.mark.parametrize("code", sorted(FINAL_CODES))
@pytest.mark.parametrize("status", [None, 429, 500])
def test_a_refusal_by_code_is_final_whatever_status_and_text(code: str, status: int | None) -> None:
    assert not retryable(failure("The server is busy, try again later", code=code, status=status))


@pytest.mark.parametrize("code", sorted(VAGUE_CODES))
def test_a_word_that_servers_put_on_everything_leaves_the_status_to_decide(code: str) -> None:
    assert retryable(failure("no", code=code, status=429))
    assert not retryable(failure("no", code=code, status=400))
    assert not retryable(failure("The server is busy, try again later", code=code))


@pytest.mark.parametrize("status", range(400, 600))
def test_a_status_says_whether_it_passes(status: int) -> None:
    passes = status in {408, 409, 425, 429} or (status >= 500 and status not in {501, 505, 510, 511})
    assert retryable(failure("try again later", status=status)) is passes
    assert passes is (status in PASSING_STATUSES or (status >= 500 and status not in FINAL_STATUSES))


@pytest.mark.fault("D06")
@pytest.mark.parametrize("pattern", PASSING_TEXTS)
def test_d06_every_row_of_the_table_of_texts_has_an_example(pattern: str) -> None:
    """One that has nothing but its text."""
    found = [text for text, details in PASSING if not details and re.search(pattern, text, re.IGNORECASE)]
    assert found, pattern


@pytest.mark.parametrize("pattern", FINAL_TEXTS)
def test_every_row_of_the_table_of_final_texts_has_an_example(pattern: str) -> None:
    assert any(re.search(pattern, text, re.IGNORECASE) for text, _ in FINAL)


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


@pytest.mark.fault("D07")
@pytest.mark.parity("models.retry-cap")
def test_no_wait_is_longer_than_the_limit() -> None:
    assert delay_ms(failure("x"), 40, RetryPolicy()) == 60_000
    assert delay_ms(failure("x", retryAfterMs=3_600_000), 1, RetryPolicy()) == 60_000
    assert delay_ms(failure("x", retryAfterMs=3_600_000), 1, RetryPolicy(max_delay_ms=0)) == 3_600_000


def test_the_server_s_wait_is_obeyed() -> None:
    assert delay_ms(failure("x", retryAfterMs=500), 3, RetryPolicy()) == 500
    assert delay_ms(failure("x", retryAfterMs=20_000), 1, RetryPolicy()) == 20_000


@pytest.mark.fault("D07")
@pytest.mark.parametrize("asked", [None, 0, -5, "soon", float("nan"), float("inf"), True, []])
def test_d07_a_wait_that_cannot_be_read_means_the_usual_one(asked: Json) -> None:
    assert delay_ms(failure("x", retryAfterMs=asked), 2, RetryPolicy()) == 4000
