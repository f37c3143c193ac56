"""The messages that a coding agent adds to the three roles of a model.

    {"role": "bashExecution", "command", "output", "exitCode"?, "cancelled", "truncated",
     "fullOutputPath"?, "excludeFromContext"?, "timestamp"}           a command that a person ran
    {"role": "custom", "customType", "content", "display", "details"?, "timestamp"}     an extension's note
    {"role": "branchSummary", "summary", "fromId", "timestamp"}       what happened on a branch that was left
    {"role": "compactionSummary", "summary", "tokensBefore", "timestamp"}     what stands for earlier history

A model reads each of them as a user's message. A message with the role `system`, which newer versions of
the reference record, is an :class:`~cantle_ai.messages.UnknownMessage`: kept, and never sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal, cast

from msgspec import field

from cantle_agent.messages import AgentMessage, CustomMessage
from cantle_ai.codec import Json, JsonObject, unknown_fields
from cantle_ai.content import UserContent, content_from_json
from cantle_ai.messages import UserMessage, message_from_json

__all__ = [
    "BashExecutionMessage",
    "BranchSummaryMessage",
    "CompactionSummaryMessage",
    "ExtensionMessage",
    "agent_message_from_json",
    "content_of",
    "content_to_json",
]


class _Shown(CustomMessage, frozen=True, kw_only=True):
    """A message that a model reads as a user's, made once so that it is also encoded once."""

    extra: JsonObject | None = None
    shown: list[UserMessage | None] = field(default_factory=list)

    def to_llm(self) -> UserMessage | None:
        if not self.shown:
            content = self._content()
            self.shown.append(UserMessage(content, self.timestamp) if content else None)
        return self.shown[0]

    def _content(self) -> str | Sequence[UserContent]:
        """What the model reads; nothing leaves the message out."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and other.to_json() == self.to_json()


class BashExecutionMessage(_Shown, frozen=True, kw_only=True):
    """A shell command that a person ran beside the conversation. `exit_code` is None if it never ended itself."""

    role: ClassVar[Literal["bashExecution"]] = "bashExecution"
    command: str
    output: str
    exit_code: int | None = None
    cancelled: bool = False
    truncated: bool = False
    full_output_path: str | None = None
    exclude_from_context: bool = False

    def to_json(self) -> JsonObject:
        raw: JsonObject = {"role": "bashExecution", "command": self.command, "output": self.output}
        if self.exit_code is not None:
            raw["exitCode"] = self.exit_code
        raw |= {"cancelled": self.cancelled, "truncated": self.truncated}
        if self.full_output_path is not None:
            raw["fullOutputPath"] = self.full_output_path
        if self.exclude_from_context:
            raw["excludeFromContext"] = True
        raw["timestamp"] = self.timestamp
        return raw if self.extra is None else {**raw, **self.extra}

    def _content(self) -> str:
        if self.exclude_from_context:
            return ""
        parts = [f"I ran this in my shell:\n$ {self.command}"]
        output = self.output.rstrip("\n")
        parts.append(f"It printed:\n{output}" if output else "It printed nothing.")
        if self.cancelled:
            parts.append("I stopped it before it ended.")
        elif self.exit_code:
            parts.append(f"Its exit status was {self.exit_code}.")
        if self.truncated:
            whole = f" The whole of it is in {self.full_output_path}." if self.full_output_path else ""
            parts.append(f"The output above is cut.{whole}")
        return "\n\n".join(parts)


class ExtensionMessage(_Shown, frozen=True, kw_only=True):
    """A note that an extension puts into the conversation (the role `custom`). `details` stay out of it."""

    role: ClassVar[Literal["custom"]] = "custom"
    custom_type: str
    content: str | Sequence[UserContent]
    display: bool = True
    details: Json = None

    def to_json(self) -> JsonObject:
        raw: JsonObject = {
            "role": "custom",
            "customType": self.custom_type,
            "content": content_to_json(self.content),
            "display": self.display,
        }
        if self.details is not None:
            raw["details"] = self.details
        raw["timestamp"] = self.timestamp
        return raw if self.extra is None else {**raw, **self.extra}

    def _content(self) -> str | Sequence[UserContent]:
        return self.content


class BranchSummaryMessage(_Shown, frozen=True, kw_only=True):
    """What happened on a branch before it was left at the entry `from_id`."""

    role: ClassVar[Literal["branchSummary"]] = "branchSummary"
    summary: str
    from_id: str | None = None

    def to_json(self) -> JsonObject:
        raw: JsonObject = {
            "role": "branchSummary",
            "summary": self.summary,
            "fromId": self.from_id,
            "timestamp": self.timestamp,
        }
        return raw if self.extra is None else {**raw, **self.extra}

    def _content(self) -> str:
        return f"{_BRANCH}\n\n<branch-summary>\n{self.summary}\n</branch-summary>" if self.summary else ""


class CompactionSummaryMessage(_Shown, frozen=True, kw_only=True):
    """What stands for the history before it. `tokens_before` is the size of what it replaced."""

    role: ClassVar[Literal["compactionSummary"]] = "compactionSummary"
    summary: str
    tokens_before: int = 0

    def to_json(self) -> JsonObject:
        raw: JsonObject = {
            "role": "compactionSummary",
            "summary": self.summary,
            "tokensBefore": self.tokens_before,
            "timestamp": self.timestamp,
        }
        return raw if self.extra is None else {**raw, **self.extra}

    def _content(self) -> str:
        return f"{_COMPACTION}\n\n<history-summary>\n{self.summary}\n</history-summary>"


_BRANCH = "We tried another way from here and came back. A summary of that attempt:"
_COMPACTION = "To save room, the earlier part of our conversation was replaced by this summary of it:"


def agent_message_from_json(raw: JsonObject) -> AgentMessage:
    """A message from its JSON. Never raises: what does not fit becomes an `UnknownMessage`."""
    role = raw.get("role")
    make = _ROLES.get(role) if isinstance(role, str) else None
    message = None if make is None else make(raw)
    return message_from_json(raw) if message is None else message


def content_of(raw: Json) -> str | Sequence[UserContent] | None:
    """A user's content from its JSON; None when it is neither a string nor a list."""
    if isinstance(raw, str):
        return raw
    return cast("list[UserContent]", [content_from_json(b) for b in raw]) if isinstance(raw, list) else None


def content_to_json(content: str | Sequence[UserContent]) -> Json:
    """The JSON of a user's content."""
    return content if isinstance(content, str) else [block.to_json() for block in content]


def _time_of(raw: JsonObject) -> int:
    timestamp = raw.get("timestamp")
    return int(timestamp) if isinstance(timestamp, int | float) and abs(timestamp) < 1e18 else 0


def _bash(raw: JsonObject) -> AgentMessage | None:
    match raw:
        case {"command": str(command), "output": str(output)}:
            code, path = raw.get("exitCode"), raw.get("fullOutputPath")
            if isinstance(code, int | None) and isinstance(path, str | None):
                return BashExecutionMessage(
                    command=command,
                    output=output,
                    exit_code=code,
                    cancelled=raw.get("cancelled") is True,
                    truncated=raw.get("truncated") is True,
                    full_output_path=path,
                    exclude_from_context=raw.get("excludeFromContext") is True,
                    timestamp=_time_of(raw),
                    extra=unknown_fields(raw, _BASH_KEYS),
                )
    return None


def _extension(raw: JsonObject) -> AgentMessage | None:
    content, custom_type = content_of(raw.get("content")), raw.get("customType")
    if content is None or not isinstance(custom_type, str):
        return None
    return ExtensionMessage(
        custom_type=custom_type,
        content=content,
        display=raw.get("display") is not False,
        details=raw.get("details"),
        timestamp=_time_of(raw),
        extra=unknown_fields(raw, _EXTENSION_KEYS),
    )


def _branch_summary(raw: JsonObject) -> AgentMessage | None:
    summary, from_id = raw.get("summary"), raw.get("fromId")
    if not isinstance(summary, str) or not isinstance(from_id, str | None):
        return None
    extra = unknown_fields(raw, _BRANCH_KEYS)
    return BranchSummaryMessage(summary=summary, from_id=from_id, timestamp=_time_of(raw), extra=extra)


def _compaction_summary(raw: JsonObject) -> AgentMessage | None:
    summary, tokens = raw.get("summary"), raw.get("tokensBefore", 0)
    if not isinstance(summary, str) or not isinstance(tokens, int):
        return None
    extra = unknown_fields(raw, _COMPACTION_KEYS)
    return CompactionSummaryMessage(
        summary=summary, tokens_before=tokens, timestamp=_time_of(raw), extra=extra
    )


_ROLES = {
    "bashExecution": _bash,
    "custom": _extension,
    "branchSummary": _branch_summary,
    "compactionSummary": _compaction_summary,
}
_BASH_KEYS = frozenset(
    {
        "role", "command", "output", "exitCode", "cancelled", "truncated", "fullOutputPath",
        "excludeFromContext", "timestamp",
    }
)  # fmt: skip
_EXTENSION_KEYS = frozenset({"role", "customType", "content", "display", "details", "timestamp"})
_BRANCH_KEYS = frozenset({"role", "summary", "fromId", "timestamp"})
_COMPACTION_KEYS = frozenset({"role", "summary", "tokensBefore", "timestamp"})
