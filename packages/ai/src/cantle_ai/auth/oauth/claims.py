"""What a JSON Web Token says. It is not checked: it comes from the server that was asked, over TLS."""

from __future__ import annotations

from base64 import urlsafe_b64decode

import msgspec

from cantle_ai.codec import Json, JsonObject

__all__ = ["claims_of"]


def claims_of(token: Json) -> JsonObject:
    """The claims in a token; none in what is no such token."""
    if not isinstance(token, str) or token.count(".") != 2:
        return {}
    part = token.split(".")[1]
    try:
        value: Json = msgspec.json.decode(urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
