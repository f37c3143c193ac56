"""Puts the events of one Converse stream together.

Each block of the answer has a number of its own. A tool call is announced; text and reasoning begin with their first
piece. The last word is `metadata`, after `messageStop`.
"""

from __future__ import annotations

import os
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Sequence

from cantle_ai.apis.bedrock_converse_errors import error_of_event, is_failure
from cantle_ai.apis.bedrock_converse_events import (
    BlockDelta,
    BlockStart,
    BlockStop,
    Delta,
    Event,
    MessageStop,
    Metadata,
    Reasoning,
    Start,
    ToolUse,
    decode_event,
    events_of_whole,
)
from cantle_ai.apis.http_errors import cut_off
from cantle_ai.apis.http_stream import AnswerReader
from cantle_ai.builder import AnswerBuilder
from cantle_ai.content import ThinkingContent
from cantle_ai.errors import ProviderError
from cantle_ai.messages import StopReason
from cantle_ai.sse import ServerSentEvent

__all__ = ["ConverseReader"]

_ENDS: dict[str, StopReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "toolUse",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}
_REFUSED = {
    "guardrail_intervened": "A guardrail stopped the answer",
    "content_filtered": "The provider's content filter stopped the answer",
    "malformed_model_output": "The model's output was malformed, and the provider ended the answer",
    "malformed_tool_use": "The model's tool call was malformed, and the provider ended the answer",
}
"""Reasons to stop that are failures."""


class ConverseReader:
    """Reads one answer; see :class:`cantle_ai.apis.http_stream.AnswerReader`."""

    def __init__(self, builder: AnswerBuilder) -> None:
        self.empty = True
        self._builder = builder
        self._stop_reason: str | None = None
        self._counted = False
        self._text: dict[int, int] = {}
        self._thinking: dict[int, int] = {}
        self._calls: dict[int, int] = {}
        self._passed_over: set[int] = set()
        self._redacted: dict[int, list[str]] = {}
        self._ids: set[str] = set()

    @property
    def done(self) -> bool:
        return self._counted and self._stop_reason is not None

    @property
    def complete(self) -> bool:
        return self._stop_reason is not None

    def event(self, event: ServerSentEvent) -> None:
        name = event.event
        said = decode_event(name, event.data)
        if said is not None:
            self.empty = False
            self._take(said)
        elif name is not None and is_failure(name):
            raise error_of_event(name, event.data)
        else:
            self.empty = False

    def whole(self, body: bytes) -> None:
        for event in events_of_whole(body):
            self.empty = False
            self._take(event)

    def end(self) -> None:
        raw, builder = self._stop_reason, self._builder
        for place in self._redacted:
            self._join_redacted(place)
        if raw is None:
            raise cut_off("a stop reason")
        builder.message.raw_stop_reason = raw
        if raw in _REFUSED:
            raise ProviderError(_REFUSED[raw], code=raw)
        reason = _ENDS.get(raw, "stop")
        if reason in ("stop", "toolUse"):  # the calls say better than the word
            reason = "toolUse" if self._ids else "stop"
        builder.done(reason, raw=raw)

    def _take(self, event: Event) -> None:
        match event:
            case BlockDelta(index, Delta() as delta):
                if (index or 0) not in self._passed_over:
                    self._delta(index or 0, delta)
            case BlockStart(index, Start(ToolUse() as use)):
                if use.type is None:
                    self._start_call(index or 0, use)
                else:
                    self._passed_over.add(index or 0)  # what the service does by itself is no answer
            case BlockStop(index):
                self._end_block(index or 0)
            case MessageStop(stop_reason):
                self._stop_reason = stop_reason or "end_turn"
            case Metadata(usage):
                self._counted = True
                if usage is not None:
                    self._builder.usage(usage.to_usage())

    def _delta(self, index: int, delta: Delta) -> None:
        if delta.text:
            block = self._text.get(index)
            if block is None:
                block = self._text[index] = self._builder.text_start()
            self._builder.text_delta(block, delta.text)
        elif delta.tool_use is not None:
            if index not in self._calls:
                self._start_call(index, delta.tool_use)  # not announced: a call without a name, which fails
            self._builder.tool_call_delta(self._calls[index], delta.tool_use.input or "")
        elif delta.reasoning_content is not None:
            self._reasoning(index, delta.reasoning_content)

    def _start_call(self, index: int, use: ToolUse) -> None:
        call_id = use.tool_use_id
        if not call_id or call_id in self._ids:
            call_id = f"tooluse_{os.urandom(11).hex()}"
        self._ids.add(call_id)
        self._calls[index] = self._builder.tool_call_start(call_id, use.name or "")

    def _reasoning(self, index: int, said: Reasoning) -> None:
        if not (said.text or said.signature or said.redacted_content):
            return
        place = self._thinking.get(index)
        if place is None:
            redacted = said.redacted_content is not None
            place = self._thinking[index] = self._builder.thinking_start(redacted=redacted)
        self._builder.thinking_delta(place, said.text or "")
        if said.signature:
            block = self._builder.message.content[place]
            assert isinstance(block, ThinkingContent)
            block.signature = (block.signature or "") + said.signature
        if said.redacted_content:
            self._redacted.setdefault(place, []).append(said.redacted_content)

    def _end_block(self, index: int) -> None:
        if (place := self._thinking.get(index)) in self._redacted:
            self._join_redacted(place)
        for blocks in (self._text, self._thinking, self._calls):
            if (block := blocks.pop(index, None)) is not None:
                self._builder.end(block)
                if blocks is self._calls:
                    self._passed_over.add(index)  # what still comes for it would be a call of its own

    def _join_redacted(self, place: int) -> None:
        """Give a block of redacted reasoning its data."""
        block = self._builder.message.content[place]
        assert isinstance(block, ThinkingContent)
        block.signature = _joined(self._redacted[place])


def _joined(pieces: Sequence[str]) -> str:
    """The whole of what came in pieces, each of them Base64 by itself."""
    if len(pieces) == 1:
        return pieces[0]
    try:
        return b64encode(b"".join(b64decode(piece) for piece in pieces)).decode()
    except Base64Error:
        return "".join(pieces)


_reads: type[AnswerReader] = ConverseReader
