"""Asks a peer for one answer, over real HTTP, with the rules of the event stream checked."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from cantle_ai.apis.port import WireApi
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

__all__ = ["HELLO", "Asked", "ask_peer", "refuse"]

HELLO = Context("Be brief.", [UserMessage("hello", timestamp=1)])


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
    def headers(self) -> dict[str, str]:
        return self.requests[-1].headers

    @property
    def details(self) -> Mapping[str, Any]:
        assert self.message.extra is not None
        details = self.message.extra["errorDetails"]
        assert isinstance(details, dict)
        return details

    @property
    def types(self) -> list[str]:
        return [event.type for event in self.events]


async def ask_peer(
    serve: Any,
    api: WireApi,
    *,
    model: Callable[[str], Model],
    auth: Callable[[str], RequestAuth],
    context: Context = HELLO,
    options: StreamOptions | None = None,
    see: Callable[[AssistantMessageEvent], object] | None = None,
) -> Asked:
    """`serve` is a handler for :class:`Peer`, or the events that it sends. `model` and `auth` are asked for with its
    address. `see` is shown each event as it comes.
    """
    handler = serve if callable(serve) else lambda link: link.events(*serve)
    options = options or StreamOptions()
    transport = Urllib3Transport(environ={})
    with Peer(handler) as peer:
        asked = model(peer.url)
        made = api(asked, context, options, transport=transport, auth=auth(peer.url))
        builder = AnswerBuilder.of(asked, thinking_level=options.thinking)
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
    """A handler that answers with this and nothing else."""

    def serve(link: Link) -> None:
        link.answer(body, *lines, status=status)

    return serve
