"""Anthropic's Messages API as the strictest of those who speak it would serve it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import cast

from cantle_ai.codec import JsonObject, encode_json
from cantle_ai.testing.response import Failure, Noise
from cantle_ai.testing.script import LastMessage
from cantle_ai.testing.server.body import Body, read_body
from cantle_ai.testing.server.dialects.anthropic_messages_playback import MessagePlayback, error_body
from cantle_ai.testing.server.dialects.anthropic_messages_request import check_request
from cantle_ai.testing.server.dialects.port import Asked, Dialect, Play, Playback
from cantle_ai.testing.server.event_noise import named_noise
from cantle_ai.testing.server.exchange import Call
from cantle_ai.testing.server.prefix import elements, without_marks
from cantle_ai.testing.server.strictness import Strictness

__all__ = ["DIALECT", "MARKS"]

MARKS = re.compile(r',?"cache_control":\{[^{}]*\}')
_SESSION_HEADERS = ("x-session-affinity", "x-session-id")


class Messages:
    """Requests are held against the rules in `anthropic_messages_request.py` and `…_messages.py`."""

    content_type = "text/event-stream; charset=utf-8"

    def check(self, call: Call, strictness: Strictness) -> Asked:
        body = check_request(call.headers, call.body, strictness)
        return Asked(
            body=body,
            model=str(body.values["model"]),
            head={name: without_marks(body.raw.get(name, ""), MARKS) for name in ("system", "tools")},
            pieces=list(_pieces(body)),
            conversation=next((call.headers[name] for name in _SESSION_HEADERS if name in call.headers), ""),
            last=_last(cast("list[JsonObject]", body.values["messages"])),
        )

    def play(self, play: Play) -> Playback:
        return MessagePlayback(play)

    def error(self, failure: Failure, status: int) -> bytes:
        return encode_json(error_body(failure.message, failure.code, status))

    def noise(self, kind: Noise, play: Play) -> bytes | None:
        return named_noise(kind, play.newline)

    def models(self, ids: Sequence[str]) -> bytes:
        rows = [{"type": "model", "id": id, "display_name": id} for id in ids]
        return encode_json({"data": rows, "has_more": False, "first_id": None, "last_id": None})


def _pieces(body: Body) -> Iterator[str]:
    """A role, then its blocks: neighbours of one role are one turn, which may grow at its end."""
    role = ""
    for text in elements(body.raw["messages"]):
        message = read_body(text.encode())
        if message.raw["role"] != role:
            role = message.raw["role"]
            yield role
        content = without_marks(message.raw["content"], MARKS)
        yield from elements(content) or [content]


def _last(messages: list[JsonObject]) -> LastMessage:
    """What a `when` looks at: the last thing that was said, or the last result."""
    content = messages[-1]["content"]
    if isinstance(content, str):
        return LastMessage(role="user", text=content)
    blocks = cast("list[JsonObject]", content)
    results = [block for block in blocks if block["type"] == "tool_result"]
    if not results or blocks[-1]["type"] == "text":
        return LastMessage(role="user", text=_text(blocks))
    said = results[-1].get("content", "")
    text = said if isinstance(said, str) else _text(cast("list[JsonObject]", said))
    return LastMessage(role="toolResult", text=text, tool=_tool_name(messages, results[-1]["tool_use_id"]))


def _text(blocks: list[JsonObject]) -> str:
    return "\n".join(str(block["text"]) for block in blocks if block["type"] == "text")


def _tool_name(messages: list[JsonObject], call_id: object) -> str | None:
    for message in reversed(messages):
        content = message["content"]
        for block in cast("list[JsonObject]", content) if isinstance(content, list) else []:
            if block["type"] == "tool_use" and block["id"] == call_id:
                return str(block["name"])
    return None


DIALECT: Dialect = Messages()
