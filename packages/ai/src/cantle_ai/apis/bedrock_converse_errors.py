"""Failures that Bedrock reports inside a stream, as :class:`ProviderError`.

    throttlingException, modelStreamErrorException, validationException, internalServerException,
    serviceUnavailableException …   {"message", "originalMessage"?, "originalStatusCode"?}

The name of the exception is the error's code. What comes instead of a stream is an HTTP error like any other, with
the name in its header `x-amzn-errortype`.
"""

from __future__ import annotations

from cantle_ai.apis.bedrock_event_stream import ERROR
from cantle_ai.codec import Json, decode_json
from cantle_ai.errors import ProviderError

__all__ = ["error_of_event", "is_failure"]


def is_failure(name: str) -> bool:
    """Whether an event of this name is a failure: exceptions that are not known today will still end so."""
    return name == ERROR or name.lower().endswith("exception")


def error_of_event(name: str, data: bytes) -> ProviderError:
    """The error that the event says. Its code is the exception's name."""
    try:
        raw = decode_json(data)
    except ValueError:
        raw = None
    fields = raw if isinstance(raw, dict) else {}
    code = _text(fields.get("code")) if name == ERROR else name
    message = _text(fields.get("message")) or _text(fields.get("Message"))
    original = _text(fields.get("originalMessage"))
    if original and original != message:
        message = f"{message} ({original})" if message else original
    return ProviderError(message or f"Bedrock ended the answer with {code or 'an error'}", code=code)


def _text(raw: Json) -> str | None:
    return raw if isinstance(raw, str) and raw.strip() else None
