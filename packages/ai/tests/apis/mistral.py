"""Asks a peer over Mistral's chat API, over real HTTP, with the rules of the event stream checked."""

from __future__ import annotations

import json
from typing import Any

from cantle_ai.apis.mistral_conversations import source
from cantle_ai.auth.request_auth import RequestAuth
from cantle_ai.context import Context
from cantle_ai.model import Model, StreamOptions
from packages.ai.tests.apis.asking import HELLO, Asked, ask_peer

KEY = "mistral-secret-key"
DONE = b"data: [DONE]\n\n"


def model(**fields: Any) -> Model:
    return Model(
        **{
            "id": "m",
            "provider": "p",
            "api": "mistral-conversations",
            "base_url": "http://127.0.0.1:1",
            **fields,
        }
    )


def chunk(finish: str | None = None, usage: object = None, **delta: object) -> bytes:
    """One chunk with one choice."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    value: dict[str, object] = {
        "id": "c1",
        "object": "chat.completion.chunk",
        "model": "m",
        "choices": [choice],
    }
    if usage is not None:
        value["usage"] = usage
    return f"data: {json.dumps(value)}\n\n".encode()


def thought(text: str, signature: str | None = None) -> dict[str, object]:
    """A part of a content."""
    part: dict[str, object] = {"type": "thinking", "thinking": [{"type": "text", "text": text}]}
    return part if signature is None else {**part, "signature": signature}


def call(id: str, name: str, arguments: object, index: int = 0) -> dict[str, object]:
    """An entry of `tool_calls`."""
    return {"id": id, "index": index, "function": {"name": name, "arguments": arguments}}


END = [chunk("stop"), DONE]


async def ask(
    serve: Any, *, context: Context = HELLO, options: StreamOptions | None = None, root: str = "", **fields: Any
) -> Asked:  # fmt: skip
    """`serve` is a handler for :class:`Peer`, or the events that it sends; `fields` are the model's.

    `root` follows the address in the model's `base_url`.
    """
    return await ask_peer(
        serve,
        source,
        model=lambda url: model(**{"base_url": f"{url}{root}", **fields}),
        auth=lambda url: RequestAuth(api_key=KEY),
        context=context,
        options=options,
    )
