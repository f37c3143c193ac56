"""Asks a peer for one chat completion, over real HTTP, with the rules of the event stream checked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from cantle_ai.apis.openai_completions import source
from cantle_ai.auth.request_auth import RequestAuth
from cantle_ai.context import Context
from cantle_ai.model import Model, StreamOptions
from packages.ai.tests.apis.asking import HELLO, Asked, ask_peer

KEY = "sk-secret-key"
DONE = b"data: [DONE]\n\n"


def model(**fields: Any) -> Model:
    return Model(
        **{
            "id": "m",
            "provider": "p",
            "api": "openai-completions",
            "base_url": "http://127.0.0.1:1/v1",
            **fields,
        }
    )


def event(value: object) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def delta(finish: str | None = None, **fields: object) -> bytes:
    """One chunk with one choice."""
    return event(
        {"id": "c1", "model": "m", "choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}
    )


def call(arguments: str | None = None, **fields: Any) -> dict[str, Any]:
    """One entry of `tool_calls`. `name` goes into its function."""
    function = {
        key: value for key, value in (("name", fields.pop("name", None)), ("arguments", arguments)) if value
    }
    return {**fields, "function": function}


async def ask(
    serve: Any, *, context: Context = HELLO, options: StreamOptions | None = None, key: str | None = KEY,
    headers: Mapping[str, str] | None = None, see: Any = None, **fields: Any
) -> Asked:  # fmt: skip
    """`serve` is a handler for :class:`Peer`, or the events that it sends. `fields` are the model's.

    `see` is shown each event as it comes.
    """
    return await ask_peer(
        serve,
        source,
        model=lambda url: model(**{"base_url": f"{url}/v1", **fields}),
        auth=lambda url: RequestAuth(api_key=key, headers=headers or {}),
        context=context,
        options=options,
        see=see,
    )
