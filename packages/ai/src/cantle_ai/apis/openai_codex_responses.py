"""OpenAI's models by a subscription to ChatGPT: `POST {base_url}/codex/responses`.

The Responses API behind a login: the token is the key, a header names the account, and some fields are always
there. All else is as in `openai_responses`, whose modules this door shares.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final

from cantle_ai.abort import AbortSignal
from cantle_ai.apis.http_headers import key_headers, request_headers
from cantle_ai.apis.http_stream import stream_answer
from cantle_ai.apis.openai_responses_compat import compat_of
from cantle_ai.apis.openai_responses_payload import request_body, session_headers
from cantle_ai.apis.openai_responses_reader import reader_of
from cantle_ai.apis.port import WireApi
from cantle_ai.auth.request_auth import RequestAuth
from cantle_ai.builder import AnswerBuilder
from cantle_ai.codec import JsonObject
from cantle_ai.context import Context
from cantle_ai.errors import ConfigurationError
from cantle_ai.events import AssistantMessageEvent
from cantle_ai.model import Model, StreamOptions
from cantle_ai.stream import EventSource
from cantle_ai.transport.port import HttpRequest, Transport

__all__ = ["ACCOUNT_HEADER", "source"]

ACCOUNT_HEADER: Final = "chatgpt-account-id"
"""Names the account. A login puts it among its headers; else it is read from the token."""

_DEFAULTS: Final[JsonObject] = {
    "supportsDeveloperRole": True,
    "supportsStrictMode": True,
    "supportsLongCacheRetention": False,
}
_CLAIM: Final = "https://api.openai.com/auth"
"""Where the token, a JSON web token, speaks of the account."""


def source(
    model: Model,
    context: Context,
    options: StreamOptions,
    *,
    transport: Transport,
    auth: RequestAuth,
) -> EventSource:
    """The answer of one response; see :class:`cantle_ai.apis.port.WireApi`."""

    def events(builder: AnswerBuilder, signal: AbortSignal) -> AsyncIterator[Sequence[AssistantMessageEvent]]:
        compat = compat_of(model, _DEFAULTS)
        own = {
            "openai-beta": "responses=experimental",
            **session_headers(options, compat),
            **key_headers(auth),
        }
        if auth.api_key is not None:
            own[ACCOUNT_HEADER] = _account_of(auth.api_key) or ""
        headers = request_headers(own, auth, options)
        if not headers.get(ACCOUNT_HEADER):
            raise ConfigurationError(
                None,
                f"The token for {model.provider} does not say which ChatGPT account it is of. Log in anew, "
                f"or name the account in the header {ACCOUNT_HEADER}",
            )
        body = request_body(model, context, options, compat, defaults=_fields())
        request = HttpRequest("POST", _url(model), headers, body, options.timeout)
        reader = reader_of(builder, model, context, compat)
        return stream_answer(request, reader, builder, options=options, transport=transport, signal=signal)

    return events


_proof: WireApi = source


def _account_of(token: str) -> str | None:
    """The account that a token is of; None when it does not say."""
    from cantle_ai.auth.oauth.claims import claims_of

    claim = claims_of(token).get(_CLAIM)
    account = claim.get("chatgpt_account_id") if isinstance(claim, dict) else None
    return account if isinstance(account, str) and account else None


def _url(model: Model) -> str:
    base = model.base_url.rstrip("/").removesuffix("/responses")
    return f"{base}/responses" if base.endswith("/codex") else f"{base}/codex/responses"


def _fields() -> JsonObject:
    """What this service is sent with every request."""
    return {
        "text": {"verbosity": "low"},
        "include": ["reasoning.encrypted_content"],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
    }
