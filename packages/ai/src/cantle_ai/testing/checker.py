"""Checks that the events of an answer keep the rules, wherever they come from.

async for event in checked(stream): ...          # raises RuleViolation where a rule is broken
agent = Agent(stream=checked_function(model.stream), ...)
check_events([Start(message), ...])
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from cantle_ai.codec import Json, decode_json
from cantle_ai.content import TextContent, ThinkingContent, ToolCall
from cantle_ai.context import Context
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
from cantle_ai.messages import AssistantMessage
from cantle_ai.model import Model, StreamOptions
from cantle_ai.stream import AssistantMessageStream, StreamFunction, StreamReader, _Answer

__all__ = [
    "RULES",
    "CheckedStream",
    "RuleChecker",
    "RuleViolation",
    "check_events",
    "checked",
    "checked_function",
]

RULES: Mapping[str, str] = {
    "start-first": "the first event is `start`",
    "one-start": "`start` comes once",
    "one-end": "nothing follows `done` or `error`",
    "has-end": "the last event is `done` or `error`",
    "one-message": "all events carry one and the same growing message",
    "pending": "the message's stop reason is `pending` until the answer has ended, and is then the end's reason",
    "block-order": "blocks are numbered in the order in which they begin",
    "block-kind": "the events of a block are those of its kind",
    "block-open": "a block's deltas and its one end come between its start and the end of the answer",
    "block-closed": "every block is ended before `done` or `error`",
    "deltas-join": "a block's deltas, joined, are its content",
    "call-identity": "a call's id and name are known at its start and stay",
    "call-arguments": "a call's arguments are its deltas, joined and parsed, if need be without nulls; text that is no "
    "JSON object is kept aside",
    "done-reason": "`done` has the reason stop, length, toolUse or deferred, and the message has it too",
    "error-reason": "`error` has the reason error or aborted, and the message has it too",
    "error-message": "an answer that failed says why, and no other does",
    "final-content": "the final message has the content that the events told, and nothing else",
    "usage": "no count of tokens is negative",
    "result": "`result()` is the message of the last event",
}
"""Each rule by name."""

_DONE = ("stop", "length", "toolUse", "deferred")
_FAILED = ("error", "aborted")
_KINDS: Mapping[type, str] = {
    TextStart: "text",
    TextDelta: "text",
    TextEnd: "text",
    ThinkingStart: "thinking",
    ThinkingDelta: "thinking",
    ThinkingEnd: "thinking",
    ToolCallStart: "toolCall",
    ToolCallDelta: "toolCall",
    ToolCallEnd: "toolCall",
}


class RuleViolation(AssertionError):
    """Events broke a rule. `rule` is a key of :data:`RULES`, `position` the place of the event, from 0."""

    def __init__(self, rule: str, position: int, found: str) -> None:
        super().__init__(f"event {position} breaks the rule {rule!r} ({RULES[rule]}): {found}")
        self.rule = rule
        self.position = position


class _Block:
    """What the events have told of one block. `known`: from its start; `open`: it has not been ended."""

    __slots__ = ("id", "kind", "known", "name", "open", "parts")

    def __init__(self, kind: str, *, id: str = "", name: str = "", known: bool = True) -> None:
        self.kind = kind
        self.id = id
        self.name = name
        self.known = known
        self.open = True
        self.parts: list[str] = []


class RuleChecker:
    """Takes the events of one answer in order, and raises :class:`RuleViolation` at the first that breaks a rule.

    With `late`, the events are those of a reader that joined when the answer had begun: blocks that the
    partial message of its `start` holds may go on, end, or say nothing more. The cost is in step with the
    answer's length.
    """

    def __init__(self, *, late: bool = False) -> None:
        self._late = late
        self._position = -1
        self._message: AssistantMessage | None = None
        self._blocks: list[_Block] = []
        self._reason: str | None = None
        self._early_reason: str | None = None

    def check(self, event: AssistantMessageEvent) -> None:
        """Take the next event."""
        self._position += 1
        self._require(self._reason is None, "one-end", event.type)
        match event:
            case Start():
                self._start(event.partial)
            case Done():
                self._end(event.reason, event.message)
            case Error():
                self._end(event.reason, event.error)
            case _:
                self._grows(event.partial)
                self._block(event)

    def finish(self, result: AssistantMessage | None = None) -> AssistantMessage:
        """Say that no event follows; `result` is what `result()` gave, when it was asked. Returns the final message."""
        self._position += 1
        message = self._message
        if message is None or self._reason is None:
            raise RuleViolation("has-end", self._position, "the events stop")
        self._require(result is None or result is message, "result", "another message")
        return message

    def _require(self, holds: bool, rule: str, found: object) -> None:
        if not holds:
            raise RuleViolation(rule, self._position, str(found))

    def _start(self, message: AssistantMessage) -> None:
        self._require(self._message is None, "one-start", "a second `start`")
        self._message = message
        if self._late:
            self._blocks = [_Block(block.type, known=False) for block in message.content]
        self._grows(message)

    def _grows(self, message: AssistantMessage) -> None:
        self._require(self._message is not None, "start-first", "another event comes first")
        self._require(message is self._message, "one-message", "another message object")
        reason = message.stop_reason
        if reason != "pending":
            # The source may have ended already while its last events are still being read.
            self._require(self._early_reason in (None, reason), "pending", reason)
            self._early_reason = reason

    def _block(self, event: _BlockEvent) -> None:
        match event:
            case TextStart() | ThinkingStart():
                self._begin(event, _Block(_KINDS[type(event)]))
            case ToolCallStart():
                self._begin(event, _Block("toolCall", id=event.id, name=event.tool_name))
            case TextDelta() | ThinkingDelta() | ToolCallDelta():
                self._opened(event).parts.append(event.delta)
            case TextEnd() | ThinkingEnd():
                block = self._opened(event)
                block.open = False
                if block.known:
                    said = "".join(block.parts)
                    self._require(event.content == said, "deltas-join", f"{event.content!r}, not {said!r}")
            case ToolCallEnd():
                block = self._opened(event)
                block.open = False
                if block.known:
                    self._call(block, event.tool_call)

    def _begin(self, event: TextStart | ThinkingStart | ToolCallStart, block: _Block) -> None:
        index, blocks = event.content_index, self._blocks
        if index < len(blocks) and not blocks[index].known and not blocks[index].parts:
            blocks[index] = block
            return
        self._require(index == len(blocks), "block-order", f"block {index} where {len(blocks)} is next")
        blocks.append(block)

    def _opened(self, event: _BlockEvent) -> _Block:
        index = event.content_index
        self._require(0 <= index < len(self._blocks), "block-open", f"block {index} has not begun")
        block = self._blocks[index]
        self._require(block.open, "block-open", f"block {index} has ended")
        kind = _KINDS[type(event)]
        self._require(kind == block.kind, "block-kind", f"{event.type} for block {index}, a {block.kind}")
        return block

    def _call(self, block: _Block, call: ToolCall) -> None:
        told, is_now = (block.id, block.name), (call.id, call.name)
        self._require(told == is_now, "call-identity", f"{is_now}, not {told}")
        text = "".join(block.parts)
        arguments, invalid = parsed_arguments(text)
        same = _same_json(call.arguments, arguments) or _same_but_nulls(call.arguments, arguments)
        right = same and call.invalid_arguments == invalid
        self._require(right, "call-arguments", f"{call!r} for the text {text!r}")

    def _end(self, reason: str, message: AssistantMessage) -> None:
        self._require(self._message is not None, "start-first", "the answer ends before it starts")
        self._require(message is self._message, "one-message", "another message object at the end")
        failed = reason in _FAILED
        rule = "error-reason" if failed else "done-reason"
        self._require(failed or reason in _DONE, rule, reason)
        self._reason = reason
        self._require(message.stop_reason == reason, rule, f"{message.stop_reason!r}, not {reason!r}")
        self._require(
            self._early_reason in (None, reason), "pending", f"it was {self._early_reason!r} before"
        )
        self._require(failed == bool(message.error_message), "error-message", repr(message.error_message))
        usage = message.usage
        counts = (usage.input, usage.output, usage.cache_read, usage.cache_write, usage.total_tokens)
        self._require(min(counts) >= 0, "usage", counts)
        self._content(message)

    def _content(self, message: AssistantMessage) -> None:
        told, blocks = self._blocks, message.content
        unclosed = [index for index, block in enumerate(told) if block.known and block.open]
        self._require(not unclosed, "block-closed", f"blocks {unclosed} are open")
        self._require(len(blocks) == len(told), "final-content", f"{len(blocks)} blocks, {len(told)} told")
        for index, (block, content) in enumerate(zip(told, blocks, strict=True)):
            found = f"block {index} is {content!r}"
            self._require(content.type == block.kind, "final-content", found)
            if not block.known:
                continue
            said = "".join(block.parts)
            match content:
                case TextContent():
                    self._require(content.text == said, "final-content", found)
                case ThinkingContent():
                    self._require(content.thinking == said, "final-content", found)
                case ToolCall():
                    self._call(block, content)
                case _:
                    pass


_BlockEvent: TypeAlias = (
    TextStart
    | TextDelta
    | TextEnd
    | ThinkingStart
    | ThinkingDelta
    | ThinkingEnd
    | ToolCallStart
    | ToolCallDelta
    | ToolCallEnd
)


def parsed_arguments(text: str) -> tuple[Json, str | None]:
    """What a call's arguments are, by the rule: the object, and the text when it is none."""
    if not text.strip():
        return {}, None
    try:
        value = decode_json(text)
    except ValueError:
        value = None
    return (value, None) if isinstance(value, dict) else ({}, text)


def _same_json(a: Json, b: Json) -> bool:
    return a == b or repr(a) == repr(b)  # NaN is not equal to itself


def _same_but_nulls(meant: Json, said: Json) -> bool:
    """Whether nothing but nulls of objects is missing of what a model has said."""
    if isinstance(meant, dict) and isinstance(said, dict):
        left_out = said.keys() - meant.keys()
        return (
            meant.keys() <= said.keys()
            and all(said[name] is None for name in left_out)
            and all(_same_but_nulls(value, said[name]) for name, value in meant.items())
        )
    if isinstance(meant, list) and isinstance(said, list):
        return len(meant) == len(said) and all(map(_same_but_nulls, meant, said))
    return _same_json(meant, said)


def check_events(events: Iterable[AssistantMessageEvent]) -> AssistantMessage:
    """Check a whole list of events. Returns the final message."""
    checker = RuleChecker()
    for event in events:
        checker.check(event)
    return checker.finish()


class CheckedReader(StreamReader):
    """A reader that checks what it passes on."""

    __slots__ = ("_checker", "_left")

    def __init__(self, stream: AssistantMessageStream, answer: _Answer) -> None:
        self._checker = RuleChecker(late=answer.batch_number > 0 or answer.final is not None)
        self._left = False
        super().__init__(stream, answer)

    async def __anext__(self) -> AssistantMessageEvent:
        reading = self.live
        try:
            event = await super().__anext__()
        except StopAsyncIteration:
            if reading and not self._left:
                self._checker.finish()
            raise
        self._checker.check(event)
        return event

    async def aclose(self) -> None:
        self._left = True
        await super().aclose()


class CheckedStream(AssistantMessageStream):
    """The same stream, each of its readers checked; `result()` reads it itself when nobody else does."""

    __slots__ = ("_inner",)

    def __init__(self, stream: AssistantMessageStream) -> None:
        self._inner = stream  # held, because a stream that is forgotten gives its answer up
        self._answer = stream._answer

    def __del__(self) -> None:
        """The inner stream gives its answer up when it is forgotten in its turn."""

    def __aiter__(self) -> CheckedReader:
        return CheckedReader(self, self._answer)

    async def result(self) -> AssistantMessage:
        if not self._answer.readers:
            async for _ in self:
                pass
        message = await super().result()
        if message.stop_reason == "pending" or message is not self.partial:
            raise RuleViolation("result", -1, f"{message.stop_reason!r}")
        return message


def checked(stream: AssistantMessageStream) -> CheckedStream:
    """`stream`, whose readers and `result()` raise :class:`RuleViolation` where it breaks a rule."""
    return CheckedStream(stream)


def checked_function(function: StreamFunction) -> StreamFunction:
    """`function`, with every stream it makes :func:`checked`."""

    def stream(model: Model, context: Context, options: StreamOptions) -> AssistantMessageStream:
        return CheckedStream(function(model, context, options))

    return stream
