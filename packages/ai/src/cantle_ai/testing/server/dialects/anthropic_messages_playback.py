"""A scripted response as the server-sent events of the Messages API."""

from __future__ import annotations

import json
from collections.abc import Iterator

from cantle_ai.codec import JsonObject
from cantle_ai.testing.response import Block, CallBlock, Failure, TextBlock, ThinkingBlock
from cantle_ai.testing.server.dialects.port import Play, Playback

__all__ = ["MessagePlayback", "error_body"]

_STOPS = {"stop": "end_turn", "length": "max_tokens", "toolUse": "tool_use", "deferred": "pause_turn"}
_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def error_body(message: str, code: str | None, status: int | None) -> JsonObject:
    """An error as the API words it."""
    kind = code or _ERRORS.get(500 if status is None else status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_scripted"}


class MessagePlayback:
    """One answer on its way."""

    def __init__(self, play: Play) -> None:
        self._play = play
        self._open: tuple[int, Block] | None = None

    def events(self) -> Iterator[bytes]:
        yield self._event("message_start", message=self._head())
        yield self._event("ping")
        for index, block, piece in self._play.deltas():
            if self._open is None or self._open[0] != index:
                yield from self._close()
                self._open = (index, block)
                yield self._event("content_block_start", index=index, content_block=self._start(block))
                if isinstance(block, CallBlock):
                    yield self._delta(index, {"type": "input_json_delta", "partial_json": ""})
            if piece and not (isinstance(block, ThinkingBlock) and block.redacted):
                yield self._delta(index, _piece(block, piece))

    def ending(self) -> Iterator[bytes]:
        yield from self._close()
        response = self._play.response
        count = self._play.usage()
        usage: JsonObject = {**self._prompt(), "output_tokens": count.output}
        if count.reasoning is not None:
            usage["output_tokens_details"] = {"thinking_tokens": count.reasoning}
        reason = response.raw_stop_reason or _STOPS[response.reason]
        delta: JsonObject = {"stop_reason": reason, "stop_sequence": None}
        if reason == "refusal":
            delta["stop_details"] = {"type": "refusal", "category": None, "explanation": None}
        yield self._event("message_delta", delta=delta, usage=usage)
        yield self._event("message_stop")

    def failing(self, failure: Failure) -> bytes:
        return self._line("error", error_body(failure.message, failure.code, failure.status))

    def _head(self) -> JsonObject:
        hour = '"ttl":"1h"' in "".join(self._play.asked.body.raw.values()).replace(" ", "")
        written = self._play.usage().cache_write
        creation: JsonObject = {
            "ephemeral_5m_input_tokens": 0 if hour else written,
            "ephemeral_1h_input_tokens": written if hour else 0,
        }
        return {
            "id": "msg_scripted",
            "type": "message",
            "role": "assistant",
            "model": self._play.asked.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {**self._prompt(), "cache_creation": creation, "output_tokens": 1},
        }

    def _prompt(self) -> JsonObject:
        count = self._play.usage()
        return {
            "input_tokens": count.input,
            "cache_read_input_tokens": count.cache_read,
            "cache_creation_input_tokens": count.cache_write,
        }

    def _start(self, block: Block) -> JsonObject:
        match block:
            case TextBlock():
                return {"type": "text", "text": ""}
            case ThinkingBlock(redacted=True):
                return {"type": "redacted_thinking", "data": block.signature or "ZGF0YQ=="}
            case ThinkingBlock():
                return {"type": "thinking", "thinking": "", "signature": ""}
            case CallBlock():
                return {"type": "tool_use", "id": self._play.call_id(block), "name": block.name, "input": {}}

    def _close(self) -> Iterator[bytes]:
        if self._open is None:
            return
        index, block = self._open
        self._open = None
        if isinstance(block, ThinkingBlock) and block.signature is not None and not block.redacted:
            yield self._delta(index, {"type": "signature_delta", "signature": block.signature})
        yield self._event("content_block_stop", index=index)

    def _delta(self, index: int, delta: JsonObject) -> bytes:
        return self._event("content_block_delta", index=index, delta=delta)

    def _event(self, name: str, **fields: object) -> bytes:
        return self._line(name, {"type": name, **fields})

    def _line(self, name: str, value: object) -> bytes:
        newline = self._play.newline
        data = json.dumps(value, separators=(",", ":"))
        return f"event: {name}{newline}data: {data}{newline}{newline}".encode("utf-8", "surrogatepass")


def _piece(block: Block, piece: str) -> JsonObject:
    match block:
        case TextBlock():
            return {"type": "text_delta", "text": piece}
        case ThinkingBlock():
            return {"type": "thinking_delta", "thinking": piece}
        case CallBlock():
            return {"type": "input_json_delta", "partial_json": piece}


def _proves(play: Play) -> Playback:
    return MessagePlayback(play)
