"""The `details` of an error in the form that Google's APIs share (google.rpc, error_details.proto).

[{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"},
 {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": "…PerDay…"}]}]
"""

from __future__ import annotations

import re

from cantle_ai.codec import Json, JsonObject

__all__ = ["quota_of_a_day", "retry_delay"]


def retry_delay(details: Json) -> float | None:
    """Seconds after which to ask again; None if nothing is said."""
    for detail in _of_kind(details, "RetryInfo"):
        found = re.fullmatch(r"(\d{1,9}(?:\.\d+)?)s", str(detail.get("retryDelay")))
        if found is not None:
            return float(found[1])
    return None


def quota_of_a_day(details: Json) -> bool:
    """Whether what is used up is the quota of a whole day. A delay may be named all the same; it does not help."""
    for detail in _of_kind(details, "QuotaFailure"):
        violations = detail.get("violations")
        for violation in violations if isinstance(violations, list) else []:
            if isinstance(violation, dict) and "PerDay" in str(violation.get("quotaId")):
                return True
    return False


def _of_kind(details: Json, kind: str) -> list[JsonObject]:
    listed = details if isinstance(details, list) else []
    return [
        detail
        for detail in listed
        if isinstance(detail, dict) and str(detail.get("@type")).endswith(f"google.rpc.{kind}")
    ]
