"""What to do about an answer that failed, from the facts that came with it."""

from __future__ import annotations

from cantle_ai.messages import AssistantMessage

__all__ = ["describe_failure"]

_GO_ON = '`cantle -c "go on"` continues'

_BY_STATUS = {
    400: "the provider refused the request as it is; another model may take it",
    401: "check the key",
    402: "check the account's credit",
    403: "check what the key may do",
    404: "check the model's id and the provider's base URL",
    429: f"try again later: {_GO_ON}",
}

_BY_KIND = {
    "network": f"check the connection and the provider's base URL; {_GO_ON}",
    "timeout": f"check the connection, or try again later: {_GO_ON}",
}


def describe_failure(message: AssistantMessage) -> str:
    """Why an answer is not what was asked for, and the next step where there is one: a sentence or two."""
    if message.stop_reason == "length":
        return _sentences("the answer was cut at the model's output limit", _GO_ON)
    reason = message.error_message or f"the answer ended with `{message.stop_reason}`"
    return _sentences(reason, _next_step(message))


def _next_step(message: AssistantMessage) -> str:
    details = (message.extra or {}).get("errorDetails")
    if not isinstance(details, dict):
        return ""
    status, kind = details.get("status"), details.get("kind")
    if isinstance(status, int):
        return _BY_STATUS.get(status, f"try again later: {_GO_ON}" if status >= 500 else "")
    return _BY_KIND.get(kind, "") if isinstance(kind, str) else ""


def _sentences(reason: str, step: str) -> str:
    first = f"{' '.join(reason.split()).rstrip('.')}."
    return f"{first} {step[0].upper()}{step[1:]}." if step else first
