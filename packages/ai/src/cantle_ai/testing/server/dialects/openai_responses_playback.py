"""A scripted response as the server-sent events of the Responses API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count

from cantle_ai.codec import JsonObject
from cantle_ai.testing.response import Block, CallBlock, Failure, TextBlock, ThinkingBlock
from cantle_ai.testing.server.dialects.port import Play, Playback

__all__ = ["ResponsePlayback"]

_STATUS = {
    "stop": "completed",
    "length": "incomplete.max_output_tokens",
    "toolUse": "completed",
    "deferred": "completed",
}


class ResponsePlayback:
    """One answer on its way. Each block is an item, of its own place and id."""

    def __init__(self, play: Play) -> None:
        self._play = play
        self._numbers = count()
        self._output: list[JsonObject] = []
        self._item: JsonObject = {}
        self._block: tuple[int, Block] | None = None
        self._pieces: list[str] = []
        self._unique = _unique(play)

    def events(self) -> Iterator[bytes]:
        yield self._event("response.created", response=self._response("in_progress"))
        yield self._event("response.in_progress", response=self._response("in_progress"))
        for index, block, piece in self._play.deltas():
            if self._block is None or self._block[0] != index:
                yield from self._close()
                yield from self._open(index, block)
            if piece and not (isinstance(block, ThinkingBlock) and block.redacted):
                self._pieces.append(piece)
                yield self._delta(block, piece)

    def ending(self) -> Iterator[bytes]:
        yield from self._close()
        response = self._play.response
        status, _, reason = (response.raw_stop_reason or _STATUS[response.reason]).partition(".")
        fields: JsonObject = {"usage": self._usage(), "service_tier": "default"}
        if reason:
            fields["incomplete_details"] = {"reason": reason}
        yield self._event(f"response.{status}", response=self._response(status, **fields))

    def failing(self, failure: Failure) -> bytes:
        code = failure.code or "server_error"
        return self._event("error", code=code, message=failure.message, param=None)

    # --- items

    def _open(self, index: int, block: Block) -> Iterator[bytes]:
        self._block = (index, block)
        self._pieces = []
        match block:
            case TextBlock():
                self._item = {
                    "type": "message",
                    "id": self._id("msg"),
                    "status": "in_progress",
                    "role": "assistant",
                    "content": [],
                }
                yield self._event("response.output_item.added", **self._place(), item=self._item)
                yield self._part(
                    "response.content_part.added", {"type": "output_text", "text": "", "annotations": []}
                )
            case ThinkingBlock():
                self._item = {"type": "reasoning", "id": self._id("rs"), "summary": []}
                # What is encrypted so far is not yet the whole of it.
                yield self._event(
                    "response.output_item.added",
                    **self._place(),
                    item={**self._item, "encrypted_content": "x"},
                )
                if not block.redacted:
                    yield self._summary("response.reasoning_summary_part.added", "")
            case CallBlock():
                self._item = {
                    "type": "function_call",
                    "id": self._id("fc"),
                    "status": "in_progress",
                    "call_id": self._play.call_id(block),
                    "name": block.name,
                    "arguments": "",
                }
                yield self._event("response.output_item.added", **self._place(), item=self._item)

    def _delta(self, block: Block, piece: str) -> bytes:
        at = {"item_id": self._item["id"], **self._place()}
        match block:
            case TextBlock():
                return self._event(
                    "response.output_text.delta", **at, content_index=0, delta=piece, logprobs=[]
                )
            case ThinkingBlock():
                return self._event(
                    "response.reasoning_summary_text.delta", **at, summary_index=0, delta=piece
                )
            case CallBlock():
                return self._event("response.function_call_arguments.delta", **at, delta=piece)

    def _close(self) -> Iterator[bytes]:
        if self._block is None:
            return
        block, text = self._block[1], "".join(self._pieces)
        at = {"item_id": self._item["id"], **self._place()}
        match block:
            case TextBlock():
                part: JsonObject = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
                yield self._event("response.output_text.done", **at, content_index=0, text=text, logprobs=[])
                yield self._part("response.content_part.done", part)
                self._item = {**self._item, "status": "completed", "content": [part]}
            case ThinkingBlock():
                summary: JsonObject = {"type": "summary_text", "text": text}
                if not block.redacted:
                    yield self._event(
                        "response.reasoning_summary_text.done", **at, summary_index=0, text=text
                    )
                    yield self._summary("response.reasoning_summary_part.done", text)
                self._item = {
                    **self._item,
                    "summary": [] if block.redacted else [summary],
                    "encrypted_content": block.signature or f"enc-{self._item['id']}",
                }
            case CallBlock():
                yield self._event(
                    "response.function_call_arguments.done", **at, name=block.name, arguments=text
                )
                self._item = {**self._item, "status": "completed", "arguments": text}
        yield self._event("response.output_item.done", **self._place(), item=self._item)
        self._output.append(self._item)
        self._block = None

    def _id(self, kind: str) -> str:
        return f"{kind}_{self._unique}{len(self._output)}"

    def _place(self) -> JsonObject:
        return {"output_index": len(self._output)}

    def _part(self, name: str, part: JsonObject) -> bytes:
        return self._event(name, item_id=self._item["id"], **self._place(), content_index=0, part=part)

    def _summary(self, name: str, text: str) -> bytes:
        part: JsonObject = {"type": "summary_text", "text": text}
        return self._event(name, item_id=self._item["id"], **self._place(), summary_index=0, part=part)

    # --- the response

    def _response(self, status: str, **more: object) -> JsonObject:
        response: JsonObject = {
            "id": f"resp_{self._unique}",
            "object": "response",
            "created_at": 1_700_000_000,
            "status": status,
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "max_output_tokens": None,
            "model": self._play.asked.model,
            "output": [*self._output],
            "parallel_tool_calls": True,
            "previous_response_id": None,
            "reasoning": {"effort": None, "summary": None},
            "store": False,
            "temperature": 1.0,
            "text": {"format": {"type": "text"}},
            "tool_choice": "auto",
            "tools": [],
            "top_p": 1.0,
            "truncation": "disabled",
            "usage": None,
            "metadata": {},
        }
        return {**response, **more}  # type: ignore[dict-item]

    def _usage(self) -> JsonObject:
        used = self._play.usage()
        entered = used.input + used.cache_read + used.cache_write
        return {
            "input_tokens": entered,
            "input_tokens_details": {
                "cached_tokens": used.cache_read,
                "cache_write_tokens": used.cache_write,
            },
            "output_tokens": used.output,
            "output_tokens_details": {"reasoning_tokens": used.reasoning or 0},
            "total_tokens": entered + used.output,
        }

    def _event(self, type: str, /, **fields: object) -> bytes:
        newline = self._play.newline
        value = {"type": type, "sequence_number": next(self._numbers), **fields}
        data = json.dumps(value, separators=(",", ":"))
        return f"event: {type}{newline}data: {data}{newline}{newline}".encode("utf-8", "surrogatepass")


def _unique(play: Play) -> str:
    """What ids end with: the same for the same request, and not what an item of it has already."""
    said, number = play.asked.body.raw["input"], len(play.asked.pieces)
    while f"_scripted{number}x" in said:
        number += 1
    return f"scripted{number}x"


def _proves(play: Play) -> Playback:
    return ResponsePlayback(play)
