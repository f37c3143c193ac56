"""The session file, version 3: JSON Lines, split at LF only. The first line is the header, then entries.

    {"type":"session","version":3,"id":…,"timestamp":…,"cwd":…,"parentSession"?:…}
    {"type":…,"id":"8 hex digits","parentId":<id or null>,"timestamp":"2026-01-31T23:59:59.123Z", …}

    type                    fields of its own                                     a model sees
    message                 message                                               the message
    custom_message          customType, content, display, details?                its content
    compaction              summary, firstKeptEntryId, tokensBefore, details?,    the summary instead of
                            usage?, fromHook?, systemMessage?                     what comes before
    branch_summary          fromId, summary, details?, usage?, fromHook?          the summary
    context_edit            targetId, replacement: null or {content}              the target changed, or not
    model_change            provider, modelId                                     –
    thinking_level_change   thinkingLevel                                         –
    session_info            name?                                                 –
    custom                  customType, data?                                     –
    label                   targetId, label?                                      –
    usage                   kind, provider, model, usage, note?                   –

`parentId` links the entries to a tree; the last line is where the session stands. A file only grows: no line
is ever changed. An entry of another type, or one whose fields do not have their types, is an
:class:`UnknownEntry`, which keeps the JSON as it was; unknown fields of a known type are kept in `extra`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self, TypeAlias, get_args

from msgspec import Struct
from msgspec.structs import replace

from cantle_agent.messages import AgentMessage
from cantle_ai.codec import Json, JsonObject, encode_json, unknown_fields
from cantle_ai.content import UserContent
from cantle_ai.messages import AssistantMessage, ToolResultMessage
from cantle_ai.usage import Usage
from cantle_session.messages import agent_message_from_json, content_of, content_to_json

__all__ = [
    "VERSION",
    "BranchSummaryEntry",
    "CompactionEntry",
    "ContextEditEntry",
    "CustomEntry",
    "CustomMessageEntry",
    "Entry",
    "LabelEntry",
    "MessageEntry",
    "ModelChangeEntry",
    "SessionHeader",
    "SessionInfoEntry",
    "ThinkingLevelChangeEntry",
    "UnknownEntry",
    "UsageEntry",
    "entry_from_json",
    "usage_of",
]

VERSION = 3
"""The version that is written."""


class SessionHeader(Struct, frozen=True, kw_only=True):
    """The first line. `version` is what the file says, 1 where it says nothing, the current one where it says what
    can be no version; that stands in `extra` then.
    """

    id: str
    timestamp: str
    cwd: str
    version: int = VERSION
    parent_session: str | None = None
    extra: JsonObject | None = None

    def to_json(self) -> JsonObject:
        raw: JsonObject = {
            "type": "session",
            "version": self.version,
            "id": self.id,
            "timestamp": self.timestamp,
            "cwd": self.cwd,
        }
        if self.parent_session is not None:
            raw["parentSession"] = self.parent_session
        return raw if self.extra is None else {**raw, **self.extra}

    @property
    def odd_version(self) -> str | None:
        """What the file says that can be no version, as JSON; None where it says one, or nothing."""
        if self.extra is None or "version" not in self.extra:
            return None
        return encode_json(self.extra["version"]).decode()

    def current(self) -> SessionHeader:
        """The header of lines that were upgraded: the same, of the current version, or a newer one."""
        extra = {key: value for key, value in (self.extra or {}).items() if key != "version"}
        return replace(self, version=max(self.version, VERSION), extra=extra or None)


_Fields: TypeAlias = tuple[tuple[str, str, type | tuple[type, ...]], ...]
_NONE = type(None)
"""In place of `type(None)` where `type` is a field."""


class _Entry(Struct, frozen=True, kw_only=True):
    """What every entry has. Subclasses list their plain fields (attribute, key, types) and read and write the others."""

    id: str
    parent_id: str | None
    timestamp: str
    extra: JsonObject | None = None
    type: ClassVar[str] = ""
    _plain: ClassVar[_Fields] = ()
    _other: ClassVar[tuple[str, ...]] = ()

    def to_json(self) -> JsonObject:
        raw: JsonObject = {
            "type": self.type,
            "id": self.id,
            "parentId": self.parent_id,
            "timestamp": self.timestamp,
        }
        for name, key, _ in self._plain:
            value = getattr(self, name)
            if value is not None:
                raw[key] = value
        raw |= self._write()
        return raw if self.extra is None else {**raw, **self.extra}

    def _write(self) -> JsonObject:
        """The fields named in `_other`."""
        return {}

    @classmethod
    def _read(cls, raw: JsonObject) -> dict[str, object] | None:
        """The attributes made from the fields named in `_other`; None when they do not fit."""
        return {}

    @classmethod
    def from_json(cls, raw: JsonObject) -> Self | None:
        """The entry that `raw` is; None when a field does not have its type."""
        entry_id, parent_id, timestamp = raw.get("id"), raw.get("parentId"), raw.get("timestamp")
        values = cls._read(raw)
        if values is None or not isinstance(entry_id, str) or not isinstance(parent_id, str | None):
            return None
        for name, key, types in cls._plain:
            value = raw.get(key)
            if not isinstance(value, types):
                return None
            values[name] = value
        return cls(
            id=entry_id,
            parent_id=parent_id,
            timestamp=timestamp if isinstance(timestamp, str) else "",
            extra=unknown_fields(raw, _KNOWN_KEYS[cls.type]),
            **values,
        )


class MessageEntry(_Entry, frozen=True, kw_only=True):
    """A message of the conversation."""

    type: ClassVar[str] = "message"
    _other = ("message",)
    message: AgentMessage

    def _write(self) -> JsonObject:
        return {"message": self.message.to_json()}

    @classmethod
    def _read(cls, raw: JsonObject) -> dict[str, object] | None:
        message = raw.get("message")
        return {"message": agent_message_from_json(message)} if isinstance(message, dict) else None


class CustomMessageEntry(_Entry, frozen=True, kw_only=True):
    """A note that an extension puts into the conversation; `display` is for people, `details` for programs."""

    type: ClassVar[str] = "custom_message"
    _other = ("content", "display", "details")
    _plain = (("custom_type", "customType", str),)
    custom_type: str
    content: str | Sequence[UserContent]
    display: bool = True
    details: Json = None

    def _write(self) -> JsonObject:
        own: JsonObject = {"content": content_to_json(self.content), "display": self.display}
        return own if self.details is None else {**own, "details": self.details}

    @classmethod
    def _read(cls, raw: JsonObject) -> dict[str, object] | None:
        content = content_of(raw.get("content"))
        shown = {"display": raw.get("display") is not False, "details": raw.get("details")}
        return None if content is None else {"content": content, **shown}


class ModelChangeEntry(_Entry, frozen=True, kw_only=True):
    """From here on this model is asked."""

    type: ClassVar[str] = "model_change"
    _plain = (("provider", "provider", str), ("model_id", "modelId", str))
    provider: str
    model_id: str


class ThinkingLevelChangeEntry(_Entry, frozen=True, kw_only=True):
    """From here on the model is asked to think this much."""

    type: ClassVar[str] = "thinking_level_change"
    _plain = (("thinking_level", "thinkingLevel", str),)
    thinking_level: str


class SessionInfoEntry(_Entry, frozen=True, kw_only=True):
    """The session's name from now on, on every branch; empty or None takes it away."""

    type: ClassVar[str] = "session_info"
    _plain = (("name", "name", (str, _NONE)),)
    name: str | None = None


class CustomEntry(_Entry, frozen=True, kw_only=True):
    """What an extension remembers. No model sees it."""

    type: ClassVar[str] = "custom"
    _plain = (("custom_type", "customType", str), ("data", "data", object))
    custom_type: str
    data: Json = None


class LabelEntry(_Entry, frozen=True, kw_only=True):
    """A person's mark on the entry `target_id`; None takes it away."""

    type: ClassVar[str] = "label"
    _plain = (("target_id", "targetId", str), ("label", "label", (str, _NONE)))
    target_id: str
    label: str | None = None


class ContextEditEntry(_Entry, frozen=True, kw_only=True):
    """Changes what a model sees of the entry `target_id`: nothing (None), or other content (`{"content": …}`)."""

    type: ClassVar[str] = "context_edit"
    _other = ("replacement",)
    _plain = (("target_id", "targetId", str),)
    target_id: str
    replacement: JsonObject | None

    def _write(self) -> JsonObject:
        return {"replacement": self.replacement}

    @classmethod
    def _read(cls, raw: JsonObject) -> dict[str, object] | None:
        match raw:
            case {"replacement": None}:
                return {"replacement": None}
            case {"replacement": {"content": str() | list()} as replacement}:
                return {"replacement": replacement}
        return None


class UsageEntry(_Entry, frozen=True, kw_only=True):
    """Model work that is no answer, such as keeping a cache warm. Counts in the session's totals."""

    type: ClassVar[str] = "usage"
    _other = ("usage",)
    _plain = (
        ("kind", "kind", str),
        ("provider", "provider", str),
        ("model", "model", str),
        ("note", "note", (str, _NONE)),
    )
    kind: str
    provider: str
    model: str
    usage: Usage
    note: str | None = None

    def _write(self) -> JsonObject:
        return {"usage": self.usage.to_json()}

    @classmethod
    def _read(cls, raw: JsonObject) -> dict[str, object] | None:
        return {"usage": Usage.from_json(raw.get("usage"))}


class CompactionEntry(_Entry, frozen=True, kw_only=True):
    """A summary that stands for what came before `first_kept_entry_id`; its own id there means: for everything.

    `system_message` is the reference's record of its prompt, kept and never sent.
    """

    type: ClassVar[str] = "compaction"
    _other = ("usage",)
    _plain = (
        ("summary", "summary", str),
        ("first_kept_entry_id", "firstKeptEntryId", str),
        ("tokens_before", "tokensBefore", (int, float, _NONE)),
        ("details", "details", object),
        ("from_hook", "fromHook", (bool, _NONE)),
        ("system_message", "systemMessage", (dict, _NONE)),
    )
    summary: str
    first_kept_entry_id: str
    tokens_before: float | None = 0
    details: Json = None
    from_hook: bool | None = None
    system_message: JsonObject | None = None
    usage: Usage | None = None

    def _write(self) -> JsonObject:
        return {} if self.usage is None else {"usage": self.usage.to_json()}

    @classmethod
    def _read(cls, raw: JsonObject) -> dict[str, object] | None:
        return {"usage": Usage.from_json(raw["usage"]) if "usage" in raw else None}


class BranchSummaryEntry(_Entry, frozen=True, kw_only=True):
    """What happened on the branch that was left at `from_id`."""

    type: ClassVar[str] = "branch_summary"
    _other = ("fromId", "usage")
    _plain = (
        ("summary", "summary", str),
        ("details", "details", object),
        ("from_hook", "fromHook", (bool, _NONE)),
    )
    from_id: str | None
    summary: str
    details: Json = None
    from_hook: bool | None = None
    usage: Usage | None = None

    def _write(self) -> JsonObject:
        own: JsonObject = {"fromId": self.from_id}
        return own if self.usage is None else {**own, "usage": self.usage.to_json()}

    @classmethod
    def _read(cls, raw: JsonObject) -> dict[str, object] | None:
        from_id = raw.get("fromId")
        usage = Usage.from_json(raw["usage"]) if "usage" in raw else None
        return {"from_id": from_id, "usage": usage} if isinstance(from_id, str | None) else None


class UnknownEntry(Struct, frozen=True):
    """An entry of a type, or with fields, that this version does not know, kept as it was."""

    raw: JsonObject

    @property
    def type(self) -> str:
        return str(self.raw.get("type"))

    @property
    def id(self) -> str:
        return str(self.raw.get("id"))

    @property
    def parent_id(self) -> str | None:
        parent = self.raw.get("parentId")
        return parent if isinstance(parent, str) else None

    @property
    def timestamp(self) -> str:
        timestamp = self.raw.get("timestamp")
        return timestamp if isinstance(timestamp, str) else ""

    def to_json(self) -> JsonObject:
        return self.raw


_KnownEntry: TypeAlias = (
    MessageEntry
    | CustomMessageEntry
    | ModelChangeEntry
    | ThinkingLevelChangeEntry
    | SessionInfoEntry
    | CustomEntry
    | LabelEntry
    | ContextEditEntry
    | UsageEntry
    | CompactionEntry
    | BranchSummaryEntry
)
Entry: TypeAlias = _KnownEntry | UnknownEntry


def usage_of(entry: Entry) -> Usage | None:
    """What an entry took; None where it took nothing, or nobody counted."""
    match entry:
        case MessageEntry(message=AssistantMessage() | ToolResultMessage() as message):
            return message.usage
        case CompactionEntry() | BranchSummaryEntry() | UsageEntry():
            return entry.usage
    return None


def entry_from_json(raw: JsonObject) -> Entry:
    """An entry from its JSON. Never raises: what does not fit becomes an :class:`UnknownEntry`."""
    name = raw.get("type")
    kind = _TYPES.get(name) if isinstance(name, str) else None
    return (None if kind is None else kind.from_json(raw)) or UnknownEntry(raw)


_BASE_KEYS = frozenset({"type", "id", "parentId", "timestamp"})
_TYPES: dict[str, type[_KnownEntry]] = {kind.type: kind for kind in get_args(_KnownEntry)}
_KNOWN_KEYS = {
    name: _BASE_KEYS.union(kind._other, (key for _, key, _ in kind._plain)) for name, kind in _TYPES.items()
}
