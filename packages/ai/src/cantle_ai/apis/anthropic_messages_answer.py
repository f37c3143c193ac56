"""Puts the events of one Messages answer together.

Each block has an index, a start, deltas and a stop; blocks may grow by turns. Proxies leave out starts and stops
and add events of their own: a delta whose block did not start begins one, and an event that is not known is
passed over, whatever it holds.
"""

from __future__ import annotations

from functools import partial

from cantle_ai.apis.anthropic_messages_events import (
    Block,
    Counts,
    Delta,
    Event,
    MessageHead,
    decode_event,
    decode_message,
)
from cantle_ai.apis.http_errors import cut_off, error_from_json
from cantle_ai.apis.http_stream import AnswerReader
from cantle_ai.apis.new_call_ids import NewCallIds, random_id
from cantle_ai.builder import AnswerBuilder
from cantle_ai.codec import Json, encode_json
from cantle_ai.content import ThinkingContent
from cantle_ai.context import Context
from cantle_ai.errors import ProviderError
from cantle_ai.messages import StopReason
from cantle_ai.sse import ServerSentEvent

__all__ = ["MessageReader"]

_EVENTS = frozenset(
    {
        None,
        "message",
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "error",
    }
)
"""Names of events that are read. `message` is what an event without a name is called."""
_LENGTH = ("max_tokens", "model_context_window_exceeded")
_REFUSED = {
    "refusal": "The model refused to answer",
    "sensitive": "The provider's content filter stopped the answer",
}
"""Reasons to stop that are failures."""


class _Growing:
    """A block that is being received."""

    __slots__ = ("input", "kind", "place")

    def __init__(self, kind: str, place: int, input: Json = None) -> None:
        self.kind = kind
        self.place = place
        self.input = input
        """The arguments of a call that came with its start; nothing once they come in pieces."""


class MessageReader:
    """Reads one answer; see :class:`cantle_ai.apis.http_stream.AnswerReader`."""

    def __init__(self, builder: AnswerBuilder, requested_model: str, context: Context) -> None:
        """`context` is what was asked: calls whose ids are in it get others, as some endpoints number from 0 each time."""
        self.done = False
        self.empty = True
        self.stop_reason: str | None = None
        self._stop_details: Json = None
        self._builder = builder
        self._requested_model = requested_model
        self._blocks: dict[int, _Growing] = {}
        self._counts = Counts()
        self._calls = 0
        self._ids = NewCallIds(context, partial(random_id, "toolu_"))

    @property
    def complete(self) -> bool:
        return self.stop_reason is not None

    def event(self, event: ServerSentEvent) -> None:
        if event.event not in _EVENTS:
            return
        try:
            said = decode_event(event.data)
        except ValueError:
            if event.event is None and event.data.strip() in (b"", b"[DONE]"):
                return
            raise
        if said is not None:
            self._take(said)

    def whole(self, body: bytes) -> None:
        said = decode_message(body)
        if said is None or said.message is None:
            raise ValueError("not a message")
        if said.error:
            raise error_from_json(said.error, ())
        if said.message.content is None:
            return
        self._start(said.message)
        for index, block in enumerate(said.message.content):
            if block is not None:
                self._block(index, block)
                self._stop(index)
        self._end(said.message.stop_reason, said.message.stop_details)
        self.done = True

    def end(self) -> None:
        for index in list(self._blocks):
            self._stop(index)
        raw, builder = self.stop_reason, self._builder
        builder.message.raw_stop_reason = raw
        if raw is None:
            raise cut_off("a stop reason")
        if raw in _REFUSED:
            raise ProviderError(_refusal(raw, self._stop_details), code=raw)
        reason: StopReason = "stop"
        if raw in _LENGTH:
            reason = "length"
        elif raw == "tool_use" or self._calls:
            reason = "toolUse"
        builder.done(reason, raw=raw)

    def _take(self, said: Event) -> None:
        match said.type:
            case "content_block_delta":
                if said.delta is not None:
                    self._delta(said.index or 0, said.delta)
            case "content_block_start":
                if said.content_block is not None:
                    self._block(said.index or 0, said.content_block)
            case "content_block_stop":
                self._stop(said.index or 0)
            case "message_start":
                if said.message is not None:
                    self._start(said.message)
            case "message_delta":
                self.empty = False
                if said.usage is not None:
                    self._count(said.usage)
                if said.delta is not None:
                    self._end(said.delta.stop_reason, said.delta.stop_details)
            case "message_stop":
                self.done = not self.empty
            case "error":
                raise error_from_json(said.error, ())

    def _start(self, head: MessageHead) -> None:
        self.empty = False
        message = self._builder.message
        if message.response_id is None and head.id:
            message.response_id = head.id
        if message.response_model is None and head.model and head.model != self._requested_model:
            message.response_model = head.model
        if head.usage is not None:
            self._count(head.usage)

    def _end(self, reason: str | None, details: Json) -> None:
        if reason:
            self.stop_reason = reason
            self._stop_details = details

    def _count(self, counts: Counts) -> None:
        self._counts = self._counts.updated(counts)
        self._builder.usage(self._counts.to_usage())

    # --- blocks

    def _block(self, index: int, block: Block) -> None:
        """A block starts. What it holds already is its first delta."""
        self.empty = False
        self._stop(index)
        builder = self._builder
        match block.type:
            case "text":
                growing = _Growing("text", builder.text_start())
                builder.text_delta(growing.place, block.text or "")
            case "thinking":
                growing = _Growing("thinking", builder.thinking_start(signature=block.signature or None))
                builder.thinking_delta(growing.place, block.thinking or "")
            case "redacted_thinking":
                place = builder.thinking_start(signature=block.data or "", redacted=True)
                growing = _Growing("redacted_thinking", place)
            case "tool_use":
                place = builder.tool_call_start(self._ids.of(block.id), block.name or "")
                growing = _Growing("tool_use", place, block.input or None)
                self._calls += 1
            case _:  # what servers do by themselves, such as searches, is theirs to remember
                growing = _Growing("", -1)
        self._blocks[index] = growing

    def _delta(self, index: int, delta: Delta) -> None:
        self.empty = False
        growing = self._blocks.get(index)
        match delta.type:
            case "text_delta":
                if growing is None:
                    growing = self._unannounced(index, "text")
                if growing.kind == "text":
                    self._builder.text_delta(growing.place, delta.text or "")
            case "thinking_delta":
                if growing is None:
                    growing = self._unannounced(index, "thinking")
                if growing.kind == "thinking":
                    self._builder.thinking_delta(growing.place, delta.thinking or "")
            case "input_json_delta":
                if growing is not None and growing.kind == "tool_use":
                    if delta.partial_json:
                        growing.input = None
                    self._builder.tool_call_delta(growing.place, delta.partial_json or "")
            case "signature_delta":
                if growing is not None and growing.kind == "thinking" and delta.signature:
                    self._sign(growing.place, delta.signature)

    def _unannounced(self, index: int, kind: str) -> _Growing:
        self._block(index, Block(type=kind))
        return self._blocks[index]

    def _sign(self, place: int, signature: str) -> None:
        """Signatures come whole, so far; one that comes in pieces is put together, one that is repeated is not."""
        block = self._builder.message.content[place]
        assert isinstance(block, ThinkingContent)
        before = block.signature or ""
        block.signature = signature if signature.startswith(before) else before + signature

    def _stop(self, index: int) -> None:
        growing = self._blocks.pop(index, None)
        if growing is None or growing.place < 0:
            return
        given = growing.input
        if given is not None:
            text = given if isinstance(given, str) else encode_json(given).decode()
            self._builder.tool_call_delta(growing.place, text)
        self._builder.end(growing.place)


def _refusal(reason: str, details: Json) -> str:
    """What a refusal says: its category and explanation, where it has them."""
    category, explanation = (
        (details.get("category"), details.get("explanation")) if isinstance(details, dict) else (None, None)
    )
    text = _REFUSED[reason]
    if isinstance(category, str):
        text = f"{text} ({category})"
    return f"{text}: {explanation}" if isinstance(explanation, str) and explanation.strip() else text


_reads: type[AnswerReader] = MessageReader
