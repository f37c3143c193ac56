"""The chat-completions API as the strictest of its many vendors would serve it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import cast

from cantle_ai.codec import JsonObject, encode_json
from cantle_ai.testing.response import Failure, Noise
from cantle_ai.testing.script import LastMessage
from cantle_ai.testing.server.dialects.openai_completions_playback import ChatPlayback
from cantle_ai.testing.server.dialects.openai_completions_request import check_request
from cantle_ai.testing.server.dialects.openai_errors import error_body
from cantle_ai.testing.server.dialects.port import Asked, Dialect, Play, Playback
from cantle_ai.testing.server.event_noise import data_noise
from cantle_ai.testing.server.exchange import Call
from cantle_ai.testing.server.prefix import elements, without_marks
from cantle_ai.testing.server.strictness import Strictness

__all__ = ["DIALECT", "MARKS"]

MARKS = re.compile(r',?"cache_control":\{[^{}]*\}')


class ChatCompletions:
    """Requests are held against the rules in `openai_completions_request.py` and `…_messages.py`."""

    content_type = "text/event-stream; charset=utf-8"

    def check(self, call: Call, strictness: Strictness) -> Asked:
        body = check_request(call.headers, call.body, strictness)
        messages = [without_marks(text, MARKS) for text in elements(body.raw["messages"])]
        head = {"tools": without_marks(body.raw.get("tools", ""), MARKS), "system": ""}
        if cast("list[JsonObject]", body.values["messages"])[0].get("role") in ("system", "developer"):
            head["system"] = messages.pop(0)
        return Asked(
            body=body,
            model=str(body.values["model"]),
            head=head,
            pieces=messages,
            conversation=str(body.values.get("prompt_cache_key", "")),
            last=last_message(body.values),
        )

    def play(self, play: Play) -> Playback:
        return ChatPlayback(play)

    def error(self, failure: Failure, status: int) -> bytes:
        return encode_json(error_body(failure.message, failure.code, status))

    def noise(self, kind: Noise, play: Play) -> bytes | None:
        return data_noise(kind, play.newline)

    def models(self, ids: Sequence[str]) -> bytes:
        return encode_json({"object": "list", "data": [{"id": id, "object": "model"} for id in ids]})


def last_message(values: JsonObject) -> LastMessage | None:
    """What a `when` looks at, of a request body."""
    messages = cast("list[JsonObject]", values["messages"])
    message = messages[-1]
    content = message.get("content")
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "\n".join(part for part in parts if isinstance(part, str))
    text = content if isinstance(content, str) else ""
    if message.get("role") != "tool":
        return LastMessage(role=str(message.get("role")), text=text)
    return LastMessage(role="toolResult", text=text, tool=_tool_name(messages, message.get("tool_call_id")))


def _tool_name(messages: list[JsonObject], call_id: object) -> str | None:
    for message in reversed(messages):
        for call in cast("list[JsonObject]", message.get("tool_calls", [])):
            if call.get("id") == call_id:
                return str(cast("Mapping[str, object]", call["function"])["name"])
    return None


DIALECT: Dialect = ChatCompletions()
