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
from collections.abc import Sequence
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

_M = TypeVar("_M", UserMessage, AssistantMessage, ToolResultMessage)


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
    return UserMessage(blocks, _timestamp(raw), kept_fields(raw, _USER_KEYS, _USER_OPTIONAL))


def _assistant(raw: JsonObject) -> AssistantMessage | None:
    content = raw.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    names = cast("list[str]", [raw.get(key, "") for key in ("api", "provider", "model")])
    if not isinstance(content, list | None) or not all(isinstance(name, str) for name in names):
        return None
    stop = raw.get("stopReason", "stop")
    known_stop = isinstance(stop, str) and stop in _STOP_REASONS
    known = _ASSISTANT_KEYS if known_stop else _ASSISTANT_KEYS - {"stopReason"}
    optional = {
        name: value
        for name, key in _ASSISTANT_OPTIONAL
        if isinstance(value := raw.get(key), _ASSISTANT_TYPES[key])
    }
    return AssistantMessage(
        cast("list[AssistantContent]", _blocks(content)),
        **cast("dict[str, Any]", optional),
        api=names[0],
        provider=names[1],
        model=names[2],
        usage=Usage.from_json(raw.get("usage")),
        stop_reason=cast("StopReason", stop if known_stop else "stop"),
        timestamp=_timestamp(raw),
        extra=kept_fields(raw, known, _ASSISTANT_TYPES),
    )


def _tool_result(raw: JsonObject) -> ToolResultMessage | None:
    match raw:
        case {"toolCallId": str(call_id), "toolName": str(name)}:
            content = raw.get("content")
            duration = raw.get("durationMs")
            if isinstance(content, str):
                content = [{"type": "text", "text": content}]
            if not isinstance(content, list | None):
                return None
            return ToolResultMessage(
                call_id,
                name,
                cast("list[UserContent]", _blocks(content)),
                is_error=raw.get("isError") is True,
                details=raw.get("details"),
                usage=Usage.from_json(raw["usage"]) if isinstance(raw.get("usage"), dict) else None,
                duration_ms=duration if isinstance(duration, int) else None,
                timestamp=_timestamp(raw),
                extra=kept_fields(raw, _RESULT_KEYS, _RESULT_OPTIONAL),
            )
    return None


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
_USER_KEYS = frozenset({"role", "content", "timestamp"})
_ASSISTANT_KEYS = frozenset(
    {"role", "content", "api", "provider", "model", "usage", "stopReason", "timestamp"}
) | {key for _, key in _ASSISTANT_OPTIONAL}
_RESULT_KEYS = frozenset(
    {"role", "toolCallId", "toolName", "content", "details", "usage", "isError", "durationMs", "timestamp"}
)
_ASSISTANT_TYPES: dict[str, type | tuple[type, ...]] = {
    **{key: str for _, key in _ASSISTANT_OPTIONAL},
    "durationMs": int,
    "deferred": dict,
    "usage": dict,
    "timestamp": (int, float),
}
_USER_OPTIONAL: dict[str, type | tuple[type, ...]] = {"timestamp": (int, float)}
_RESULT_OPTIONAL: dict[str, type | tuple[type, ...]] = {
    "isError": bool,
    "durationMs": int,
    "usage": dict,
    "timestamp": (int, float),
}
