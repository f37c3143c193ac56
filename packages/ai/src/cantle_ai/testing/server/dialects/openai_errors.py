"""An error as OpenAI's APIs word it, and those that speak like them."""

from __future__ import annotations

from cantle_ai.codec import JsonObject

__all__ = ["error_body"]


def error_body(message: str, code: str | None, status: int | None) -> JsonObject:
    """`{"error": …}`, of an HTTP answer with this status or inside a stream. The type follows from the status."""
    if status is None or status >= 500:
        kind = "server_error"
    else:
        kind = "requests" if status == 429 else "invalid_request_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}
