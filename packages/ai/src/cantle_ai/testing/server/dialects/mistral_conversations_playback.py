"""A scripted response as the server-sent events of Mistral's chat API."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from hashlib import sha256

from cantle_ai.codec import Json, JsonObject
from cantle_ai.testing.response import Block, CallBlock, Failure, TextBlock, ThinkingBlock
from cantle_ai.testing.server.dialects.mistral_conversations_messages import CALL_ID
from cantle_ai.testing.server.dialects.port import Play, Playback

__all__ = ["MistralPlayback", "error_body"]

_KINDS = {401: "unauthorized", 403: "forbidden", 404: "not_found", 429: "rate_limited"}
_FINISH = {"stop": "stop", "length": "length", "toolUse": "tool_calls", "deferred": "stop"}


def error_body(message: str, code: str | None, status: int | None) -> JsonObject:
    """An error as the API words it: flat, with a code that is a number as text."""
    kind = _KINDS.get(
        status or 500, "invalid_request_error" if (status or 500) < 500 else "internal_server_error"
    )
    return {"object": "error", "message": message, "type": kind, "param": None, "code": code}


class MistralPlayback:
    """One answer on its way."""

    def __init__(self, play: Play) -> None:
        self._play = play
        self._open: Block | None = None

    def events(self) -> Iterator[bytes]:
        yield self._choice({"role": "assistant", "content": ""})
        place, calls = -1, -1
        for index, block, piece in self._play.deltas():
            begins = index != place
            if begins:
                yield from self._close()
            place, self._open = index, block
            match block:
                case TextBlock():
                    if piece:
                        yield self._choice({"content": piece})
                case ThinkingBlock():
                    yield self._choice({"content": [_thought(piece)]})
                case CallBlock():
                    calls += begins
                    yield self._choice(
                        {"content": "", "tool_calls": [self._call(block, calls, piece, begins)]}
                    )

    def ending(self) -> Iterator[bytes]:
        yield from self._close()
        response = self._play.response
        finish = response.raw_stop_reason or _FINISH[response.reason]
        yield self._choice({"content": ""}, finish, usage=self._usage())
        yield self._line("[DONE]")

    def failing(self, failure: Failure) -> bytes:
        return self._line(json.dumps(error_body(failure.message, failure.code, failure.status)))

    def _close(self) -> Iterator[bytes]:
        """What ends a block: thinking is signed at its end."""
        block, self._open = self._open, None
        if isinstance(block, ThinkingBlock) and block.signature is not None:
            yield self._choice({"content": [{**_thought(""), "signature": block.signature}]})

    def _call(self, block: CallBlock, number: int, piece: str, begins: bool) -> JsonObject:
        """A piece of a call. What follows the first is known by its index, and has the word `null` as its id."""
        function: JsonObject = {"name": block.name if begins else "", "arguments": piece}
        call_id = _own_id(self._play.call_id(block)) if begins else "null"
        return {"index": number, "id": call_id, "type": "function", "function": function}

    def _choice(self, delta: JsonObject, finish: str | None = None, **more: Json) -> bytes:
        choice: Json = {"index": 0, "delta": delta, "finish_reason": finish}
        chunk: JsonObject = {
            "id": "cmpl-scripted",
            "object": "chat.completion.chunk",
            "created": 1_700_000_000,
            "model": self._play.asked.model,
            "choices": [choice],
            **more,
        }
        return self._line(json.dumps(chunk, separators=(",", ":")))

    def _usage(self) -> JsonObject:
        count = self._play.usage()
        sent = count.input + count.cache_read + count.cache_write
        return {
            "prompt_tokens": sent,
            "completion_tokens": count.output,
            "total_tokens": sent + count.output,
            "prompt_tokens_details": {"cached_tokens": count.cache_read},
        }

    def _line(self, data: str) -> bytes:
        newline = self._play.newline
        return f"data: {data}{newline}{newline}".encode("utf-8", "surrogatepass")


def _own_id(call_id: str) -> str:
    """The id as Mistral would have made it: nine letters and digits, for the same id the same."""
    if re.fullmatch(CALL_ID, call_id):
        return call_id
    return sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:9]


def _thought(text: str) -> JsonObject:
    pieces: list[Json] = [{"type": "text", "text": text}]
    return {"type": "thinking", "thinking": pieces}


def _proves(play: Play) -> Playback:
    return MistralPlayback(play)
