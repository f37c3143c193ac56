"""Whether an answer failed because the account has used up what it may spend. Waiting does not help then."""

from __future__ import annotations

import re

from cantle_ai.messages import AssistantMessage

__all__ = ["CODES", "TEXTS", "is_quota_exhausted"]


def is_quota_exhausted(message: AssistantMessage) -> bool:
    """Whether `message` says that credit, quota or budget is exhausted; a limit of requests over time is none."""
    if message.stop_reason != "error":
        return False
    details = message.error_details
    if details is not None and (details.status == 402 or details.word in CODES):
        return True
    text = message.error_message or ""
    return _TEXT.search(text) is not None and _PASSES.search(text) is None


CODES = frozenset(
    {
        "billing_error",
        "billing_hard_limit_reached",
        "billing_not_active",
        "credit_balance_too_low",
        "insufficient_balance",
        "insufficient_credits",
        "insufficient_funds",
        "insufficient_quota",
        "quota_exceeded",
        "usage_limit_reached",
        "usage_not_included",
    }
)
"""Whatever the status: OpenAI reports an exhausted quota as 429."""

TEXTS = (
    r"insufficient[_ ]quota",
    r"exceeded your current quota",
    r"quota exceeded",
    r"(?:check|update) your (?:plan and )?billing",
    r"billing (?:hard )?limit",
    r"credit balance is too low",
    r"(?:insufficient|not enough|out of) (?:balance|credits?|funds)",
    r"payment required",
    r"(?:monthly|weekly|usage|spend(?:ing)?) limit (?:has been )?(?:reached|exceeded)",
)

_TEXT = re.compile(r"(?<!\w)(?:" + "|".join(TEXTS) + r")(?!\w)", re.IGNORECASE)

_PASSES = re.compile(r"(?<!\w)retry in \d", re.IGNORECASE)
"""Google says so of quotas by the minute, in the words in which OpenAI says that there is no money left."""
