"""What an entry of a session is, in a word and in one line."""

from __future__ import annotations

from collections.abc import Sequence

from cantle.sessions_command.table import one_line, quantity
from cantle_agent.messages import AgentMessage
from cantle_ai.codec import encode_json
from cantle_ai.content import Content, ImageContent, ThinkingContent, ToolCall
from cantle_ai.messages import AssistantMessage, ToolResultMessage, UnknownMessage, UserMessage
from cantle_session.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    ContextEditEntry,
    CustomEntry,
    CustomMessageEntry,
    Entry,
    LabelEntry,
    MessageEntry,
    ModelChangeEntry,
    SessionInfoEntry,
    ThinkingLevelChangeEntry,
    UsageEntry,
)
from cantle_session.messages import (
    BashExecutionMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    ExtensionMessage,
)

__all__ = ["describe", "spoken_kind"]

_LOOKED_AT = 1000
"""Characters that an entry is described by."""
_SPOKEN = {
    "tool": "result",  # as a search has it
    "toolResult": "result",
    "bashExecution": "shell",
    "custom": "note",
    "custom_message": "note",
    "branchSummary": "branch summary",
    "compactionSummary": "compaction",
    "session_info": "name",
}


def describe(entry: Entry) -> tuple[str, str]:
    """A word for the kind of `entry`, and how what it holds begins: one line, longer than any terminal's, and safe
    for one.
    """
    kind, text = _described(entry)
    return one_line(kind), one_line(text.lstrip()[:_LOOKED_AT])


def _described(entry: Entry) -> tuple[str, str]:
    match entry:
        case MessageEntry():
            return _message(entry.message)
        case CustomMessageEntry():
            return "note", f"{entry.custom_type}: {_text(entry.content)}"
        case CompactionEntry():
            return "compaction", f"of {entry.tokens_before or 0:,.0f} tokens: {entry.summary}"
        case BranchSummaryEntry():
            return "branch summary", entry.summary
        case ContextEditEntry():
            what = "is left out" if entry.replacement is None else "is replaced"
            return "context edit", f"{entry.target_id} {what}"
        case ModelChangeEntry():
            return "model", f"{entry.provider}/{entry.model_id}"
        case ThinkingLevelChangeEntry():
            return "thinking", entry.thinking_level
        case SessionInfoEntry():
            return "name", entry.name or "(taken away)"
        case LabelEntry():
            what = "(taken away)" if entry.label is None else entry.label
            return "label", f"{entry.target_id}: {what}"
        case CustomEntry():
            return "custom", entry.custom_type
        case UsageEntry():
            tokens = quantity(entry.usage.total_tokens, "token")
            why = f" ({entry.note})" if entry.note else ""
            return "usage", f"{entry.kind}, {entry.provider}/{entry.model}: {tokens}{why}"
    return entry.type, "(of a kind that is not known here)"


def spoken_kind(kind: str) -> str:
    """A message's role, or an entry's type, in the words that :func:`describe` has for it."""
    return _SPOKEN.get(kind) or kind.replace("_", " ")


def _message(message: AgentMessage) -> tuple[str, str]:
    match message:
        case UserMessage():
            return "user", _text(message.content)
        case AssistantMessage():
            return "assistant", _answer(message)
        case ToolResultMessage():
            failed = " failed" if message.is_error else ""
            return "result", f"{message.tool_name}{failed}: {_text(message.content)}"
        case BashExecutionMessage():
            return "shell", f"$ {message.command}"
        case ExtensionMessage():
            return "note", f"{message.custom_type}: {_text(message.content)}"
        case BranchSummaryMessage():
            return "branch summary", message.summary
        case CompactionSummaryMessage():
            return "compaction", message.summary
        case UnknownMessage():
            return message.role, message.text
    return message.role, ""


def _answer(message: AssistantMessage) -> str:
    calls = [f"→ {call.name} {_arguments(call)}" for call in message.tool_calls]
    ending = "" if message.stop_reason in ("stop", "toolUse") else f"({message.stop_reason})"
    if message.error_message:
        ending = f"({message.stop_reason}: {message.error_message})"
    said = message.text or ("" if calls or ending else _text(message.content))
    return " ".join(part for part in (said, *calls, ending) if part)


def _arguments(call: ToolCall) -> str:
    return call.invalid_arguments or encode_json(call.arguments).decode("utf-8", "replace")


def _text(content: str | Sequence[Content]) -> str:
    return content if isinstance(content, str) else " ".join(map(_block, content))


def _block(block: Content) -> str:
    match block:
        case ImageContent():
            return f"[{block.mime_type}]"
        case ThinkingContent():
            return "[thinking]"
        case ToolCall():
            return f"→ {block.name}"
    return getattr(block, "text", "[something that is not known here]")
