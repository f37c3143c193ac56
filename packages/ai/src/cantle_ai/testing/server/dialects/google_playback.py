"""A scripted response as the server-sent events of `streamGenerateContent`."""

from __future__ import annotations

import json
from collections.abc import Iterator

from cantle_ai.codec import Json, JsonObject
from cantle_ai.testing.playback import block_text
from cantle_ai.testing.response import CallBlock, Failure, TextBlock, ThinkingBlock
from cantle_ai.testing.server.dialects.port import Play, Playback

__all__ = ["GooglePlayback", "error_body"]

_FINISH = {"stop": "STOP", "length": "MAX_TOKENS", "toolUse": "STOP", "deferred": "STOP"}
_WORDS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


def error_body(failure: Failure, status: int) -> JsonObject:
    """An error as the API words it."""
    word = failure.code if failure.code is not None else _WORDS.get(status, "UNKNOWN")
    return {"error": {"code": status, "message": failure.message, "status": word}}


class GooglePlayback:
    """One answer on its way. A call comes whole, everything else in pieces."""

    def __init__(self, play: Play) -> None:
        self._play = play

    def events(self) -> Iterator[bytes]:
        place, said, length = -1, "", 0
        blocks = self._play.response.blocks
        for index, block, piece in self._play.deltas():
            if index != place:
                place, said, length = index, "", len(block_text(block))
            said += piece
            whole = len(said) == length
            match block:
                case CallBlock():
                    if whole:
                        yield self._parts([self._call(block, said)])
                case TextBlock():
                    if piece:
                        yield self._parts([{"text": piece}])
                    if whole and block.signature is not None:
                        yield self._parts([{"text": "", "thoughtSignature": block.signature}])
                case ThinkingBlock():
                    if piece:
                        yield self._parts([{"text": piece, "thought": True}])
                    if whole and block.signature is not None:
                        yield self._parts(
                            [{"text": "", "thought": True, "thoughtSignature": block.signature}]
                        )
        if not blocks:
            yield self._parts([])

    def ending(self) -> Iterator[bytes]:
        response = self._play.response
        finish = response.raw_stop_reason or _FINISH[response.reason]
        yield self._parts([], finish)

    def failing(self, failure: Failure) -> bytes:
        return self._event(error_body(failure, failure.status or 500))

    def _call(self, block: CallBlock, text: str) -> JsonObject:
        """A call. Arguments that are no object come as the text that the model wrote."""
        try:
            arguments: Json = json.loads(text) if text.strip() else {}
        except ValueError:
            arguments = text
        call: JsonObject = {"name": block.name, "args": arguments, "id": self._play.call_id(block)}
        part: JsonObject = {"functionCall": call}
        if block.signature is not None:
            part["thoughtSignature"] = block.signature
        return part

    def _parts(self, parts: list[Json], finish: str | None = None) -> bytes:
        content: JsonObject = {"parts": parts, "role": "model"} if parts else {"role": "model"}
        candidate: JsonObject = {"content": content, "index": 0}
        if finish is not None:
            candidate["finishReason"] = finish
        return self._event(
            {
                "candidates": [candidate],
                "usageMetadata": self._usage(),
                "modelVersion": self._play.asked.model,
                "responseId": "scripted-response",
            }
        )

    def _usage(self) -> JsonObject:
        count = self._play.usage()
        thought = count.reasoning or 0
        usage: JsonObject = {
            "promptTokenCount": count.input + count.cache_read,
            "candidatesTokenCount": count.output - thought,
            "totalTokenCount": count.input + count.cache_read + count.output,
        }
        if count.cache_read:
            usage["cachedContentTokenCount"] = count.cache_read
        if thought:
            usage["thoughtsTokenCount"] = thought
        return usage

    def _event(self, fields: JsonObject) -> bytes:
        newline = self._play.newline
        data = json.dumps(fields, separators=(",", ":"))
        return f"data: {data}{newline}{newline}".encode("utf-8", "surrogatepass")


def _proves(play: Play) -> Playback:
    return GooglePlayback(play)
