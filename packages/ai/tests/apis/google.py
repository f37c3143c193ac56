"""Asks a peer for one answer of Gemini, over real HTTP, with the rules of the event stream checked."""

from __future__ import annotations

import json
from typing import Any

from cantle_ai.apis.google_generative_ai import source
from cantle_ai.apis.port import WireApi
from cantle_ai.auth.request_auth import RequestAuth
from cantle_ai.context import Context
from cantle_ai.messages import AssistantMessage
from cantle_ai.model import Model, StreamOptions
from packages.ai.tests.apis.asking import HELLO, Asked, ask_peer

__all__ = ["KEY", "PRO", "answer_by", "ask", "body_of", "call", "chunk", "event", "model"]

KEY = "AIza-secret-key"
PRO = "gemini-3.1-pro-preview"


def model(id: str = PRO, **fields: Any) -> Model:
    row = {
        "provider": "google",
        "api": "google-generative-ai",
        "base_url": "http://127.0.0.1:1/v1beta",
        "input": ("text", "image"),
    }
    return Model(**{"id": id, **row, **fields})


def event(value: object) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\r\n\r\n"


def chunk(*parts: object, finish: str | None = None, usage: object = None, **fields: Any) -> bytes:
    """One chunk with one candidate. A string is a part with that text."""
    said = [{"text": part} if isinstance(part, str) else part for part in parts]
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": said}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    whole: dict[str, Any] = {"candidates": [candidate], "modelVersion": PRO, "responseId": "r1", **fields}
    if usage is not None:
        whole["usageMetadata"] = usage
    return event(whole)


def call(name: str, args: object = None, *, signature: str | None = None, **fields: Any) -> dict[str, Any]:
    """A part with a function call."""
    inner = {"name": name, **({} if args is None else {"args": args}), **fields}
    return {"functionCall": inner, **({} if signature is None else {"thoughtSignature": signature})}


def answer_by(asked: Model, *content: Any, **fields: Any) -> AssistantMessage:
    """An answer that this model has given before."""
    return AssistantMessage(list(content), asked.api, asked.provider, asked.id, **{"timestamp": 2, **fields})


async def ask(
    serve: Any, *, context: Context = HELLO, options: StreamOptions | None = None, auth: RequestAuth | None = None,
    see: Any = None, api: WireApi = source, root: str = "/v1beta", **fields: Any
) -> Asked:  # fmt: skip
    """`serve` is a handler for :class:`Peer`, or the events that it sends. `fields` are the model's.

    `see` is shown each event as it comes.
    """
    return await ask_peer(
        serve,
        api,
        model=lambda url: model(**{"base_url": f"{url}{root}", **fields}),
        auth=lambda url: RequestAuth(api_key=KEY) if auth is None else auth,
        context=context,
        options=options,
        see=see,
    )


def body_of(asked: Model, context: Context, options: StreamOptions | None = None) -> dict[str, Any]:
    """The body of a request, without sending it."""
    from cantle_ai.apis.google_compat import compat_of
    from cantle_ai.apis.google_payload import request_body

    return json.loads(request_body(asked, context, options or StreamOptions(), compat_of(asked)))
