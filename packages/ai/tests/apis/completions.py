"""Asks a peer for one chat completion, over real HTTP, with the rules of the event stream checked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from cantle_ai.apis.openai_completions import source
from cantle_ai.auth.request_auth import RequestAuth
from cantle_ai.builder import AnswerBuilder
from cantle_ai.context import Context
from cantle_ai.events import AssistantMessageEvent
from cantle_ai.messages import AssistantMessage, UserMessage
from cantle_ai.model import Model, StreamOptions
from cantle_ai.stream import AssistantMessageStream
from cantle_ai.testing.checker import checked
from cantle_ai.transport.urllib3_thread import Urllib3Transport
from packages.ai.tests.http_peer import Link, Peer

KEY = "sk-secret-key"
HELLO = Context("Be brief.", [UserMessage("hello", timestamp=1)])
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


class Asked:
    """What came of a request: the events, the message, and what the peer saw."""

    def __init__(self, events: list[AssistantMessageEvent], message: AssistantMessage, peer: Peer) -> None:
        self.events = events
        self.message = message
        self.requests = peer.requests

    @property
    def body(self) -> dict[str, Any]:
        return json.loads(self.requests[-1].body)

    @property
    def details(self) -> Mapping[str, Any]:
        assert self.message.extra is not None
        details = self.message.extra["errorDetails"]
        assert isinstance(details, dict)
        return details

    @property
    def types(self) -> list[str]:
        return [event.type for event in self.events]


async def ask(
    serve: Any, *, context: Context = HELLO, options: StreamOptions | None = None, key: str | None = KEY,
    headers: Mapping[str, str] | None = None, see: Any = None, **fields: Any
) -> Asked:  # fmt: skip
    """`serve` is a handler for :class:`Peer`, or the events that it sends. `fields` are the model's.

    `see` is shown each event as it comes.
    """
    handler = serve if callable(serve) else lambda link: link.events(*serve)
    transport = Urllib3Transport(environ={})
    with Peer(handler) as peer:
        asked = model(**{"base_url": f"{peer.url}/v1", **fields})
        options = options or StreamOptions()
        builder = AnswerBuilder(api=asked.api, provider=asked.provider, model=asked.id, price=asked.price)
        auth = RequestAuth(api_key=key, headers=headers or {})
        made = source(asked, context, options, transport=transport, auth=auth)
        stream = checked(AssistantMessageStream(made, builder, signal=options.signal))
        events = []
        async for event in stream:
            events.append(event)
            if see is not None:
                see(event)
        result = Asked(events, await stream.result(), peer)
    await transport.aclose()
    return result


def refuse(status: str, body: bytes, *lines: str) -> Any:
    def serve(link: Link) -> None:
        link.answer(body, *lines, status=status)

    return serve
