"""Bedrock's ConverseStream as it serves Claude, the strictest of the models behind it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import cast
from urllib.parse import unquote

from cantle_ai.codec import JsonObject, encode_json
from cantle_ai.testing.response import Failure, Noise
from cantle_ai.testing.script import LastMessage
from cantle_ai.testing.server.body import Body, read_body
from cantle_ai.testing.server.dialects.bedrock_converse_stream_frames import event, frame
from cantle_ai.testing.server.dialects.bedrock_converse_stream_playback import ConversePlayback, error_body
from cantle_ai.testing.server.dialects.bedrock_converse_stream_request import check_request
from cantle_ai.testing.server.dialects.port import Asked, Dialect, Play, Playback
from cantle_ai.testing.server.exchange import Call
from cantle_ai.testing.server.prefix import elements, without_marks
from cantle_ai.testing.server.refusal import matching
from cantle_ai.testing.server.strictness import Strictness

__all__ = ["DIALECT", "MARKS"]

MARKS = re.compile(r',?\{"cachePoint":\{[^{}]*\}\}')
_MODEL = r"[a-zA-Z0-9_.:/-]{1,2048}"


class ConverseStream:
    """Requests are held against the rules in `bedrock_converse_stream_request.py` and `…_messages.py`."""

    content_type = "application/vnd.amazon.eventstream"

    def check(self, call: Call, strictness: Strictness) -> Asked:
        body = check_request(call.headers, call.body, strictness)
        model = matching(unquote(call.path.split("/")[-2]), _MODEL, "modelId")
        return Asked(
            body=body,
            model=model,
            head={"system": without_marks(body.raw.get("system", ""), MARKS), "tools": _tools(body)},
            pieces=list(_pieces(body)),
            last=_last(cast("list[JsonObject]", body.values["messages"])),
        )

    def play(self, play: Play) -> Playback:
        return ConversePlayback(play)

    def error(self, failure: Failure, status: int) -> bytes:
        return encode_json(error_body(failure.message, failure.code))

    def noise(self, kind: Noise, play: Play) -> bytes | None:
        match kind:
            case "unknown":
                return event("somethingNew", {"novelty": [1, None]})
            case "garbage":
                headers = {":event-type": "somethingNew", ":message-type": "event"}
                return frame(headers, b'{"cut off in the mid')
            case "empty":
                return event("messageStart", {})
            case _:
                return None

    def models(self, ids: Sequence[str]) -> bytes:
        return encode_json({"modelSummaries": [{"modelId": id} for id in ids]})


def _tools(body: Body) -> str:
    config = body.raw.get("toolConfig", "")
    return without_marks(read_body(config.encode()).raw["tools"], MARKS) if config else ""


def _pieces(body: Body) -> Iterator[str]:
    """A role, then its blocks: what one side says next may stand in the same message."""
    for text in elements(body.raw["messages"]):
        message = read_body(text.encode())
        yield message.raw["role"]
        yield from elements(without_marks(message.raw["content"], MARKS))


def _last(messages: list[JsonObject]) -> LastMessage:
    """What a `when` looks at: the last thing that was said, or the last result."""
    blocks = [
        block for block in cast("list[JsonObject]", messages[-1]["content"]) if "cachePoint" not in block
    ]
    results = [cast("JsonObject", block["toolResult"]) for block in blocks if "toolResult" in block]
    if not results or "text" in blocks[-1]:
        return LastMessage(role="user", text=_text(blocks))
    said = _text(cast("list[JsonObject]", results[-1]["content"]))
    return LastMessage(role="toolResult", text=said, tool=_tool_name(messages, results[-1]["toolUseId"]))


def _text(blocks: list[JsonObject]) -> str:
    return "\n".join(str(block["text"]) for block in blocks if "text" in block)


def _tool_name(messages: list[JsonObject], call_id: object) -> str | None:
    for message in reversed(messages):
        for block in cast("list[dict[str, JsonObject]]", message["content"]):
            if "toolUse" in block and block["toolUse"]["toolUseId"] == call_id:
                return str(block["toolUse"]["name"])
    return None


DIALECT: Dialect = ConverseStream()
