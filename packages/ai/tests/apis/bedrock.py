"""Asks a peer over Bedrock's Converse, over real HTTP, with the rules of the event stream checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cantle_ai.apis.bedrock_converse_stream import BedrockConverse
from cantle_ai.auth.request_auth import RequestAuth
from cantle_ai.context import Context
from cantle_ai.model import Model, StreamOptions
from cantle_ai.testing.server.dialects.bedrock_converse_stream_frames import event, exception
from packages.ai.tests.apis.asking import HELLO, Asked, ask_peer

__all__ = [
    "CLAUDE",
    "END",
    "KEY",
    "MEDIA_TYPE",
    "ask",
    "delta",
    "event",
    "exception",
    "model",
    "said",
]

KEY = "bedrock-secret-key"
CLAUDE = "us.anthropic.claude-sonnet-4-6"
MEDIA_TYPE = "content-type: application/vnd.amazon.eventstream"
USAGE = {"inputTokens": 5, "outputTokens": 7, "totalTokens": 12}


def model(**fields: Any) -> Model:
    return Model(
        **{
            "id": CLAUDE,
            "provider": "p",
            "api": "bedrock-converse-stream",
            "base_url": "http://127.0.0.1:1",
            "context_window": 200_000,
            "max_tokens": 64_000,
            "reasoning": True,
            "thinking_levels": {"max": "max"},
            "input": ("text", "image"),
            **fields,
        }
    )


def delta(index: int, **fields: object) -> bytes:
    return event("contentBlockDelta", {"contentBlockIndex": index, "delta": fields})


def stop(index: int) -> bytes:
    return event("contentBlockStop", {"contentBlockIndex": index})


def said(text: str, index: int = 0) -> bytes:
    """A whole block of text."""
    return delta(index, text=text) + stop(index)


def end(reason: str = "end_turn", **usage: Any) -> bytes:
    """The last two events."""
    return event("messageStop", {"stopReason": reason}) + event("metadata", {"usage": {**USAGE, **usage}})


END = [said("ok"), end()]


async def ask(
    serve: Any, *, context: Context = HELLO, options: StreamOptions | None = None, key: str | None = KEY,
    environ: Mapping[str, str] | None = None, api: BedrockConverse | None = None, **fields: Any
) -> Asked:  # fmt: skip
    """`serve` is a handler for :class:`Peer`, or the frames that it sends; `fields` are the model's."""

    def frames(link: Any) -> None:
        link.answer(b"".join(serve), MEDIA_TYPE, "x-amzn-requestid: r-1")

    return await ask_peer(
        serve if callable(serve) else frames,
        api or BedrockConverse(),
        model=lambda url: model(**{"base_url": url, **fields}),
        auth=lambda url: RequestAuth(api_key=key, environ=environ or {}),
        context=context,
        options=options,
    )
