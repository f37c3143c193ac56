"""OpenAI's Responses API, as the service itself and the strictest of its doors would serve it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, cast

from cantle_ai.codec import Json, JsonObject, encode_json
from cantle_ai.testing.response import Failure, Noise
from cantle_ai.testing.script import LastMessage
from cantle_ai.testing.server.dialects.openai_errors import error_body
from cantle_ai.testing.server.dialects.openai_responses_playback import ResponsePlayback
from cantle_ai.testing.server.dialects.openai_responses_request import check_body
from cantle_ai.testing.server.dialects.port import Asked, Dialect, Play, Playback
from cantle_ai.testing.server.event_noise import named_noise
from cantle_ai.testing.server.exchange import Call
from cantle_ai.testing.server.prefix import elements
from cantle_ai.testing.server.strictness import Strictness, check_bearer, check_json

__all__ = ["DIALECT", "Responses"]

Door: TypeAlias = Callable[[Call, Strictness], None]
"""What a door checks of a request beside its body: headers and query. Raises a refusal."""


class Responses:
    """Requests are held against the rules in `openai_responses_request.py` and `…_input.py`."""

    content_type = "text/event-stream; charset=utf-8"

    def __init__(self, door: Door, needed: Mapping[str, str] | None = None) -> None:
        """`needed` are fields that a door wants in every body, with the JSON that they must be."""
        self._door = door
        self._needed = needed or {}

    def check(self, call: Call, strictness: Strictness) -> Asked:
        check_json(call.headers)
        self._door(call, strictness)
        body = check_body(call.body, strictness, self._needed)
        pieces = elements(body.raw["input"])
        items = cast("list[JsonObject]", body.values["input"])
        head = {"tools": body.raw.get("tools", ""), "system": body.raw.get("instructions", "")}
        if items[0].get("role") in ("system", "developer"):
            head["system"] += pieces.pop(0)
        return Asked(
            body=body,
            model=str(body.values["model"]),
            head=head,
            pieces=pieces,
            conversation=str(body.values.get("prompt_cache_key", "")),
            last=_last(items),
        )

    def play(self, play: Play) -> Playback:
        return ResponsePlayback(play)

    def error(self, failure: Failure, status: int) -> bytes:
        return encode_json(error_body(failure.message, failure.code, status))

    def noise(self, kind: Noise, play: Play) -> bytes | None:
        return named_noise(kind, play.newline, "response.something_new")

    def models(self, ids: Sequence[str]) -> bytes:
        return encode_json({"object": "list", "data": [{"id": id, "object": "model"} for id in ids]})


def _last(items: list[JsonObject]) -> LastMessage | None:
    """What a `when` looks at."""
    item = items[-1]
    if item.get("type") in ("function_call_output", "custom_tool_call_output"):
        call_id = item.get("call_id")
        calls = (each for each in items if each.get("call_id") == call_id and "name" in each)
        name = next((str(call["name"]) for call in calls), None)
        return LastMessage(role="toolResult", text=_text(item.get("output")), tool=name)
    return LastMessage(role=str(item.get("role")), text=_text(item.get("content")))


def _text(content: Json) -> str:
    if isinstance(content, str):
        return content
    parts = [part.get("text") for part in cast("list[JsonObject]", content)]
    return "\n".join(part for part in parts if isinstance(part, str))


DIALECT: Dialect = Responses(lambda call, strictness: check_bearer(call.headers, strictness))
