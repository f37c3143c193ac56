"""Whether an answer failed because the account has used up what it may spend. Waiting does not help then."""

from __future__ import annotations

import re

from cantle_ai.messages import AssistantMessage

__all__ = ["is_quota_exhausted"]


def is_quota_exhausted(message: AssistantMessage) -> bool:
    """Whether `message` says that credit, quota or budget is exhausted; a limit of requests over time is none."""
    if message.stop_reason != "error":
        return False
    details = message.error_details
    if details is not None and (details.status == 402 or details.word in _CODES):
        return True
    return _TEXT.search(message.error_message or "") is not None


_CODES = frozenset(
    {
        "insufficient_quota",
        "quota_exceeded",
        "billing_hard_limit_reached",
        "billing_not_active",
        "insufficient_balance",
        "insufficient_funds",
        "insufficient_credits",
        "credit_balance_too_low",
        "usage_limit_reached",
    }
)
"""Whatever the status: OpenAI reports an exhausted quota as 429."""

_TEXT = re.compile(
    r"(?<!\w)(?:"
    + "|".join(
        (
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
    )
    + r")(?!\w)",
    re.IGNORECASE,
)
