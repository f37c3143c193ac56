"""What an entry is called in one line, when it was, and by which name a page can be sent to it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from cantle.export.markup import clean
from cantle_ai.codec import encode_json
from cantle_ai.messages import AssistantMessage, ToolResultMessage, UnknownMessage, UserMessage
from cantle_session.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    CustomEntry,
    CustomMessageEntry,
    Entry,
    MessageEntry,
)
from cantle_session.messages import (
    BashExecutionMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    ExtensionMessage,
)

__all__ = ["anchors", "clock", "day", "gist", "one_line", "pretty_json", "said"]

_SAFE_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(:\d\d)?")
_MARKS = re.compile(r"`+(?:\w*\n)?|\*\*|^#+ ", re.MULTILINE)
_ROOM = 8
"""How many times its own length of a text is looked at for a line of it."""


def one_line(text: str, length: int = 100) -> str:
    """The beginning of `text` on one line of at most `length` characters."""
    line = " ".join(clean(text[: length * _ROOM]).split())
    return line if len(line) <= length else line[: length - 1].rstrip() + "…"


def said(text: str, length: int = 100) -> str:
    """:func:`one_line` of Markdown, without what Markdown puts around words."""
    return one_line(_MARKS.sub("", text[: length * _ROOM]), length)


def gist(entry: Entry, length: int = 100) -> str:
    """An entry in one line."""
    match entry:
        case MessageEntry():
            return _message_gist(entry, length)
        case CompactionEntry():
            return "Summary of earlier history"
        case BranchSummaryEntry():
            return "Summary of another branch"
        case CustomMessageEntry(custom_type=name) | CustomEntry(custom_type=name):
            return one_line(name, length)
    return one_line(entry.type.replace("_", " "), length)


def anchors(entries: Sequence[Entry]) -> list[str]:
    """For each entry the name of its place in the page: by its id, where that can be one and no other has it."""
    taken: set[str] = set()
    names = []
    for position, entry in enumerate(entries):
        name = f"e-{entry.id}"
        if entry.id in taken or _SAFE_ID.fullmatch(entry.id) is None:
            name = f"n-{position}"
        taken.add(entry.id)
        names.append(name)
    return names


def day(timestamp: str) -> str:
    """The date of an entry's time; empty when it has none."""
    match = _TIME.match(timestamp)
    return match[1] if match else ""


def clock(timestamp: str) -> str:
    """The time of the day; empty when there is none."""
    match = _TIME.match(timestamp)
    return match[2] if match else ""


def pretty_json(value: object) -> str:
    """JSON over several lines; on one where it is nested too deeply, and a sentence where it is none."""
    try:
        return json.dumps(value, indent=2, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        pass
    try:
        return encode_json(value).decode("utf-8", "replace")
    except TypeError:
        return "(nested too deeply to be shown)"


def _message_gist(entry: MessageEntry, length: int) -> str:
    message = entry.message
    match message:
        case AssistantMessage():
            tools = ", ".join(call.name for call in message.tool_calls[:8])
            return said(message.text, length) or one_line(tools, length) or "an answer without text"
        case ToolResultMessage():
            return one_line(f"{message.tool_name}: {message.text[: length * _ROOM]}", length)
        case BashExecutionMessage():
            return one_line(f"$ {message.command}", length)
        case BranchSummaryMessage():
            return "Summary of another branch"
        case CompactionSummaryMessage():
            return "Summary of earlier history"
        case UserMessage() | ExtensionMessage():
            return said(message.text, length) or "images"
        case UnknownMessage():
            return one_line(f"{message.role} message", length)
    return one_line(message.role, length)
