"""Asks a peer for one response, over real HTTP, with the rules of the event stream checked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from cantle_ai.apis import azure_openai_responses, openai_codex_responses, openai_responses
from cantle_ai.apis.port import WireApi
from cantle_ai.auth.request_auth import RequestAuth
from cantle_ai.codec import JsonObject
from cantle_ai.context import Context
from cantle_ai.model import AuthKind, Model, StreamOptions
from packages.ai.tests.apis.asking import HELLO, Asked, ask_peer

KEY = "sk-secret-key"
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


OK = (event("response.completed", response=response(status="completed")),)
"""An answer without anything in it."""


async def ask(
    serve: Any = OK, *, context: Context = HELLO, options: StreamOptions | None = None,
    key: str | None = KEY, kind: AuthKind = "key", headers: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None, path: str = "/v1", **fields: Any
) -> Asked:  # fmt: skip
    """`serve` is a handler for :class:`Peer`, or the events that it sends. `fields` are the model's."""

    def auth(url: str) -> RequestAuth:
        variables = {name: value.replace("PEER", url) for name, value in (environ or {}).items()}
        return RequestAuth(api_key=key, kind=kind, headers=headers or {}, environ=variables)

    return await ask_peer(
        serve,
        SOURCES[fields.get("api", "openai-responses")],
        model=lambda url: model(**{"base_url": f"{url}{path}", **fields}),
        auth=auth,
        context=context,
        options=options,
    )
