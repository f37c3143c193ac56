"""The files that the calls of a conversation read and changed, carried from summary to summary.

    details of a compaction or branch summary   {"readFiles": [paths], "modifiedFiles": [paths]}
    at the end of its text                      <read-files> and <modified-files>, a path a line

A file that was changed is not listed as read as well. Calls that failed count for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Self

from msgspec import Struct

from cantle_agent.messages import AgentMessage
from cantle_ai.codec import Json, JsonObject
from cantle_ai.messages import AssistantMessage, ToolResultMessage
from cantle_session.entries import BranchSummaryEntry, CompactionEntry, Entry

__all__ = ["FileLists", "without_lists"]

_READING = frozenset({"read"})
_CHANGING = frozenset({"write", "edit"})
_MOST_SHOWN = 200
_OPENING = re.compile(r"<(read-files|modified-files)>\n")


class FileLists(Struct, frozen=True):
    """Paths as the calls gave them, the latest touched last."""

    read: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()

    @classmethod
    def of_messages(cls, messages: Iterable[AgentMessage]) -> Self:
        """What the calls in `messages` touched, but for those whose results are errors."""
        calls: dict[str, tuple[str, str]] = {}
        done: list[tuple[str, str]] = []
        for message in messages:
            if isinstance(message, AssistantMessage):
                done += calls.values()
                calls = {
                    call.id: (call.name, path)
                    for call in message.tool_calls
                    if isinstance(path := call.arguments.get("path"), str) and path
                }
            elif isinstance(message, ToolResultMessage) and message.is_error:
                calls.pop(message.tool_call_id, None)
        done += calls.values()
        return cls(
            tuple(path for name, path in done if name in _READING),
            tuple(path for name, path in done if name in _CHANGING),
        )

    @classmethod
    def of_summaries(cls, entries: Iterable[Entry]) -> Self:
        """What the details of the summaries among `entries` say, but for those that hooks made: theirs are their own."""
        read: list[str] = []
        changed: list[str] = []
        for entry in entries:
            if isinstance(entry, CompactionEntry | BranchSummaryEntry) and not entry.from_hook:
                match entry.details:
                    case {"readFiles": list(some), "modifiedFiles": list(others)}:
                        read += _paths(some)
                        changed += _paths(others)
        return cls(tuple(read), tuple(changed))

    def __bool__(self) -> bool:
        return bool(self.read or self.changed)

    def then(self, later: FileLists) -> FileLists:
        """These and those touched `later`, each once."""
        changed = _once(*self.changed, *later.changed)
        have = set(changed)
        read = _once(*(path for path in (*self.read, *later.read) if path not in have))
        return FileLists(read, changed)

    def to_json(self) -> JsonObject:
        return {"readFiles": list(self.read), "modifiedFiles": list(self.changed)}

    def text(self) -> str:
        """The lists as they end a summary, the latest of long ones; empty without any."""
        lists = (("read-files", self.read), ("modified-files", self.changed))
        return "".join(_list(name, paths) for name, paths in lists if paths)


def without_lists(summary: str) -> str:
    """A summary without the lists at its end: they are made anew."""
    kept: list[str] = []
    at = 0
    unclosed: set[str] = set()  # looked for once only: a model may write the same tag a thousand times
    for opening in _OPENING.finditer(summary):
        if opening.start() < at or opening[1] in unclosed:
            continue
        closing = f"\n</{opening[1]}>"
        end = summary.find(closing, opening.end())
        if end < 0:
            unclosed.add(opening[1])
        else:
            kept.append(summary[at : opening.start()].rstrip())
            at = end + len(closing)
    return "".join((*kept, summary[at:]))


def _list(name: str, paths: tuple[str, ...]) -> str:
    left_out = len(paths) - _MOST_SHOWN
    shown = [path.replace("\n", " ") for path in paths[-_MOST_SHOWN:]]
    if left_out > 0:
        shown.insert(0, f"({left_out} more before these)")
    lines = "\n".join(shown)
    return f"\n\n<{name}>\n{lines}\n</{name}>"


def _once(*paths: str) -> tuple[str, ...]:
    """Each path at its last place."""
    return tuple(reversed(dict.fromkeys(reversed(paths))))


def _paths(values: list[Json]) -> list[str]:
    return [value for value in values if isinstance(value, str)]
