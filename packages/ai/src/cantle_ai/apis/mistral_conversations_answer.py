"""Puts the chunks of one answer of Mistral's chat API together.

Content is text, or a list of parts of which some are thinking. What is of one kind and follows each other is one
block, so that an answer which thinks again between two texts is replayed in the order in which it came. Tool calls
come whole or in pieces, told apart by their `index` and `id`, and where those are missing by names and by arguments
that are complete.
"""

from __future__ import annotations

import os

from cantle_ai.apis.chunk_reader import read_chunk
from cantle_ai.apis.http_errors import cut_off
from cantle_ai.apis.http_stream import AnswerReader
from cantle_ai.apis.mistral_conversations_chunks import (
    Chunk,
    Delta,
    Part,
    ToolCallDelta,
    decode_chunk,
    thought_of,
)
from cantle_ai.apis.new_call_ids import NewCallIds
from cantle_ai.builder import AnswerBuilder
from cantle_ai.codec import decode_json, wire_json
from cantle_ai.content import ThinkingContent, ToolCall
from cantle_ai.context import Context
from cantle_ai.errors import ProviderError
from cantle_ai.messages import StopReason
from cantle_ai.sse import ServerSentEvent

__all__ = ["MistralReader"]

_ENDS: dict[str, StopReason] = {
    "stop": "stop",
    "tool_calls": "toolUse",
    "length": "length",
    "model_length": "length",
}
_REFUSED = {
    "content_filter": "The provider's content filter stopped the answer",
    "error": "The provider ended the answer with an error",
}
_NO_ID = (None, "", "null")
"""What stands where a call's id is not said. The word `null` is what Mistral's own types take as the default."""
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


class _Call:
    """A tool call that is being received."""

    __slots__ = ("block", "id", "index", "name")

    def __init__(self, index: int | None, call_id: str | None, name: str, block: int) -> None:
        self.index = index
        self.id = call_id
        self.name = name
        self.block = block


class MistralReader:
    """Reads one answer; see :class:`cantle_ai.apis.http_stream.AnswerReader`."""

    def __init__(self, builder: AnswerBuilder, requested_model: str, context: Context) -> None:
        """`context` is what was asked: a call whose id is in it already gets another."""
        self.done = False
        self.empty = True
        self._finish_reason: str | None = None
        self._builder = builder
        self._requested_model = requested_model
        self._ids = NewCallIds(context, _random_id)
        self._block = -1
        self._thinks = False
        self._signed: str | None = None
        self._calls: list[_Call] = []

    def event(self, event: ServerSentEvent) -> None:
        if read_chunk(event, decode_chunk, self._add):
            self.done = True

    def whole(self, body: bytes) -> None:
        self.event(ServerSentEvent(None, body))

    @property
    def complete(self) -> bool:
        return self._finish_reason is not None

    def end(self) -> None:
        raw, builder = self._finish_reason, self._builder
        if raw is None:
            raise cut_off("a finish reason")
        builder.message.raw_stop_reason = raw
        if raw in _REFUSED:
            raise ProviderError(_REFUSED[raw], code=raw)
        reason = _ENDS.get(raw, "stop")
        if reason in ("stop", "toolUse"):  # the calls say better than the word, which some servers get wrong
            reason = "toolUse" if self._calls else "stop"
        builder.done(reason, raw=raw)

    def _add(self, chunk: Chunk) -> None:
        message = self._builder.message
        if message.response_id is None and chunk.id:
            message.response_id = chunk.id
        if message.response_model is None and chunk.model and chunk.model != self._requested_model:
            message.response_model = chunk.model
        for choice in chunk.choices or ():
            if choice is None:
                continue
            self.empty = False
            delta = choice.delta if choice.delta is not None else choice.message
            if delta is not None:
                self._delta(delta)
            if choice.finish_reason:
                self._finish_reason = choice.finish_reason
        if chunk.usage is not None:
            self._builder.usage(chunk.usage.to_usage())

    def _delta(self, delta: Delta) -> None:
        content = delta.content
        if content:
            if isinstance(content, str):
                self._text(content)
            else:
                for part in content:
                    if part is not None:
                        self._part(part)
        for call in delta.tool_calls or ():
            if call is not None:
                self._call(call)

    def _part(self, part: Part) -> None:
        if part.type == "thinking" or (part.type is None and part.thinking is not None):
            self._think(thought_of(part), part.signature)
        elif part.text:
            self._text(part.text)

    def _text(self, text: str) -> None:
        if self._block < 0 or self._thinks:
            self._close_block()
            self._block, self._thinks = self._builder.text_start(), False
        self._builder.text_delta(self._block, text)

    def _think(self, thought: str, signature: str | None) -> None:
        if not thought and not signature:
            return
        if self._block < 0 or not self._thinks or self._signed not in (None, signature):
            self._close_block()
            self._block, self._thinks, self._signed = self._builder.thinking_start(), True, None
        self._builder.thinking_delta(self._block, thought)
        if signature:  # what comes after it is another thought
            self._signed = signature
            block = self._builder.message.content[self._block]
            assert isinstance(block, ThinkingContent)
            block.signature = signature

    def _close_block(self) -> None:
        """End the block before: what follows never returns to it."""
        if self._block >= 0:
            self._builder.end(self._block)
            self._block = -1

    def _call(self, delta: ToolCallDelta) -> None:
        function = delta.function
        name = function.name if function is not None and function.name else ""
        given = function.arguments if function is not None else None
        arguments = wire_json(given).decode() if isinstance(given, dict) else given
        call = self._find(delta, name)
        if call is None or (name and arguments and arguments[0] == "{" and self._is_whole(call)):
            said = None if delta.id in _NO_ID else delta.id
            if not (said or name or arguments):
                return
            self._close_block()
            block = self._builder.tool_call_start(self._ids.of(said), name)
            call = _Call(delta.index, said, name, block)
            self._calls.append(call)
        if arguments:
            self._builder.tool_call_delta(call.block, arguments)

    def _is_whole(self, call: _Call) -> bool:
        """Whether the arguments of a call are complete, so that more of them can only be those of another one."""
        block = self._builder.message.content[call.block]
        assert isinstance(block, ToolCall)
        try:
            return isinstance(decode_json(block.arguments_text), dict)
        except ValueError:
            return False

    def _find(self, delta: ToolCallDelta, name: str) -> _Call | None:
        """The call that this piece belongs to; None for a new one.

        The index alone does not tell: several calls of one answer come with the index 0.
        """
        said = None if delta.id in _NO_ID else delta.id
        newest = self._calls[-1] if self._calls else None
        if newest is not None and not name:  # as for nearly all pieces
            if newest.id == said if said is not None else delta.index in (None, newest.index):
                return newest
        if said is not None:
            return next((call for call in self._calls if call.id == said), None)
        last = next((call for call in reversed(self._calls) if delta.index in (None, call.index)), None)
        return None if last is not None and name and name != last.name else last


def _random_id() -> str:
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in os.urandom(9))


_reads: type[AnswerReader] = MistralReader
