"""Asks a peer for one Messages answer, over real HTTP, with the rules of the event stream checked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from cantle_ai.apis.anthropic_messages import source
from cantle_ai.auth.request_auth import RequestAuth
from cantle_ai.context import Context, ToolDefinition
from cantle_ai.model import Model, StreamOptions
from packages.ai.tests.apis.asking import HELLO, Asked, ask_peer

KEY = "sk-ant-secret-key"
READ = ToolDefinition(
    "read", "Reads.", {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
)


def model(**fields: Any) -> Model:
    return Model(
        **{
            "id": "m",
            "provider": "p",
            "api": "anthropic-messages",
            "base_url": "http://127.0.0.1:1",
            "context_window": 200_000,
            "max_tokens": 64_000,
            **fields,
        }
    )


def event(kind: str, **fields: object) -> bytes:
    """One event, its name and its data."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def start(model: str = "m", **usage: object) -> bytes:
    return event(
        "message_start", message={"id": "msg_1", "role": "assistant", "model": model, "usage": usage}
    )


def block(index: int, kind: str, **fields: object) -> bytes:
    """A block begins."""
    return event("content_block_start", index=index, content_block={"type": kind, **fields})


def delta(index: int, kind: str, **fields: object) -> bytes:
    return event("content_block_delta", index=index, delta={"type": kind, **fields})


def said(text: str, index: int = 0) -> bytes:
    """A whole block of text."""
    return block(index, "text", text="") + delta(index, "text_delta", text=text) + stop(index)


def stop(index: int) -> bytes:
    return event("content_block_stop", index=index)


def end(reason: str | None = "end_turn", usage: Mapping[str, object] | None = None, **more: object) -> bytes:
    """The last two events."""
    final = event("message_delta", delta={"stop_reason": reason, **more}, usage=usage or {"output_tokens": 5})
    return final + event("message_stop")


async def ask(
    serve: Any, *, context: Context = HELLO, options: StreamOptions | None = None, auth: RequestAuth | None = None,
    root: str = "", **fields: Any
) -> Asked:  # fmt: skip
    """`serve` is a handler for :class:`Peer`, or the events that it sends; `fields` are the model's.

    `root` follows the address in the model's `base_url`.
    """
    return await ask_peer(
        serve,
        source,
        model=lambda url: model(**{"base_url": f"{url}{root}", **fields}),
        auth=lambda url: auth or RequestAuth(api_key=KEY),
        context=context,
        options=options,
    )
