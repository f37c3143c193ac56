"""What a conversation is made of: messages of the user, the assistant and tools, in the reference's shapes.

    {"role": "user", "content": <string or blocks>, "timestamp": <ms>}
    {"role": "assistant", "content": [blocks], "api", "provider", "model", "usage", "stopReason", "timestamp", …}
    {"role": "toolResult", "toolCallId", "toolName", "content": [blocks], "isError", "timestamp", "details"?, "usage"?, …}

Timestamps are Unix milliseconds. A message is final once it has left its stream: do not change it, make
a changed copy with :func:`replace`. That is what allows each message to be encoded once
(:func:`encode_message`), however often it is written or sent.

Fields this version does not know, and lesser ones of an odd type, are kept in `extra` and written back; a
message of another role, or one without its main fields, is an :class:`UnknownMessage`, which keeps the JSON
as it was. An answer with a stop reason that is not known reads as `stop`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, TypeVar, cast

import msgspec
from msgspec import Struct, field

from cantle_ai.codec import Json, JsonObject, encode_json, kept_fields
from cantle_ai.content import (
    AssistantContent,
    TextContent,
    ToolCall,
    UserContent,
    content_from_json,
)
from cantle_ai.errors import ErrorDetails
from cantle_ai.usage import Usage

__all__ = [
    "AssistantMessage",
    "EncodableMessage",
    "Message",
    "StopReason",
    "ThinkingLevel",
    "ToolResultMessage",
    "UnknownMessage",
    "UserMessage",
    "encode_message",
    "message_from_json",
    "now_ms",
    "replace",
]

StopReason: TypeAlias = Literal["pending", "stop", "length", "toolUse", "error", "aborted", "deferred"]
"""Why an answer ended. `pending` only while it streams."""

ThinkingLevel: TypeAlias = Literal["off", "minimal", "low", "medium", "high", "xhigh", "max"]

_STOP_REASONS = frozenset({"pending", "stop", "length", "toolUse", "error", "aborted", "deferred"})


def now_ms() -> int:
    """Now, as Unix milliseconds."""
    return time.time_ns() // 1_000_000


class EncodableMessage(Protocol):
    """A message that can be written: its JSON, and a place where its encoded form is kept."""

    @property
    def role(self) -> str: ...
    @property
    def wire(self) -> dict[object, bytes]: ...
    def to_json(self) -> JsonObject: ...


class UserMessage(Struct, frozen=True):
    """What the user, or something on the user's behalf, said."""

    role: ClassVar[Literal["user"]] = "user"
    content: str | Sequence[UserContent]
    timestamp: int = field(default_factory=now_ms)
    extra: JsonObject | None = None
    wire: dict[object, bytes] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The text of all its text blocks, joined by line ends."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(block.text for block in self.content if isinstance(block, TextContent))

    def to_json(self) -> JsonObject:
        content: Json = self.content if isinstance(self.content, str) else [b.to_json() for b in self.content]
        raw: JsonObject = {"role": "user", "content": content, "timestamp": self.timestamp}
        return raw if self.extra is None else {**raw, **self.extra}

    def __eq__(self, other: object) -> bool:
        return _same(self, other)

    def __repr__(self) -> str:
        return _described(self)


class AssistantMessage(Struct):
    """An answer of a model. While it streams it grows in place and its `stop_reason` is `pending`."""

    role: ClassVar[Literal["assistant"]] = "assistant"
    content: list[AssistantContent]
    api: str
    provider: str
    model: str
    usage: Usage = Usage()
    stop_reason: StopReason = "stop"
    timestamp: int = field(default_factory=now_ms)
    error_message: str | None = None
    response_id: str | None = None
    response_model: str | None = None
    raw_stop_reason: str | None = None
    thinking_level: str | None = None
    duration_ms: int | None = None
    deferred: JsonObject | None = None
    extra: JsonObject | None = None
    wire: dict[object, bytes] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The text of all its text blocks, joined."""
        return "".join(block.text for block in self.content if isinstance(block, TextContent))

    @property
    def failed(self) -> bool:
        """Whether it is no answer: the request failed, or was given up."""
        return self.stop_reason in ("error", "aborted")

    @property
    def error_details(self) -> ErrorDetails | None:
        """The facts of the failure, where the answer carries any."""
        return None if self.extra is None else ErrorDetails.from_json(self.extra.get("errorDetails"))

    @property
    def tool_calls(self) -> list[ToolCall]:
        return [block for block in self.content if isinstance(block, ToolCall)]

    def to_json(self) -> JsonObject:
        raw: JsonObject = {
            "role": "assistant",
            "content": [block.to_json() for block in self.content],
            "api": self.api,
            "provider": self.provider,
            "model": self.model,
            "usage": self.usage.to_json(),
            "stopReason": self.stop_reason,
            "timestamp": self.timestamp,
        }
        for name, key in _ASSISTANT_OPTIONAL:
            value = getattr(self, name)
            if value is not None:
                raw[key] = value
        return raw if self.extra is None else {**raw, **self.extra}

    def __eq__(self, other: object) -> bool:
        return _same(self, other)

    def __repr__(self) -> str:
        return _described(self)


class ToolResultMessage(Struct, frozen=True):
    """What a tool answered to one call. `details` is for people and programs; the model sees `content`."""

    role: ClassVar[Literal["toolResult"]] = "toolResult"
    tool_call_id: str
    tool_name: str
    content: Sequence[UserContent]
    is_error: bool = False
    details: Json = None
    usage: Usage | None = None
    duration_ms: int | None = None
    timestamp: int = field(default_factory=now_ms)
    extra: JsonObject | None = None
    wire: dict[object, bytes] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The text of all its text blocks, joined by line ends."""
        return "\n".join(block.text for block in self.content if isinstance(block, TextContent))

    def to_json(self) -> JsonObject:
        raw: JsonObject = {
            "role": "toolResult",
            "toolCallId": self.tool_call_id,
            "toolName": self.tool_name,
            "content": [block.to_json() for block in self.content],
        }
        if self.details is not None:
            raw["details"] = self.details
        if self.usage is not None:
            raw["usage"] = self.usage.to_json()
        raw["isError"] = self.is_error
        if self.duration_ms is not None:
            raw["durationMs"] = self.duration_ms
        raw["timestamp"] = self.timestamp
        return raw if self.extra is None else {**raw, **self.extra}

    def __eq__(self, other: object) -> bool:
        return _same(self, other)

    def __repr__(self) -> str:
        return _described(self)


class UnknownMessage(Struct, frozen=True):
    """A message of a role this version does not know, kept as it was and never sent to a model."""

    raw: JsonObject
    wire: dict[object, bytes] = field(default_factory=dict)

    @property
    def role(self) -> str:
        role = self.raw.get("role")
        return role if isinstance(role, str) else "unknown"

    @property
    def timestamp(self) -> int:
        timestamp = self.raw.get("timestamp")
        return timestamp if isinstance(timestamp, int) else 0

    @property
    def text(self) -> str:
        """The text of all its text blocks, joined by line ends; empty when it holds none that can be told."""
        content = self.raw.get("content")
        if isinstance(content, str):
            return content
        blocks = [content_from_json(block) for block in content] if isinstance(content, list) else []
        return "\n".join(block.text for block in blocks if isinstance(block, TextContent))

    def to_json(self) -> JsonObject:
        return self.raw

    def __eq__(self, other: object) -> bool:
        return _same(self, other)

    def __repr__(self) -> str:
        return _described(self)


Message: TypeAlias = UserMessage | AssistantMessage | ToolResultMessage
"""What a model can be sent."""

_M = TypeVar("_M", bound=Message)


def replace(message: _M, **changes: object) -> _M:
    """A copy of `message` with some fields changed, encoded anew."""
    return msgspec.structs.replace(message, wire={}, **changes)


def encode_message(message: EncodableMessage) -> bytes:
    """The message as compact JSON, made once and kept with it; of a message that still grows, made each time.

    Raises TypeError when `details` or another free field holds what JSON has no form for.
    """
    encoded = message.wire.get("json")
    if encoded is None:
        encoded = encode_json(message.to_json())
        if not isinstance(message, AssistantMessage) or message.stop_reason != "pending":
            message.wire["json"] = encoded
    return encoded


def message_from_json(raw: JsonObject) -> Message | UnknownMessage:
    """A message from its JSON. Never raises: what does not fit becomes an :class:`UnknownMessage`."""
    match raw.get("role"):
        case "user":
            message: Message | None = _user(raw)
        case "assistant":
            message = _assistant(raw)
        case "toolResult":
            message = _tool_result(raw)
        case _:
            message = None
    return UnknownMessage(raw) if message is None else message


def _user(raw: JsonObject) -> UserMessage | None:
    content = raw.get("content")
    if not isinstance(content, str | list | None):
        return None
    blocks = content if isinstance(content, str) else cast("list[UserContent]", _blocks(content))
    return UserMessage(blocks, _timestamp(raw), kept_fields(raw, _USER))


def _assistant(raw: JsonObject) -> AssistantMessage | None:
    content = raw.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list | None):
        return None
    extra = kept_fields(raw, _ASSISTANT)
    if extra is not None and not extra.keys().isdisjoint(_NAMES):
        return None
    stop = raw.get("stopReason", "stop")
    if not isinstance(stop, str) or stop not in _STOP_REASONS:
        stop, extra = "stop", {**(extra or {}), "stopReason": stop}
    typed = raw if extra is None else {key: value for key, value in raw.items() if key not in extra}
    get = cast("Callable[..., Any]", typed.get)
    return AssistantMessage(
        cast("list[AssistantContent]", _blocks(content)),
        get("api", ""),
        get("provider", ""),
        get("model", ""),
        Usage.from_json(get("usage")),
        cast("StopReason", stop),
        _timestamp(raw),
        error_message=get("errorMessage"),
        response_id=get("responseId"),
        response_model=get("responseModel"),
        raw_stop_reason=get("rawStopReason"),
        thinking_level=get("thinkingLevel"),
        duration_ms=get("durationMs"),
        deferred=get("deferred"),
        extra=extra,
    )


def _tool_result(raw: JsonObject) -> ToolResultMessage | None:
    call_id, name, content = raw.get("toolCallId"), raw.get("toolName"), raw.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not (isinstance(call_id, str) and isinstance(name, str) and isinstance(content, list | None)):
        return None
    usage, duration = raw.get("usage"), raw.get("durationMs")
    return ToolResultMessage(
        call_id,
        name,
        cast("list[UserContent]", _blocks(content)),
        raw.get("isError") is True,
        raw.get("details"),
        Usage.from_json(usage) if isinstance(usage, dict) else None,
        duration if isinstance(duration, int) else None,
        _timestamp(raw),
        kept_fields(raw, _RESULT),
    )


def _blocks(content: list[Json] | None) -> list[Any]:
    return [content_from_json(block) for block in content or ()]


def _timestamp(raw: JsonObject) -> int:
    timestamp = raw.get("timestamp")
    if isinstance(timestamp, float):
        return int(timestamp) if abs(timestamp) < 1e18 else 0
    return int(timestamp) if isinstance(timestamp, int) else 0


def _described(message: Struct) -> str:
    """The fields that are set, without the encoded forms that are kept beside them."""
    fields = ((name, getattr(message, name)) for name in message.__struct_fields__ if name != "wire")
    set_fields = ", ".join(f"{name}={value!r}" for name, value in fields if value is not None)
    return f"{type(message).__name__}({set_fields})"


def _same(message: EncodableMessage, other: object) -> bool:
    return isinstance(other, type(message)) and other.to_json() == message.to_json()


_ASSISTANT_OPTIONAL = (
    ("error_message", "errorMessage"),
    ("response_id", "responseId"),
    ("response_model", "responseModel"),
    ("raw_stop_reason", "rawStopReason"),
    ("duration_ms", "durationMs"),
    ("thinking_level", "thinkingLevel"),
    ("deferred", "deferred"),
)
_NAMES = frozenset({"api", "provider", "model"})
_USER: dict[str, type | tuple[type, ...]] = {"role": str, "content": object, "timestamp": (int, float)}
_ASSISTANT: dict[str, type | tuple[type, ...]] = {
    **_USER,
    **dict.fromkeys(_NAMES, str),
    **{key: str for _, key in _ASSISTANT_OPTIONAL},
    "durationMs": int,
    "deferred": dict,
    "usage": dict,
    "stopReason": object,
}
_RESULT: dict[str, type | tuple[type, ...]] = {
    **_USER,
    "toolCallId": str,
    "toolName": str,
    "details": object,
    "usage": dict,
    "isError": bool,
    "durationMs": int,
}
