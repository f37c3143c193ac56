"""Mistral's chat API as Mistral serves it, without the patience of those who imitate it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import cast

from cantle_ai.codec import JsonObject, encode_json
from cantle_ai.testing.response import Failure, Noise
from cantle_ai.testing.script import LastMessage
from cantle_ai.testing.server.dialects.mistral_conversations_playback import MistralPlayback, error_body
from cantle_ai.testing.server.dialects.mistral_conversations_request import check_request
from cantle_ai.testing.server.dialects.port import Asked, Dialect, Play, Playback
from cantle_ai.testing.server.event_noise import data_noise
from cantle_ai.testing.server.exchange import Call
from cantle_ai.testing.server.prefix import elements, without_marks
from cantle_ai.testing.server.refusal import Refusal
from cantle_ai.testing.server.strictness import Strictness

__all__ = ["DIALECT"]

_PREFIX = re.compile(r',?"prefix":true')
"""The mark of a last message that the answer goes on with. It is of one request, like a mark for a cache."""


class MistralChat:
    """Requests are held against the rules in `mistral_conversations_request.py` and `…_messages.py`."""

    content_type = "text/event-stream; charset=utf-8"

    def check(self, call: Call, strictness: Strictness) -> Asked:
        body = check_request(call.headers, call.body, strictness)
        messages = [without_marks(text, _PREFIX) for text in elements(body.raw["messages"])]
        said = cast("list[JsonObject]", body.values["messages"])
        key = str(body.values.get("prompt_cache_key", ""))
        affinity = call.headers.get("x-affinity", key)
        if affinity != key:
            raise Refusal("affinity", f"x-affinity is {affinity!r}, but prompt_cache_key is {key!r}")
        return Asked(
            body=body,
            model=str(body.values["model"]),
            head={
                "tools": body.raw.get("tools", ""),
                "system": messages.pop(0) if said[0].get("role") == "system" else "",
            },
            pieces=messages,
            conversation=key,
            last=_last(said[-1]),
        )

    def play(self, play: Play) -> Playback:
        return MistralPlayback(play)

    def error(self, failure: Failure, status: int) -> bytes:
        return encode_json(error_body(failure.message, failure.code, status))

    def noise(self, kind: Noise, play: Play) -> bytes | None:
        return data_noise(kind, play.newline)

    def models(self, ids: Sequence[str]) -> bytes:
        return encode_json({"object": "list", "data": [{"id": id, "object": "model"} for id in ids]})


def _last(message: JsonObject) -> LastMessage:
    """What a `when` looks at."""
    content = message.get("content")
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "\n".join(part for part in parts if isinstance(part, str))
    text = content if isinstance(content, str) else ""
    if message.get("role") != "tool":
        return LastMessage(role=str(message.get("role")), text=text)
    return LastMessage(role="toolResult", text=text, tool=str(message["name"]))


DIALECT: Dialect = MistralChat()
