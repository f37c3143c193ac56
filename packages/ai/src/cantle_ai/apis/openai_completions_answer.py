"""Puts the chunks of one chat completion together.

A chunk adds to any of the answer's blocks, in any order: there is one block for text, one for thinking, and
one for each tool call. Which call a piece belongs to is told by its `index` or its `id`, and endpoints leave
out either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from cantle_ai.apis.chunk_reader import read_chunk
from cantle_ai.apis.http_stream import AnswerReader
from cantle_ai.apis.openai_completions_chunks import Chunk, Counts, Delta, ToolCallDelta
from cantle_ai.apis.openai_completions_compat import OpenAICompletionsCompat
from cantle_ai.apis.openai_completions_messages import REASONING_FIELDS
from cantle_ai.builder import AnswerBuilder
from cantle_ai.codec import Json, decode_json
from cantle_ai.content import ThinkingContent
from cantle_ai.context import Context
from cantle_ai.errors import ErrorKind, ProviderError
from cantle_ai.messages import StopReason
from cantle_ai.model import Model
from cantle_ai.sse import ServerSentEvent
from cantle_ai.usage import cost_of

if TYPE_CHECKING:
    from cantle_ai.apis.new_call_ids import NewCallIds
    from cantle_ai.apis.openai_completions_details import ReasoningDetails

__all__ = ["CompletionReader", "decode_chunk"]

_ENDS: dict[str, StopReason] = dict.fromkeys(
    ("length", "max_tokens", "model_length", "model_context_window_exceeded", "repetition_truncation"),
    "length",
)
_REFUSED = {
    "content_filter": "The provider's content filter stopped the answer",
    "sensitive": "The provider's content filter stopped the answer",
    "error": "The provider ended the answer with an error",
    "network_error": "The provider lost its connection while it answered",
    "insufficient_system_resource": "The provider ran out of resources while it answered",
}
"""Reasons to finish that are failures. Those that not OpenAI alone knows are Z.AI's (docs.z.ai, "Chat completion") and
DeepSeek's (https://api-docs.deepseek.com/api/create-chat-completion)."""
_PASSING = ("network_error", "insufficient_system_resource")
"""Those of them that another attempt may not meet."""

_decode = msgspec.json.Decoder(Chunk | None).decode


def decode_chunk(data: bytes) -> Chunk | None:
    """One chunk; None for one that says nothing (`null`, a number, a list). Raises ValueError for what is not JSON."""
    try:
        return _decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        from cantle_ai.apis.openai_completions_lenient import lenient_chunk

        return lenient_chunk(decode_json(data))


class _Call:
    """A tool call that is being received. It has no block while its name may still grow."""

    __slots__ = ("block", "id", "index", "name")

    def __init__(self, index: int | None, call_id: str | None, name: str) -> None:
        self.index = index
        self.id = call_id
        self.name = name
        self.block: int | None = None


class CompletionReader:
    """Reads one answer; see :class:`cantle_ai.apis.http_stream.AnswerReader`."""

    def __init__(
        self, builder: AnswerBuilder, model: Model, context: Context, compat: OpenAICompletionsCompat
    ) -> None:
        """`context` is what was asked: calls whose ids are in it get others, as some endpoints number from 0 each time."""
        self.done = False
        self.empty = True
        self._finish_reason: str | None = None
        self._error: Json = None
        self._builder = builder
        self._model = model
        self._compat = compat
        self._context = context
        self._ids: NewCallIds | None = None
        self._text: int | None = None
        self._thinking: int | None = None
        self._thoughts_in_details = False
        self._calls: list[_Call] = []
        self._current: _Call | None = None
        """The call whose arguments came last, if it is told by its index."""
        self._unnamed: list[_Call] = []
        self._details: ReasoningDetails | None = None

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
        if raw is None and self._compat.supports_finish_reason:
            from cantle_ai.apis.http_errors import cut_off

            raise cut_off("a finish reason")
        self._start_unnamed()
        self._keep_details()
        builder.message.raw_stop_reason = raw
        if raw is not None and raw in _REFUSED:
            if raw == "error" and self._error:
                from cantle_ai.apis.http_errors import error_from_json

                raise error_from_json(self._error)
            kind: ErrorKind = "network" if raw in _PASSING else "http"
            raise ProviderError(_REFUSED[raw], code=raw, kind=kind)
        end = _ENDS.get(raw or "")
        if end is None:
            end = "toolUse" if self._calls else "stop"
        builder.done(end, raw=raw)

    def _add(self, chunk: Chunk) -> None:
        message = self._builder.message
        if message.response_id is None and chunk.id:
            message.response_id = chunk.id
        if message.response_model is None and chunk.model and chunk.model != self._model.id:
            message.response_model = chunk.model
        if chunk.choices:
            for choice in chunk.choices:
                if choice is None:
                    continue
                self.empty = False
                delta = choice.delta if choice.delta is not None else choice.message
                if delta is not None:
                    self._delta(delta)
                if choice.finish_reason:
                    self._finish_reason = choice.finish_reason
                    self._error = choice.error
                if choice.usage is not None:
                    self._usage(choice.usage)
        if chunk.usage is not None:
            self._usage(chunk.usage)

    def _delta(self, delta: Delta) -> None:
        thought = delta.reasoning_content or delta.reasoning or delta.reasoning_text
        if thought:
            self._think(delta, thought)
        if delta.reasoning_details is not None:
            self._detail(delta.reasoning_details, told=bool(thought))
        text = delta.content
        if text:
            if self._unnamed:
                self._start_unnamed()
            if self._text is None:
                self._text = self._builder.text_start()
            self._builder.text_delta(self._text, text)
        if delta.tool_calls:
            for call in delta.tool_calls:
                if call is not None:
                    self._call(call)
        if delta.function_call is not None:
            self._call(ToolCallDelta(0, None, delta.function_call))
        if delta.refusal:
            self._delta(Delta(content=delta.refusal))

    def _usage(self, counts: Counts) -> None:
        if counts.empty:
            return
        usage = counts.to_usage()
        billed = counts.billed if self._compat.reports_cost else None
        if billed is not None:
            estimated = cost_of(usage, self._model.price)
            told = msgspec.structs.replace(
                estimated, total=billed, unknown=False, extra={"totalFromProvider": True}
            )
            usage = msgspec.structs.replace(usage, cost=told)
        self._builder.usage(usage)

    def _think(self, delta: Delta, thought: str) -> None:
        self._start_unnamed()
        self._thoughts_in_details = False
        if self._thinking is None:
            field = next(name for name in REASONING_FIELDS if getattr(delta, name))
            self._thinking = self._builder.thinking_start(signature=field)
        self._builder.thinking_delta(self._thinking, thought)

    # --- tool calls

    def _call(self, delta: ToolCallDelta) -> None:
        function, current = delta.function, self._current
        if (
            current is not None
            and delta.index == current.index
            and not delta.id
            and function is not None
            and not function.name
        ):
            # More of the call that the piece before was of, as nearly every piece is.
            if function.arguments and current.block is not None:
                self._builder.tool_call_delta(current.block, function.arguments)
            return
        name = function.name if function is not None and function.name else ""
        arguments = function.arguments if function is not None else None
        call = self._find(delta, name)
        if call is None:
            if not (delta.id or name or arguments):
                return
            call = _Call(delta.index, delta.id or None, name)
            self._start_unnamed()
            self._calls.append(call)
            self._unnamed.append(call)
        elif call.block is None:
            call.id = call.id or delta.id
            if name != call.name:
                call.name += name
        if arguments:
            if call.block is None:
                self._start_unnamed()
            assert call.block is not None
            self._builder.tool_call_delta(call.block, arguments)
            self._current = call if call.index is not None else None

    def _find(self, delta: ToolCallDelta, name: str) -> _Call | None:
        """The call that this piece belongs to; None for a new one."""
        if delta.index is not None:
            found = next((call for call in reversed(self._calls) if call.index == delta.index), None)
            # Some endpoints number every call 0, and tell them apart by their ids alone.
            if found is not None and delta.id and name and found.id and found.id != delta.id:
                return next((call for call in self._calls if call.id == delta.id), None)
            return found
        if delta.id:
            return next((call for call in self._calls if call.id == delta.id), None)
        last = self._calls[-1] if self._calls else None
        return None if last is not None and name and last.block is not None else last

    def _start_unnamed(self) -> None:
        """Open the blocks of calls whose names are complete, now that something else comes."""
        if not self._unnamed:
            return
        if self._ids is None:
            from cantle_ai.apis.new_call_ids import NewCallIds

            self._ids = NewCallIds(self._context)
        for call in self._unnamed:
            call.id = self._ids.of(call.id)
            call.block = self._builder.tool_call_start(call.id, call.name)
        self._unnamed.clear()

    # --- reasoning that has to come back

    def _detail(self, raw: Json, *, told: bool) -> None:
        """`told` says that the chunk has the same thoughts in a field of their own, too."""
        if self._details is None:
            from cantle_ai.apis.openai_completions_details import ReasoningDetails

            self._details = ReasoningDetails()
        text = self._details.add(raw)
        if self._details.empty:
            return
        if self._thinking is None:
            self._start_unnamed()
            self._thinking = self._builder.thinking_start()
            self._thoughts_in_details = True
        if text and not told and self._thoughts_in_details:
            self._builder.thinking_delta(self._thinking, text)

    def _keep_details(self) -> None:
        signature = None if self._details is None else self._details.signature()
        if signature is not None and self._thinking is not None:
            block = self._builder.message.content[self._thinking]
            assert isinstance(block, ThinkingContent)
            block.signature = signature


_reads: type[AnswerReader] = CompletionReader
