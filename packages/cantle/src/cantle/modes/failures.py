"""What to do about an answer that failed, from the facts that came with it."""

from __future__ import annotations

from cantle_ai.messages import AssistantMessage

__all__ = ["describe_failure"]

_LATER = "try again later"

_BY_STATUS = {
    400: "the provider refused the request as it is; another model may take it",
    401: "check the key",
    402: "check the account's credit",
    403: "check what the key may do",
    404: "check the model's id and the provider's base URL",
    429: _LATER,
}

_BY_KIND = {
    "network": "check the connection and the provider's base URL",
    "timeout": f"check the connection, or {_LATER}",
}


def describe_failure(message: AssistantMessage, go_on: str | None) -> str:
    """Why an answer is not what was asked for, and the next step where there is one: a sentence or two.

    `go_on` is the command that goes on with the session; None for one that is not kept.
    """
    continues = f"`{go_on}` continues" if go_on else ""
    if message.stop_reason == "length":
        return _sentences(
            "the answer was cut at the model's output limit", continues or "ask for a shorter one"
        )
    reason = message.error_message or f"the answer ended with `{message.stop_reason}`"
    step, passing = _next_step(message)
    return _sentences(reason, f"{step}; {continues}" if passing and continues else step)


def _next_step(message: AssistantMessage) -> tuple[str, bool]:
    """What to do, and whether the failure may be over by then."""
    details = (message.extra or {}).get("errorDetails")
    if not isinstance(details, dict):
        return "", False
    status, kind = details.get("status"), details.get("kind")
    if isinstance(status, int):
        passing = status == 429 or status >= 500
        return _BY_STATUS.get(status, _LATER if passing else ""), passing
    step = _BY_KIND.get(kind, "") if isinstance(kind, str) else ""
    return step, bool(step)


def _sentences(reason: str, step: str) -> str:
    first = f"{' '.join(reason.split()).rstrip('.')}."
    return f"{first} {step[0].upper()}{step[1:]}." if step else first
