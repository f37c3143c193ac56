"""Whether a failed answer may succeed when it is asked for again, and after how long. Tables; nothing waits here.

Facts decide first (the HTTP status and the provider's code, kept in the message's `errorDetails`), the
text of the error last and only by whole words, because texts quote anything.
"""

from __future__ import annotations

import re

from cantle_ai.errors import ErrorDetails
from cantle_ai.messages import AssistantMessage
from cantle_ai.overflow import is_overflow
from cantle_ai.quota import is_quota_exhausted
from cantle_ai.retry_policy import RetryPolicy

__all__ = [
    "FAULT_CODES",
    "FINAL_CODES",
    "FINAL_STATUSES",
    "FINAL_TEXTS",
    "LIMIT_CODES",
    "PASSING_STATUSES",
    "PASSING_TEXTS",
    "VAGUE_CODES",
    "delay_ms",
    "retryable",
]


def retryable(message: AssistantMessage) -> bool:
    """Whether to ask again: overload, rate limits, server faults, broken connections; not what will fail again.

    Exhausted quota, bad keys, requests that the provider refuses and a context that is too long are final.
    """
    if message.stop_reason != "error" or is_overflow(message, None) or is_quota_exhausted(message):
        return False
    text = message.error_message or ""
    details = message.error_details or _NO_DETAILS
    code = details.word
    if code in FINAL_CODES or _FINAL_TEXT.search(text):
        return False
    if code in LIMIT_CODES:
        return True
    status = details.status
    if status is not None and status >= 400:
        return status in PASSING_STATUSES or (status >= 500 and status not in FINAL_STATUSES)
    if code in VAGUE_CODES:
        return False
    if code in FAULT_CODES or details.kind in ("network", "timeout"):
        return True
    return _PASSING_TEXT.search(text) is not None


def delay_ms(message: AssistantMessage, attempt: int, policy: RetryPolicy) -> int:
    """Milliseconds to wait before retry number `attempt`, from 1: what the server asked for, else the backoff."""
    details = message.error_details or _NO_DETAILS
    backoff = policy.base_delay_ms * 2 ** min(max(attempt - 1, 0), 32)
    asked = details.retry_after_ms or 0
    delay = asked if asked > 0 else backoff
    return min(delay, policy.max_delay_ms) if policy.max_delay_ms > 0 else delay


_NO_DETAILS = ErrorDetails()

FINAL_CODES = frozenset(
    {
        "access_denied_exception",
        "account_deactivated",
        "authentication_error",
        "content_filter",
        "content_policy_violation",
        "expired_token_exception",
        "failed_precondition",
        "invalid_api_key",
        "invalid_argument",
        "model_not_found",
        "not_found_error",
        "permission_denied",
        "permission_error",
        "refusal",
        "resource_not_found_exception",
        "unauthenticated",
        "unrecognized_client_exception",
        "validation_exception",
    }
)
"""Whatever the status. The words of OpenAI, Anthropic, Google (gRPC) and Amazon Bedrock."""
VAGUE_CODES = frozenset({"invalid_request_error"})
"""Final where there is no status. Compatible servers put this word on all below 500, a full server among them."""
LIMIT_CODES = frozenset(
    {
        "engine_overloaded",
        "model_not_ready_exception",
        "overloaded",
        "overloaded_error",
        "rate_limit_error",
        "rate_limit_exceeded",
        "rate_limited",
        "resource_exhausted",
        "server_busy",
        "server_overloaded",
        "service_quota_exceeded_exception",
        "service_tier_capacity_exceeded",
        "slow_down",
        "throttling_exception",
        "too_many_requests",
        "too_many_requests_exception",
    }
)
"""Whatever the status: some report a full server as 400."""
FAULT_CODES = frozenset(
    {
        "aborted",
        "api_error",
        "bad_gateway",
        "deadline_exceeded",
        "gateway_timeout",
        "internal",
        "internal_error",
        "internal_server_error",
        "internal_server_exception",
        "malformed_function_call",
        "malformed_response",
        "model_error_exception",
        "model_stream_error_exception",
        "model_timeout_exception",
        "server_error",
        "service_unavailable",
        "service_unavailable_exception",
        "timeout",
        "timeout_error",
        "unavailable",
        "unexpected_tool_call",
    }
)
"""Where there is no status, as inside a stream. Google ends an answer with a word for a slip of the model."""
PASSING_STATUSES = frozenset({408, 409, 425, 429})
"""Below 500. 409 is how OpenAI reports a lock that was not got in time. 424 is none: there it is the request's fault."""
FINAL_STATUSES = frozenset({501, 505, 510, 511})
"""From 500 on: what the server cannot do, it will not do later."""

FINAL_TEXTS = (r"(?:incorrect|invalid|missing) api[ _]key",)

PASSING_TEXTS = (
    # Sockets and name look-ups, in the words of several run times.
    r"ECONNRESET",
    r"ECONNREFUSED",
    r"ECONNABORTED",
    r"EPIPE",
    r"ETIMEDOUT",
    r"ENETUNREACH",
    r"EHOSTUNREACH",
    r"EAI_AGAIN",
    r"connection (?:reset|refused|aborted|closed|lost|terminated|timed out|error)(?: by \w+)?",
    r"(?:connection|socket) (?:was |has been )?(?:closed|reset|lost)",
    r"socket hang up",
    r"broken pipe",
    r"other side closed",
    r"(?:stream|connection|request|TypeError:) (?:was )?terminated",
    r"^terminated$",
    r"fetch failed",
    r"network error",
    r"temporary failure in name resolution",
    r"(?:request|connection|read|gateway|response) time(?:d[ -]?out|[ -]?out)",
    r"timed out",
    # Proxies and gateways.
    r"upstream (?:connect|request|prematurely|error)",
    r"(?:bad|invalid) gateway",
    r"web server (?:is down|is returning an unknown error)",
    # Servers.
    r"(?:server|model|engine|service)(?: is| are)?(?: currently| temporarily)? (?:busy|overloaded|unavailable)",
    r"server[_ ]busy",
    r"overloaded(?:_error)?",
    r"at capacity",
    r"internal (?:server )?error",
    r"server[_ ]error",
    r"rate[ _-]?limit(?:s|ed|_exceeded)?",
    r"too many requests",
    r"resource[ _]?exhausted",
    r"try again (?:later|in)",
    r"(?:status|code|http|error)(?: code)?[ :=(]{1,3}(?:408|409|425|429|500|502|503|504|52\d|529)",
    # Answers that stop before their end.
    r"(?:stream|response|answer)(?: \w+){0,2} ended (?:before|without|early|prematurely|unexpectedly)[^.]*",
    r"ended without sending any chunks",
    r"premature(?:ly)? (?:close|end)[a-z]*",
    r"unexpected (?:end of (?:stream|file|input)|eof)",
)


def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(r"(?<!\w)(?:" + "|".join(patterns) + r")(?!\w)", re.IGNORECASE)


_FINAL_TEXT = _any_of(FINAL_TEXTS)
_PASSING_TEXT = _any_of(PASSING_TEXTS)
