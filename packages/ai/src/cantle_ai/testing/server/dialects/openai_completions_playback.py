"""A scripted response as the server-sent events of the chat-completions API."""

from __future__ import annotations

import json
from collections.abc import Iterator

from cantle_ai.codec import Json, JsonObject
from cantle_ai.testing.response import Block, CallBlock, Failure, TextBlock, ThinkingBlock
from cantle_ai.testing.server.dialects.openai_errors import error_body
from cantle_ai.testing.server.dialects.port import Play, Playback

__all__ = ["ChatPlayback"]

_FINISH = {"stop": "stop", "length": "length", "toolUse": "tool_calls", "deferred": "stop"}


class ChatPlayback:
    """One answer on its way."""

    def __init__(self, play: Play) -> None:
        self._play = play
        options = play.asked.body.values.get("stream_options")
        self._with_usage = isinstance(options, dict) and options.get("include_usage") is True

    def events(self) -> Iterator[bytes]:
        blocks = self._play.response.blocks
        first: JsonObject = {"role": "assistant", "content": ""}
        if blocks and isinstance(blocks[0], CallBlock):
            first["content"] = None
        yield self._choice(first)
        place, calls = -1, -1
        for index, block, piece in self._play.deltas():
            if isinstance(block, CallBlock) and index != place:
                calls += 1
                yield self._choice({"tool_calls": [self._call(block, calls)]})
            place = index
            if piece:
                yield self._choice(_delta(block, piece, calls))

    def ending(self) -> Iterator[bytes]:
        response = self._play.response
        yield self._choice({}, response.raw_stop_reason or _FINISH[response.reason])
        if self._with_usage:
            yield self._event({"choices": [], "usage": self._usage()})
        yield self.line("[DONE]")

    def failing(self, failure: Failure) -> bytes:
        return self.line(json.dumps(error_body(failure.message, failure.code, failure.status)))

    def line(self, data: str) -> bytes:
        """One event."""
        newline = self._play.newline
        return f"data: {data}{newline}{newline}".encode("utf-8", "surrogatepass")

    def _call(self, block: CallBlock, number: int) -> JsonObject:
        function: JsonObject = {"name": block.name, "arguments": ""}
        return {"index": number, "id": self._play.call_id(block), "type": "function", "function": function}

    def _choice(self, delta: JsonObject, finish: str | None = None) -> bytes:
        choice: Json = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return self._event({"choices": [choice]})

    def _usage(self) -> JsonObject:
        count = self._play.usage()
        sent = count.input + count.cache_read + count.cache_write
        return {
            "prompt_tokens": sent,
            "completion_tokens": count.output,
            "total_tokens": sent + count.output,
            "prompt_tokens_details": {"cached_tokens": count.cache_read},
            "completion_tokens_details": {"reasoning_tokens": count.reasoning or 0},
        }

    def _event(self, fields: JsonObject) -> bytes:
        head: JsonObject = {
            "id": "chatcmpl-scripted",
            "object": "chat.completion.chunk",
            "created": 1_700_000_000,
            "model": self._play.asked.model,
        }
        return self.line(json.dumps({**head, **fields}, separators=(",", ":")))


def _delta(block: Block, piece: str, call: int) -> JsonObject:
    match block:
        case TextBlock():
            return {"content": piece}
        case ThinkingBlock():
            return {"reasoning_content": piece}
        case _:
            return {"tool_calls": [{"index": call, "function": {"arguments": piece}}]}


def _proves(play: Play) -> Playback:
    return ChatPlayback(play)
