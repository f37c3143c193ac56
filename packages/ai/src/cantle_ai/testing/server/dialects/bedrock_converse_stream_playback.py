"""A scripted response as the event stream of ConverseStream."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cantle_ai.codec import Json, JsonObject
from cantle_ai.testing.response import Block, CallBlock, Failure, TextBlock, ThinkingBlock
from cantle_ai.testing.server.dialects.bedrock_converse_stream_frames import event, exception
from cantle_ai.testing.server.dialects.port import Play, Playback

__all__ = ["ConversePlayback", "error_body"]

_STOPS = {"stop": "end_turn", "length": "max_tokens", "toolUse": "tool_use", "deferred": "end_turn"}
_EXCEPTIONS = {
    400: "validationException",
    424: "modelStreamErrorException",
    429: "throttlingException",
    503: "serviceUnavailableException",
}


def error_body(message: str, code: str | None) -> JsonObject:
    """An error as the API words it."""
    return {"message": message} if code is None else {"message": message, "__type": code}


class ConversePlayback:
    """One answer on its way."""

    def __init__(self, play: Play) -> None:
        self._play = play
        self._open: tuple[int, Block] | None = None

    def events(self) -> Iterator[bytes]:
        yield event("messageStart", {"role": "assistant", "p": "abc"})
        for index, block, piece in self._play.deltas():
            if self._open is None or self._open[0] != index:
                yield from self._close()
                self._open = (index, block)
                if isinstance(block, CallBlock):
                    use: JsonObject = {"toolUseId": self._play.call_id(block), "name": block.name}
                    yield event("contentBlockStart", {"contentBlockIndex": index, "start": {"toolUse": use}})
                elif isinstance(block, ThinkingBlock) and block.redacted:
                    yield self._delta(
                        index, {"reasoningContent": {"redactedContent": block.signature or "ZGF0YQ=="}}
                    )
            if piece and not (isinstance(block, ThinkingBlock) and block.redacted):
                yield self._delta(index, _piece(block, piece))

    def ending(self) -> Iterator[bytes]:
        yield from self._close()
        response = self._play.response
        yield event("messageStop", {"stopReason": response.raw_stop_reason or _STOPS[response.reason]})
        yield event("metadata", {"usage": self._usage(), "metrics": {"latencyMs": 1}})

    def failing(self, failure: Failure) -> bytes:
        code = failure.code if failure.code and failure.code.endswith("Exception") else None
        name = code or _EXCEPTIONS.get(failure.status or 500, "internalServerException")
        return exception(name, {"message": failure.message})

    def _usage(self) -> JsonObject:
        count = self._play.usage()
        ttl = re.search(r'"ttl": ?"(\w+)"', "".join(self._play.asked.body.raw.values()))
        written: list[Json] = [{"ttl": ttl[1] if ttl else "5m", "inputTokens": count.cache_write}]
        return {
            "inputTokens": count.input,
            "outputTokens": count.output,
            "totalTokens": count.input + count.output + count.cache_read + count.cache_write,
            "cacheReadInputTokens": count.cache_read,
            "cacheWriteInputTokens": count.cache_write,
            "cacheDetails": written if count.cache_write else [],
        }

    def _close(self) -> Iterator[bytes]:
        if self._open is None:
            return
        index, block = self._open
        self._open = None
        if isinstance(block, ThinkingBlock) and block.signature is not None and not block.redacted:
            yield self._delta(index, {"reasoningContent": {"signature": block.signature}})
        yield event("contentBlockStop", {"contentBlockIndex": index})

    def _delta(self, index: int, delta: JsonObject) -> bytes:
        return event("contentBlockDelta", {"contentBlockIndex": index, "delta": delta, "p": "abcdefgh"})


def _piece(block: Block, piece: str) -> JsonObject:
    match block:
        case TextBlock():
            return {"text": piece}
        case ThinkingBlock():
            return {"reasoningContent": {"text": piece}}
        case CallBlock():
            return {"toolUse": {"input": piece}}


def _proves(play: Play) -> Playback:
    return ConversePlayback(play)
