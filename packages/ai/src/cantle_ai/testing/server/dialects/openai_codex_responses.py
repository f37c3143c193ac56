"""The Responses API behind a login to ChatGPT: the account in a header, and nothing is ever stored."""

from __future__ import annotations

from cantle_ai.testing.server.dialects.openai_responses import Responses
from cantle_ai.testing.server.dialects.port import Dialect
from cantle_ai.testing.server.exchange import Call
from cantle_ai.testing.server.refusal import Refusal
from cantle_ai.testing.server.strictness import Strictness, check_bearer

__all__ = ["DIALECT"]


def _door(call: Call, strictness: Strictness) -> None:
    check_bearer(call.headers, strictness)
    if not call.headers.get("chatgpt-account-id", "").strip():
        raise Refusal("account", "the header chatgpt-account-id must name the account", status=401)


DIALECT: Dialect = Responses(_door, {"store": "false"})
