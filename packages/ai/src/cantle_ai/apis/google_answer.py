"""Puts the chunks of one `streamGenerateContent` together.

A part adds to the block before it if it is of the same kind, and begins another one if not. A function call comes
whole. A signature belongs to the part that it comes with; the last one of an answer comes with a part that has no
text, and belongs to what was said before.
"""

from __future__ import annotations

from typing import Literal

from cantle_ai.apis.google_chunks import Candidate, Chunk, Counts, Feedback, FunctionCall, Part, decode_chunks
from cantle_ai.apis.http_errors import cut_off, error_from_json
from cantle_ai.apis.http_stream import AnswerReader
from cantle_ai.apis.new_call_ids import NewCallIds
from cantle_ai.builder import AnswerBuilder
from cantle_ai.codec import decode_json
from cantle_ai.content import TextContent, ThinkingContent, ToolCall
from cantle_ai.context import Context
from cantle_ai.errors import ProviderError
from cantle_ai.messages import StopReason
from cantle_ai.sse import ServerSentEvent
from cantle_ai.usage import Usage

__all__ = ["GoogleReader"]

_LIMITS = ("MAX_TOKENS", "CONTINUATION")
_FILTERED = "The provider's {filter} stopped the answer"
_STOPPED = {
    "SAFETY": _FILTERED.format(filter="safety filter"),
    "IMAGE_SAFETY": _FILTERED.format(filter="safety filter"),
    "RECITATION": _FILTERED.format(filter="filter against recitation of its sources"),
    "IMAGE_RECITATION": _FILTERED.format(filter="filter against recitation of its sources"),
    "BLOCKLIST": _FILTERED.format(filter="list of forbidden words"),
    "PROHIBITED_CONTENT": _FILTERED.format(filter="filter of prohibited content"),
    "IMAGE_PROHIBITED_CONTENT": _FILTERED.format(filter="filter of prohibited content"),
    "SPII": _FILTERED.format(filter="filter of personal data"),
    "MODEL_ARMOR": _FILTERED.format(filter="Model Armor"),
    "ESCALATION": _FILTERED.format(filter="escalation rule"),
    "LANGUAGE": "The provider stopped the answer: it does not support its language",
    "MALFORMED_FUNCTION_CALL": "The model made a function call that cannot be read",
    "UNEXPECTED_TOOL_CALL": "The model called a function that it was not given",
    "TOO_MANY_TOOL_CALLS": "The model made too many function calls in one answer",
    "MALFORMED_RESPONSE": "The model made an answer that cannot be read",
    "MISSING_THOUGHT_SIGNATURE": "The provider misses a signature of a thought in the conversation",
    "PUP_LIMITED_DISABLED": "The provider has limited or disabled this account for a breach of its policy",
}
"""Reasons to finish that are failures. So is every reason that is not known."""


class GoogleReader:
    """Reads one answer's body, streamed or not."""

    def __init__(self, builder: AnswerBuilder, requested_model: str, context: Context) -> None:
        """`context` is what was asked: calls whose ids are in it get others."""
        self.done = False
        self.empty = True
        self._builder = builder
        self._requested_model = requested_model
        self._ids = NewCallIds(context)
        self._finish: str | None = None
        self._explanation: str | None = None
        self._identified = False
        self._counts: Counts | None = None
        self._told = -1  # output tokens of the counts that the builder knows
        self._kind: Literal["text", "thinking"] | None = None
        self._index = -1  # of the block that text goes to; meaningless without a kind
        self._called = False
        builder.last_usage = self._last_usage

    @property
    def complete(self) -> bool:
        return self._finish is not None

    def event(self, event: ServerSentEvent) -> None:
        data = event.data
        try:
            chunks = decode_chunks(data)
        except ValueError:
            if data.strip() == b"[DONE]":  # from a gateway that speaks several APIs
                self.done = True
            elif event.event in (None, "message", "error") and data.strip():
                raise
            return  # proxies add events of their own, with names
        for chunk in chunks:
            self._add(chunk)

    def whole(self, body: bytes) -> None:
        for chunk in decode_chunks(body):
            self._add(chunk)

    def end(self) -> None:
        builder, raw = self._builder, self._finish
        if raw is None:
            raise cut_off("a finish reason")
        builder.message.raw_stop_reason = raw
        if raw in _LIMITS:
            builder.done("length", raw=raw)
        elif raw == "STOP":
            reason: StopReason = "toolUse" if self._called else "stop"
            builder.done(reason, raw=raw)
        else:
            raise self._failure(raw)

    def _add(self, chunk: Chunk) -> None:
        if chunk.error:
            raise error_from_json(chunk.error)
        if not self._identified:
            self._identify(chunk)
        if chunk.candidates:
            for candidate in chunk.candidates:
                # Others come only when they were asked for, and are other answers.
                if candidate is not None and not candidate.index:
                    self._candidate(candidate)
        counts = chunk.usage_metadata
        if counts is not None:
            self._counts = counts
            # In every chunk there are some. What the reader of a long answer sees may be a sixteenth behind.
            if (output := counts.output) > self._told + (self._told >> 4):
                self._told = output
                self._builder.usage(counts.to_usage())
        if chunk.prompt_feedback is not None and chunk.prompt_feedback.block_reason:
            raise self._blocked(chunk.prompt_feedback)

    def _identify(self, chunk: Chunk) -> None:
        message = self._builder.message
        message.response_id = message.response_id or chunk.response_id
        if chunk.model_version and chunk.model_version != self._requested_model:
            message.response_model = chunk.model_version
        self._identified = bool(message.response_id and chunk.model_version)

    def _last_usage(self) -> Usage | None:
        return None if self._counts is None else self._counts.to_usage()

    def _candidate(self, candidate: Candidate) -> None:
        self.empty = False
        content = candidate.content
        if content is not None and content.parts:
            for part in content.parts:
                if part is None:
                    continue
                text = part.text
                if text and part.function_call is None:
                    self._text(text, "thinking" if part.thought else "text", part.thought_signature)
                else:
                    self._part(part)
        if candidate.finish_reason:
            self._finish = candidate.finish_reason
            self._explanation = candidate.finish_message

    def _part(self, part: Part) -> None:
        """A part that is no text."""
        if part.function_call is not None:
            self._call(part.function_call, part.thought_signature)
        elif part.thought_signature:
            self._signature(part)

    # --- text

    def _text(self, text: str, kind: Literal["text", "thinking"], signature: str | None) -> None:
        if self._kind != kind or (signature and self._signed() not in (None, signature)):
            self._open(kind)
        if kind == "text":
            self._builder.text_delta(self._index, text)
        else:
            self._builder.thinking_delta(self._index, text)
        if signature:
            self._sign(signature)

    def _signature(self, part: Part) -> None:
        """A part without text: its signature is for the text before it, or stands alone."""
        kind: Literal["text", "thinking"] = "thinking" if part.thought else "text"
        assert part.thought_signature is not None
        if self._kind != kind or self._signed() not in (None, part.thought_signature):
            self._open(kind)
        self._sign(part.thought_signature)

    def _open(self, kind: Literal["text", "thinking"]) -> None:
        self._close()
        self._kind = kind
        self._index = self._builder.text_start() if kind == "text" else self._builder.thinking_start()

    def _close(self) -> None:
        if self._kind is not None:
            self._builder.end(self._index)
            self._kind = None

    def _block(self) -> TextContent | ThinkingContent:
        block = self._builder.message.content[self._index]
        assert isinstance(block, TextContent | ThinkingContent)
        return block

    def _signed(self) -> str | None:
        return self._block().signature

    def _sign(self, signature: str) -> None:
        self._block().signature = signature

    # --- calls

    def _call(self, call: FunctionCall, signature: str | None) -> None:
        self._close()
        self._called = True
        builder = self._builder
        index = builder.tool_call_start(self._ids.of(call.id), call.name or "")
        block = builder.message.content[index]
        assert isinstance(block, ToolCall)
        block.thought_signature = signature or None
        builder.tool_call_delta(index, _arguments(call))
        builder.end(index)

    # --- failures

    def _failure(self, raw: str) -> ProviderError:
        text = _STOPPED.get(raw, "The provider stopped the answer without a reason that is known")
        return ProviderError(f"{text} ({_said(raw, self._explanation)})", code=raw)

    def _blocked(self, feedback: Feedback) -> ProviderError:
        reason = feedback.block_reason or ""
        self._builder.message.raw_stop_reason = reason
        said = _said(reason, feedback.block_reason_message)
        return ProviderError(
            f"The provider refused the prompt ({said}): change it and ask again", code=reason
        )


_reads: type[AnswerReader] = GoogleReader


def _arguments(call: FunctionCall) -> str:
    """The arguments' JSON text, empty for none. Converters of other APIs send it inside a string."""
    text = bytes(call.args).decode("utf-8", "replace")
    if text.startswith('"'):
        inner = decode_json(text)
        return inner if isinstance(inner, str) else text
    return "" if text == "null" else text


def _said(reason: str, explanation: str | None) -> str:
    words = " ".join((explanation or "").split())[:500]
    return f"{reason}: {words}" if words else reason
