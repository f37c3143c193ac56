"""What to do about an answer that failed, from the facts that came with it."""

from __future__ import annotations

from cantle_ai.messages import AssistantMessage

__all__ = ["describe_failure"]

_LATER = "try again later"
_TOO_LONG = "the conversation is longer than the model's context window: begin a new session, or use a model with a larger window"
_SPENT = "waiting does not help: check the account's credit and limits at the provider"

_BY_STATUS = {
    400: "the provider refused the request as it is; another model may take it",
    404: "check the model's id and the provider's base URL",
    429: _LATER,
}

_OF_THE_KEY = {401: "check the key", 403: "check what the key may do"}

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
    from cantle_ai.overflow import is_overflow
    from cantle_ai.quota import is_quota_exhausted

    if is_overflow(message, None):
        return _TOO_LONG, False
    if is_quota_exhausted(message):
        return _SPENT, False
    details = message.error_details
    if details is None:
        return "", False
    if details.status in _OF_THE_KEY:
        return (
            f"{_OF_THE_KEY[details.status]}; `cantle auth check {message.provider}` says where it is",
            False,
        )
    if details.status is not None:
        passing = details.status == 429 or details.status >= 500
        return _BY_STATUS.get(details.status, _LATER if passing else ""), passing
    step = _BY_KIND.get(details.kind or "", "")
    return step, bool(step)


def _sentences(reason: str, step: str) -> str:
    first = f"{' '.join(reason.split()).rstrip('.')}."
    return f"{first} {step[0].upper()}{step[1:]}." if step else first
