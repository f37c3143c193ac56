"""The Responses API at Azure: the key in a header of its own, and a version in the address."""

from __future__ import annotations

from urllib.parse import parse_qs

from cantle_ai.testing.server.dialects.openai_responses import Responses
from cantle_ai.testing.server.dialects.port import Dialect
from cantle_ai.testing.server.exchange import Call
from cantle_ai.testing.server.refusal import Refusal
from cantle_ai.testing.server.strictness import Strictness, check_bearer, check_key

__all__ = ["DIALECT"]


def _door(call: Call, strictness: Strictness) -> None:
    if "authorization" in call.headers:
        check_bearer(call.headers, strictness)
    else:
        check_key(call.headers.get("api-key", ""), strictness, "api-key")
    if len(parse_qs(call.query).get("api-version", [])) != 1:
        raise Refusal("api-version", "the query must say one api-version", status=404)


DIALECT: Dialect = Responses(_door)
