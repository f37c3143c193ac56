"""A scripted response as the server-sent events of the chat-completions API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random

from msgspec import Struct

from cantle_ai.codec import Json, JsonObject
from cantle_ai.testing.estimate import CHARACTERS, tokens
from cantle_ai.testing.playback import call_id, deltas
from cantle_ai.testing.response import Block, CallBlock, Chunk, Failure, Response, TextBlock, ThinkingBlock

__all__ = ["ChatPlayback", "error_body"]

_FINISH = {"stop": "stop", "length": "length", "toolUse": "tool_calls", "deferred": "stop"}


def error_body(message: str, code: str | None, status: int | None) -> JsonObject:
    """An error as the API words it."""
    kind = "server_error" if status is None or status >= 500 else "invalid_request_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


class ChatPlayback(Struct, kw_only=True):
    """One answer on its way. `prompt` and `cached` are characters of the request, for the usage."""

    response: Response
    model: str
    random: Random
    chunk: Chunk
    prompt: int
    cached: int
    with_usage: bool
    newline: str = "\n"
    said: int = 0
    thought: int = 0

    def events(self) -> Iterator[bytes]:
        """One delta at a time, up to the response's fault."""
        first: JsonObject = {"role": "assistant", "content": ""}
        if self.response.blocks and isinstance(self.response.blocks[0], CallBlock):
            first["content"] = None
        yield self._choice(first)
        place, calls = -1, -1
        for index, block, piece in deltas(self.response, self.chunk, self.random):
            if isinstance(block, CallBlock) and index != place:
                calls += 1
                yield self._choice({"tool_calls": [self._call(block, calls)]})
            place = index
            if piece:
                yield self._choice(self._delta(block, piece, calls))

    def ending(self) -> Iterator[bytes]:
        """The finish reason, the usage if it was asked for, and the end mark."""
        response = self.response
        yield self._choice({}, response.raw_stop_reason or _FINISH[response.reason])
        if self.with_usage:
            yield self._event({"choices": [], "usage": self._usage()})
        yield self._line("[DONE]")

    def failing(self, failure: Failure) -> bytes:
        """A failure inside the stream."""
        return self._line(json.dumps(error_body(failure.message, failure.code, failure.status)))

    def _call(self, block: CallBlock, number: int) -> JsonObject:
        function: JsonObject = {"name": block.name, "arguments": ""}
        return {"index": number, "id": call_id(block, self.random), "type": "function", "function": function}

    def _delta(self, block: Block, piece: str, call: int) -> JsonObject:
        match block:
            case TextBlock():
                self.said += len(piece)
                return {"content": piece}
            case ThinkingBlock():
                self.thought += len(piece)
                return {"reasoning_content": piece}
            case _:
                self.said += len(piece)
                return {"tool_calls": [{"index": call, "function": {"arguments": piece}}]}

    def _choice(self, delta: JsonObject, finish: str | None = None) -> bytes:
        choice: Json = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return self._event({"choices": [choice]})

    def _usage(self) -> JsonObject:
        given = self.response.usage
        sent, cached = tokens(self.prompt), self.cached // CHARACTERS
        output, reasoning = tokens(self.said + self.thought), tokens(self.thought)
        if given is not None:
            sent, cached = given.input + given.cache_read + given.cache_write, given.cache_read
            output, reasoning = given.output, given.reasoning or 0
        return {
            "prompt_tokens": sent,
            "completion_tokens": output,
            "total_tokens": sent + output,
            "prompt_tokens_details": {"cached_tokens": cached},
            "completion_tokens_details": {"reasoning_tokens": reasoning},
        }

    def _event(self, fields: JsonObject) -> bytes:
        head: JsonObject = {
            "id": "chatcmpl-scripted",
            "object": "chat.completion.chunk",
            "created": 1_700_000_000,
        }
        return self._line(json.dumps({**head, "model": self.model, **fields}, separators=(",", ":")))

    def _line(self, data: str) -> bytes:
        return f"data: {data}{self.newline}{self.newline}".encode("utf-8", "surrogatepass")
