"""Asks a peer for one response, over real HTTP, with the rules of the event stream checked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from cantle_ai.apis import azure_openai_responses, openai_codex_responses, openai_responses
from cantle_ai.apis.port import WireApi
from cantle_ai.auth.request_auth import RequestAuth
from cantle_ai.builder import AnswerBuilder
from cantle_ai.codec import JsonObject
from cantle_ai.context import Context
from cantle_ai.events import AssistantMessageEvent
from cantle_ai.messages import AssistantMessage, UserMessage
from cantle_ai.model import AuthKind, Model, StreamOptions
from cantle_ai.stream import AssistantMessageStream
from cantle_ai.testing.checker import checked
from cantle_ai.transport.urllib3_thread import Urllib3Transport
from packages.ai.tests.http_peer import Peer

KEY = "sk-secret-key"
HELLO = Context("Be brief.", [UserMessage("hello", timestamp=1)])
SOURCES: Mapping[str, WireApi] = {
    "openai-responses": openai_responses.source,
    "azure-openai-responses": azure_openai_responses.source,
    "openai-codex-responses": openai_codex_responses.source,
}


def model(**fields: Any) -> Model:
    return Model(
        **{
            "id": "m",
            "provider": "p",
            "api": "openai-responses",
            "base_url": "http://127.0.0.1:1/v1",
            **fields,
        }
    )


def event(type: str, **fields: object) -> bytes:
    return f"event: {type}\ndata: {json.dumps({'type': type, **fields})}\n\n".encode()


def response(**fields: object) -> JsonObject:
    return {"id": "resp_1", "object": "response", "model": "m", "output": [], **fields}  # type: ignore[dict-item]


def created(**fields: object) -> bytes:
    return event("response.created", response=response(status="in_progress", **fields))


def added(index: int, **item: object) -> bytes:
    return event("response.output_item.added", output_index=index, item=item)


def done(index: int, **item: object) -> bytes:
    return event("response.output_item.done", output_index=index, item=item)


def completed(**fields: object) -> bytes:
    return event("response.completed", response=response(**{"status": "completed", **fields}))


def text(delta: str, index: int = 0, **fields: object) -> bytes:
    return event(
        "response.output_text.delta",
        **{"item_id": "msg_1", "output_index": index, "content_index": 0, "delta": delta, **fields},
    )


def arguments(delta: str, index: int = 0, **fields: object) -> bytes:
    return event("response.function_call_arguments.delta", output_index=index, delta=delta, **fields)


def message(said: str, **fields: object) -> JsonObject:
    """A message item, whole."""
    part = {"type": "output_text", "text": said, "annotations": []}
    item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
    return {**item, **fields}  # type: ignore[dict-item]


def call(number: int = 1, **fields: object) -> JsonObject:
    """A function call, whole."""
    item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": "read"}
    return {**item, "arguments": '{"path":"a"}', "status": "completed", **fields}  # type: ignore[dict-item]


def reasoning(*summary: str, **fields: object) -> JsonObject:
    """A reasoning item, whole."""
    parts = [{"type": "summary_text", "text": part} for part in summary]
    fixed = {"type": "reasoning", "id": "rs_1", "encrypted_content": "ENC"}
    return {**fixed, "summary": parts, **fields}  # type: ignore[dict-item]


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
    def types(self) -> list[str]:
        return [event.type for event in self.events]


OK = (event("response.completed", response=response(status="completed")),)
"""An answer without anything in it."""


async def ask(
    serve: Any = OK, *, context: Context = HELLO, options: StreamOptions | None = None,
    key: str | None = KEY, kind: AuthKind = "key", headers: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None, path: str = "/v1", **fields: Any
) -> Asked:  # fmt: skip
    """`serve` is a handler for :class:`Peer`, or the events that it sends. `fields` are the model's."""
    handler = serve if callable(serve) else lambda link: link.events(*serve)
    transport = Urllib3Transport(environ={})
    with Peer(handler) as peer:
        asked = model(**{"base_url": f"{peer.url}{path}", **fields})
        variables = {name: value.replace("PEER", peer.url) for name, value in (environ or {}).items()}
        options = options or StreamOptions()
        builder = AnswerBuilder(api=asked.api, provider=asked.provider, model=asked.id, price=asked.price)
        auth = RequestAuth(api_key=key, kind=kind, headers=headers or {}, environ=variables)
        made = SOURCES[asked.api](asked, context, options, transport=transport, auth=auth)
        stream = checked(AssistantMessageStream(made, builder, signal=options.signal))
        events = [event async for event in stream]
        result = Asked(events, await stream.result(), peer)
    await transport.aclose()
    return result
