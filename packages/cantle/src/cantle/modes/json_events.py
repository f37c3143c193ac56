"""Session events as the records of JSON mode: one JSON object a line, split on LF only.

    {"type":"message_update","usage":{…},"assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"Hel"}}
    {"type":"message_end","message":{…}}

Field names and shapes are those of the reference's `json.md`. `message_update` carries the delta only, never
the message so far, so that the output grows in step with the answer.
"""

from __future__ import annotations

from typing import Any, assert_never

import msgspec

from cantle.hub.events import (
    AgentSettled,
    AutoRetryEnd,
    AutoRetryStart,
    CompactionEnd,
    CompactionResult,
    CompactionStart,
    EntryAppended,
    HistoryProjected,
    ModelFallback,
    QueueUpdate,
    RunEnd,
    SessionEvent,
    SessionInfoChanged,
    SummarizationRetryAttemptStart,
    SummarizationRetryFinished,
    SummarizationRetryScheduled,
    ThinkingLevelChanged,
)
from cantle_agent.events import (
    AgentStart,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
    TurnEnd,
    TurnStart,
)
from cantle_agent.messages import AgentMessage
from cantle_ai.codec import JsonObject, decode_json, encode_json
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
from cantle_ai.messages import AssistantMessage, encode_message
from cantle_ai.usage import Usage

__all__ = ["EventEncoder", "compaction_result", "encode_record"]


class EventEncoder:
    """Encodes the events of one session. Keeps what stands in front of a delta, which rarely changes."""

    __slots__ = ("_head", "_index", "_kind", "_usage", "_usage_json")

    def __init__(self) -> None:
        self._usage: Usage | None = None
        self._usage_json = b""
        self._kind: str | None = None
        self._index = 0
        self._head = b""

    def encode(self, event: SessionEvent) -> bytes:
        """The event's record, with its LF."""
        if isinstance(event, MessageUpdate):
            return self._update(event)
        return encode_record(_record(event))

    def _update(self, event: MessageUpdate) -> bytes:
        usage = event.message.usage
        if usage is not self._usage:
            self._usage, self._usage_json, self._kind = usage, encode_json(usage.to_json()), None
        inner = event.event
        if isinstance(inner, (TextDelta, ThinkingDelta, ToolCallDelta)):
            if inner.type != self._kind or inner.content_index != self._index:
                self._begin(inner.type, inner.content_index)
            return self._head + encode_json(inner.delta) + b"}}\n"
        return b'{"type":"message_update","usage":%b,"assistantMessageEvent":%b}\n' % (
            self._usage_json,
            _encode(_assistant_event(inner)),
        )

    def _begin(self, kind: str, index: int) -> None:
        """Deltas of another block, or of another kind, follow."""
        self._kind, self._index = kind, index
        self._head = (
            b'{"type":"message_update","usage":%b,"assistantMessageEvent":{"type":"%b","contentIndex":%d,"delta":'
            % (self._usage_json, kind.encode(), index)
        )


def encode_record(record: dict[str, Any]) -> bytes:
    """One record and its LF. Values may be `msgspec.Raw`, JSON that is encoded already."""
    return _encode(record) + b"\n"


def _encode(record: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(record)
    except UnicodeEncodeError:  # a lone surrogate, which only the tolerant encoder can write
        return encode_json({key: _plain(value) for key, value in record.items()})


def _plain(value: Any) -> Any:
    match value:
        case msgspec.Raw():
            return msgspec.json.decode(value) if b"\\ud" not in bytes(value) else decode_json(bytes(value))
        case list():
            return [_plain(item) for item in value]
        case _:
            return value


def _message(message: AgentMessage) -> msgspec.Raw:
    """A finished message is encoded once, wherever it is written; a growing one each time."""
    if isinstance(message, AssistantMessage) and message.stop_reason == "pending":
        return msgspec.Raw(encode_json(message.to_json()))
    return msgspec.Raw(encode_message(message))


def _record(event: SessionEvent) -> dict[str, Any]:
    match event:
        case AgentStart() | TurnStart():
            return {"type": event.type}
        case MessageStart() | MessageEnd():
            return {"type": event.type, "message": _message(event.message)}
        case TurnEnd():
            results = [_message(result) for result in event.tool_results]
            return {"type": event.type, "message": _message(event.message), "toolResults": results}
        case RunEnd():
            messages = [_message(message) for message in event.messages]
            return {"type": event.type, "messages": messages, "willRetry": event.will_retry}
        case ToolExecutionStart() | ToolExecutionUpdate() | ToolExecutionEnd():
            return _tool_record(event)
        case AgentSettled():
            return {"type": event.type, "aborted": event.aborted}
        case AutoRetryStart() | SummarizationRetryScheduled():
            return {
                "type": event.type,
                "attempt": event.attempt,
                "maxAttempts": event.max_attempts,
                "delayMs": event.delay_ms,
                "errorMessage": event.error_message,
            }
        case AutoRetryEnd():
            end: dict[str, Any] = {"type": event.type, "success": event.success, "attempt": event.attempt}
            return end if event.final_error is None else {**end, "finalError": event.final_error}
        case ModelFallback():
            return {
                "type": event.type,
                "provider": event.provider,
                "modelId": event.model_id,
                "errorMessage": event.error_message,
            }
        case CompactionStart():
            return {"type": event.type, "reason": event.reason}
        case CompactionEnd():
            return _compaction_end(event)
        case SummarizationRetryAttemptStart():
            begin = {"type": event.type, "source": event.source}
            return begin if event.reason is None else {**begin, "reason": event.reason}
        case SummarizationRetryFinished():
            return {"type": event.type}
        case HistoryProjected():
            return {"type": event.type, "counts": {_camel(kind): n for kind, n in event.counts.items()}}
        case QueueUpdate():
            return {"type": event.type, "steering": list(event.steering), "followUp": list(event.follow_up)}
        case ThinkingLevelChanged():
            return {"type": event.type, "level": event.level}
        case SessionInfoChanged():
            return {"type": event.type} if event.name is None else {"type": event.type, "name": event.name}
        case EntryAppended():
            return {"type": event.type, "entry": event.entry}
        case MessageUpdate():
            raise AssertionError("updates are encoded apart")
        case _:
            assert_never(event)


def compaction_result(result: CompactionResult) -> JsonObject:
    """What a compaction came to, as `compaction_end` has it."""
    record: JsonObject = {
        "summary": result.summary,
        "firstKeptEntryId": result.first_kept_entry_id,
        "tokensBefore": result.tokens_before,
        "estimatedTokensAfter": result.estimated_tokens_after,
    }
    if result.usage is not None:
        record["usage"] = result.usage.to_json()
    if result.details is not None:
        record["details"] = result.details
    return record


def _compaction_end(event: CompactionEnd) -> dict[str, Any]:
    record: dict[str, Any] = {"type": event.type, "reason": event.reason}
    if event.result is not None:
        record["result"] = compaction_result(event.result)
    record |= {"aborted": event.aborted, "willRetry": event.will_retry}
    return record if event.error_message is None else {**record, "errorMessage": event.error_message}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _tool_record(event: ToolExecutionStart | ToolExecutionUpdate | ToolExecutionEnd) -> dict[str, Any]:
    record: dict[str, Any] = {
        "type": event.type,
        "toolCallId": event.tool_call_id,
        "toolName": event.tool_name,
    }
    match event:
        case ToolExecutionStart():
            record["args"] = event.args
        case ToolExecutionUpdate():
            record["args"] = event.args
            record["partialResult"] = event.partial_result.to_json()
        case ToolExecutionEnd():
            record["result"] = event.result.to_json()
            record["isError"] = event.is_error
            if event.duration_ms is not None:
                record["durationMs"] = event.duration_ms
    return record


def _assistant_event(event: AssistantMessageEvent) -> JsonObject:
    match event:
        case Start():
            return {"type": event.type}
        case TextStart() | ThinkingStart():
            return {"type": event.type, "contentIndex": event.content_index}
        case TextEnd() | ThinkingEnd():
            return {"type": event.type, "contentIndex": event.content_index, "content": event.content}
        case ToolCallStart():
            return {
                "type": event.type,
                "contentIndex": event.content_index,
                "id": event.id,
                "toolName": event.tool_name,
            }
        case ToolCallEnd():
            return {
                "type": event.type,
                "contentIndex": event.content_index,
                "toolCall": event.tool_call.to_json(),
            }
        case TextDelta() | ThinkingDelta() | ToolCallDelta():
            return {"type": event.type, "contentIndex": event.content_index, "delta": event.delta}
        case Done():
            return {"type": event.type, "reason": event.reason, "message": event.message.to_json()}
        case Error():
            return {"type": event.type, "reason": event.reason, "error": event.error.to_json()}
        case _:
            assert_never(event)
