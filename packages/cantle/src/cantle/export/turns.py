"""Who speaks, which result belongs to which call, and which answers make a turn.

A run is a part of a branch: positions of entries that follow one another.
"""

from __future__ import annotations

from collections.abc import Sequence

from cantle_ai.messages import AssistantMessage, ToolResultMessage
from cantle_session.entries import (
    ContextEditEntry,
    CustomEntry,
    Entry,
    LabelEntry,
    MessageEntry,
    ModelChangeEntry,
    SessionInfoEntry,
    ThinkingLevelChangeEntry,
    UsageEntry,
)

__all__ = ["is_note", "results_of", "speaker_of", "turns_of"]


def results_of(entries: Sequence[Entry], run: Sequence[int]) -> dict[tuple[int, str], int]:
    """For each call, by the position of its answer and its id, the position of its result."""
    found: dict[tuple[int, str], int] = {}
    open_calls: dict[str, int] = {}
    for position in run:
        entry = entries[position]
        message = entry.message if isinstance(entry, MessageEntry) else None
        if isinstance(message, AssistantMessage):
            open_calls = {call.id: position for call in message.tool_calls}
        elif isinstance(message, ToolResultMessage) and message.tool_call_id in open_calls:
            found[open_calls.pop(message.tool_call_id), message.tool_call_id] = position
    return found


def turns_of(entries: Sequence[Entry], run: Sequence[int]) -> dict[int, list[int]]:
    """The answers of each turn of the model, by the position of the last one."""
    turns: dict[int, list[int]] = {}
    turn: list[int] = []
    for position in run:
        speaker = speaker_of(entries[position])
        if speaker and not speaker.startswith(_ANSWER):
            turn = []
        elif speaker.startswith(_ANSWER):
            if turn:
                del turns[turn[-1]]
            turn.append(position)
            turns[position] = turn
    return turns


_ANSWER = "answer "


def speaker_of(entry: Entry) -> str:
    """Who says it, so that what one says in a row stands under one name; empty for what interrupts nobody."""
    match entry:
        case MessageEntry(message=AssistantMessage() as answer):
            return f"{_ANSWER}{answer.provider}/{answer.model}"
        case MessageEntry(message=ToolResultMessage()):
            return ""
        case MessageEntry(message=message):
            return message.role
    return "" if is_note(entry) else entry.type


def is_note(entry: Entry) -> bool:
    return isinstance(
        entry,
        ModelChangeEntry
        | ThinkingLevelChangeEntry
        | SessionInfoEntry
        | LabelEntry
        | ContextEditEntry
        | UsageEntry
        | CustomEntry,
    )
