"""Turns what a wire protocol says into the events of an answer, and keeps the growing message.

A wire API owns one :class:`AnswerBuilder`: it tells it which block text belongs to, and takes the events
that this made. Blocks stay open until the answer ends, because servers return to earlier ones; block
order is the order of their first sign. The rules of the twelve events are kept here, once, for all APIs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import msgspec

from cantle_ai.codec import JsonObject
from cantle_ai.content import AssistantContent, TextContent, ThinkingContent, ToolCall
from cantle_ai.events import (
    AssistantMessageEvent,
    Done,
    Error,
    Start,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from cantle_ai.messages import AssistantMessage, StopReason, now_ms
from cantle_ai.usage import Price, Usage, cost_of

if TYPE_CHECKING:
    from cantle_ai.model import Model

__all__ = ["AnswerBuilder"]

_DONE = ("stop", "length", "toolUse", "deferred")


class AnswerBuilder:
    """Builds one answer. Collects events until :meth:`take` hands them over."""

    __slots__ = (
        "_clock",
        "_events",
        "_held",
        "_open",
        "_price",
        "last_usage",
        "mend_arguments",
        "message",
        "tool_names",
    )

    def __init__(
        self,
        *,
        api: str,
        provider: str,
        model: str,
        price: Price | None = None,
        thinking_level: str | None = None,
        clock: Callable[[], int] = now_ms,
    ) -> None:
        """`clock` gives Unix milliseconds; `price` is what usage is costed at."""
        self.mend_arguments: Callable[[str, JsonObject], JsonObject] | None = None
        """Makes of a tool's name and the arguments of a call what the tool is to get, where the model was made to
        say them in another way."""
        self.tool_names: Mapping[str, str] = {}
        """The real names of tools that the provider knows by others, by those."""
        self.last_usage: Callable[[], Usage | None] | None = None
        """Gives the count that is true when the answer ends, however it ends, of an API that counts in every chunk."""
        self._clock = clock
        self._price = price
        self._open: dict[int, None] = {}
        self._held: dict[int, str] = {}
        self.message = AssistantMessage(
            [],
            api,
            provider,
            model,
            usage=Usage(),
            stop_reason="pending",
            timestamp=clock(),
            thinking_level=thinking_level,
        )
        self._events: list[AssistantMessageEvent] = [Start(self.message)]

    @classmethod
    def of(
        cls, model: Model, *, thinking_level: str | None = None, clock: Callable[[], int] = now_ms
    ) -> AnswerBuilder:
        """The builder of an answer of `model`."""
        return cls(
            api=model.api,
            provider=model.provider,
            model=model.id,
            price=model.price,
            thinking_level=thinking_level,
            clock=clock,
        )

    def take(self) -> list[AssistantMessageEvent]:
        """The events made since the last call."""
        events, self._events = self._events, []
        return events

    @property
    def finished(self) -> bool:
        return self.message.stop_reason != "pending"

    def text_start(self, *, signature: str | None = None) -> int:
        """Open a text block. Returns its index, for the calls that follow."""
        index = self._add(TextContent(signature=signature))
        self._events.append(TextStart(index, self.message))
        return index

    def text_delta(self, index: int, delta: str) -> None:
        """More of an open text block. Nothing happens for no text."""
        block = self._opened(index)
        assert isinstance(block, TextContent)
        if delta := self._whole(index, delta):
            block.append(delta)
            self._events.append(TextDelta(index, delta, self.message))

    def thinking_start(self, *, signature: str | None = None, redacted: bool = False) -> int:
        """Open a thinking block. Returns its index."""
        index = self._add(ThinkingContent(signature=signature, redacted=redacted))
        self._events.append(ThinkingStart(index, self.message))
        return index

    def thinking_delta(self, index: int, delta: str) -> None:
        """More of an open thinking block. Nothing happens for no text."""
        block = self._opened(index)
        assert isinstance(block, ThinkingContent)
        if delta := self._whole(index, delta):
            block.append(delta)
            self._events.append(ThinkingDelta(index, delta, self.message))

    def tool_call_start(self, id: str, name: str) -> int:
        """Open a tool call; `name` is the provider's. Returns its index."""
        name = self.tool_names.get(name, name)
        index = self._add(ToolCall(id, name))
        self._events.append(ToolCallStart(index, id, name, self.message))
        return index

    def tool_call_delta(self, index: int, delta: str) -> None:
        """More of the arguments' JSON text, for an open call. Nothing happens for no text."""
        block = self._opened(index)
        assert isinstance(block, ToolCall)
        if delta := self._whole(index, delta):
            block.append(delta)
            self._events.append(ToolCallDelta(index, delta, self.message))

    def end(self, index: int) -> None:
        """Close one block. Closing a closed one does nothing."""
        if index not in self._open:
            return
        if index in self._held:
            self._tell_held(index)
        del self._open[index]
        block, message = self.message.content[index], self.message
        match block:
            case TextContent():
                self._events.append(TextEnd(index, block.text, message))
            case ThinkingContent():
                self._events.append(ThinkingEnd(index, block.thinking, message))
            case ToolCall():
                block.finish(self._mend)
                self._events.append(ToolCallEnd(index, block, message))

    @property
    def _mend(self) -> Callable[[str, JsonObject], JsonObject] | None:
        mend = self.mend_arguments
        if mend is None or not self.tool_names:
            return mend
        provider_names = {real: name for name, real in self.tool_names.items()}
        return lambda name, arguments: mend(provider_names.get(name, name), arguments)

    def usage(self, usage: Usage) -> None:
        """Take the provider's latest cumulative count, and cost it unless it already carries a cost.

        A negative figure, which some servers give, counts as none.
        """
        counts = usage.input, usage.output, usage.cache_read, usage.cache_write, usage.total_tokens
        if min(counts) < 0 or (usage.reasoning or 0) < 0 or (usage.cache_write_1h or 0) < 0:
            usage = _without_negative(usage)
        cost = usage.cost
        if not cost.total and not cost.unknown and not cost.extra:
            usage = msgspec.structs.replace(usage, cost=cost_of(usage, self._price))
        self.message.usage = usage

    def done(self, reason: StopReason, *, raw: str | None = None) -> None:
        """Close what is open and finish with `stop`, `length`, `toolUse` or `deferred`. Does nothing when finished."""
        if reason not in _DONE:
            raise ValueError(f"an answer is not done with the reason {reason!r}")
        if self.finished:
            return
        self._close(reason, raw)
        self._events.append(Done(reason, self.message))

    def fail(
        self,
        text: str,
        *,
        aborted: bool = False,
        raw: str | None = None,
        details: JsonObject | None = None,
    ) -> None:
        """Close what is open, keep what arrived, and finish with `error`, or `aborted`. Does nothing when finished.

        `details` are facts about the failure for programs (:meth:`cantle_ai.errors.ProviderError.details`);
        they are kept as `errorDetails` among the message's extra fields.
        """
        if self.finished:
            return
        reason: StopReason = "aborted" if aborted else "error"
        self.message.error_message = text
        if details is not None:
            self.message.extra = {**(self.message.extra or {}), "errorDetails": details}
        self._close(reason, raw)
        self._events.append(Error(reason, self.message))

    def _add(self, block: TextContent | ThinkingContent | ToolCall) -> int:
        content = self.message.content
        content.append(block)
        self._open[len(content) - 1] = None
        return len(content) - 1

    def _opened(self, index: int) -> AssistantContent:
        if index not in self._open:
            raise ValueError(f"block {index} of the answer is not open")
        return self.message.content[index]

    def _whole(self, index: int, delta: str) -> str:
        """`delta` without half a character at its end: servers that count in UTF-16 cut between surrogates."""
        if index in self._held:
            delta = (
                (self._held.pop(index) + delta)
                .encode("utf-16", "surrogatepass")
                .decode("utf-16", "surrogatepass")
            )
        if delta and "\ud800" <= delta[-1] <= "\udbff":
            self._held[index], delta = delta[-1], delta[:-1]
        return delta

    def _tell_held(self, index: int) -> None:
        """The other half never came: what was held is said as it is."""
        half = self._held.pop(index)
        block, message = self.message.content[index], self.message
        match block:
            case TextContent():
                block.append(half)
                self._events.append(TextDelta(index, half, message))
            case ThinkingContent():
                block.append(half)
                self._events.append(ThinkingDelta(index, half, message))
            case ToolCall():
                block.append(half)
                self._events.append(ToolCallDelta(index, half, message))

    def _close(self, reason: StopReason, raw: str | None) -> None:
        for index in list(self._open):
            self.end(index)
        message = self.message
        if self.last_usage is not None and (usage := self.last_usage()) is not None:
            self.usage(usage)
        cost = message.usage.cost
        if self._price is None and not cost.total and not cost.extra:
            message.usage = msgspec.structs.replace(message.usage, cost=cost_of(message.usage, None))
        message.wire.clear()
        message.duration_ms = max(0, self._clock() - message.timestamp)
        message.raw_stop_reason = raw if raw is not None else message.raw_stop_reason
        message.stop_reason = reason


def _without_negative(usage: Usage) -> Usage:
    names = ("input", "output", "cache_read", "cache_write", "cache_write_1h", "reasoning", "total_tokens")
    figures = {name: getattr(usage, name) for name in names}
    return msgspec.structs.replace(
        usage, **{name: 0 for name, figure in figures.items() if figure is not None and figure < 0}
    )
