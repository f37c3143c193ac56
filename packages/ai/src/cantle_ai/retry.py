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

__all__ = ["delay_ms", "retryable"]


def retryable(message: AssistantMessage) -> bool:
    """Whether to ask again: overload, rate limits, server faults, broken connections; not what will fail again.

    Exhausted quota, bad keys, requests that the provider refuses and a context that is too long are final.
    """
    if message.stop_reason != "error" or is_overflow(message, None) or is_quota_exhausted(message):
        return False
    text = message.error_message or ""
    details = message.error_details or _NO_DETAILS
    code = details.word
    if code in _FINAL_CODES or _FINAL_TEXT.search(text):
        return False
    if code in _LIMIT_CODES:
        return True
    status = details.status
    if status is not None and status >= 400:
        return status in _PASSING_STATUSES or (status >= 500 and status not in _FINAL_STATUSES)
    if code in _FAULT_CODES or details.kind in ("network", "timeout"):
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

_FINAL_CODES = frozenset(
    {
        "account_deactivated",
        "invalid_api_key",
        "model_not_found",
        "content_filter",
        "content_policy_violation",
    }
)
"""Whatever the status."""
_LIMIT_CODES = frozenset(
    {
        "rate_limit_exceeded",
        "rate_limit_error",
        "too_many_requests",
        "resource_exhausted",
        "server_busy",
        "server_overloaded",
        "engine_overloaded",
        "overloaded",
        "overloaded_error",
        "slow_down",
    }
)
"""Whatever the status: some report a full server as 400."""
_FAULT_CODES = frozenset(
    {
        "server_error",
        "api_error",
        "internal",
        "internal_error",
        "internal_server_error",
        "unavailable",
        "service_unavailable",
        "deadline_exceeded",
        "timeout",
        "timeout_error",
        "gateway_timeout",
        "bad_gateway",
    }
)
"""Where there is no status, as inside a stream."""
_PASSING_STATUSES = frozenset({408, 409, 425, 429})
"""Below 500. 409 is how OpenAI reports a lock that was not got in time."""
_FINAL_STATUSES = frozenset({501, 505, 510, 511})
"""From 500 on: what the server cannot do, it will not do later."""


def _any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile(r"(?<!\w)(?:" + "|".join(patterns) + r")(?!\w)", re.IGNORECASE)


_FINAL_TEXT = _any_of(
    r"(?:incorrect|invalid|missing) api[ _]key",
)

_PASSING_TEXT = _any_of(
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
