"""From the path through the tree to what an agent knows: each step on its own.

    positions on the path  →  those that count  →  their entries  →  agent messages

1. The latest compaction stands for what is before the entry that it names as kept.
2. The latest `context_edit` of an entry takes its message out, or gives it other content.
3. Messages as they are; summaries and extension notes as messages of their own.

Nothing is decoded that these steps do not need: what a compaction hides is never read. Messages that no
model is sent (`system`, unknown roles) stay in the result; :func:`cantle_agent.messages.convert_to_llm`
leaves them out.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice

from msgspec import Struct

from cantle_agent.messages import AgentMessage
from cantle_ai.codec import Json, JsonObject
from cantle_ai.messages import AssistantMessage, UnknownMessage
from cantle_session.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    ContextEditEntry,
    CustomMessageEntry,
    Entry,
    MessageEntry,
    ModelChangeEntry,
    ThinkingLevelChangeEntry,
)
from cantle_session.messages import (
    BranchSummaryMessage,
    CompactionSummaryMessage,
    ExtensionMessage,
    agent_message_from_json,
)
from cantle_session.stamps import milliseconds

__all__ = ["PathView", "Projected", "SessionContext", "message_of", "project", "projected"]

_KEPT = frozenset({"message", "custom_message", "branch_summary"})
_SHOWN = _KEPT | {"compaction"}
_NOTHING = (0, None)
_LARGEST_PORTION = 256
"""Entries that are loaded at once on the way back, at most."""


class SessionContext(Struct, frozen=True):
    """What a session's path comes to."""

    messages: list[AgentMessage]
    model: tuple[str, str] | None = None
    """Provider and model id: the latest choice on the path; without one, who gave the latest answer."""
    level_at_hand: str | None = None
    """The thinking level, as far as what was read says it."""
    older_level: Callable[[], str | None] | None = None
    """Looks for it in what was not read."""

    @property
    def thinking_level(self) -> str | None:
        """The latest choice on the path, or that of a later answer; None where there is none. Of a very long session
        it may take some tenths of a second to find, and needs the session open.
        """
        if self.level_at_hand is None and self.older_level is not None:
            return self.older_level()
        return self.level_at_hand


class Projected(Struct, frozen=True):
    """A message of the context, and the entry that it comes from. They differ where an edit changed it."""

    entry: Entry
    message: AgentMessage
    stale: bool = False
    """Whether a compaction or an edit has since changed it or what is before it: what a provider counted when it
    was added no longer holds."""


class PathView(Struct, frozen=True):
    """A path, root first: the kinds and ids of its entries are at hand, the entries are loaded when asked for."""

    kinds: Sequence[str]
    ids: Sequence[str]
    load: Callable[[Sequence[int]], Iterable[Entry]]
    """The entries at these indexes of the path."""

    def backwards(self, kind: str) -> Iterator[tuple[int, Entry]]:
        """The entries of this kind with their indexes, the last first. More and more are loaded at once: the first is
        most often enough, and where it is not, a database should not be asked for each.
        """
        indexes = (index for index in range(len(self.kinds) - 1, -1, -1) if self.kinds[index] == kind)
        size = 1
        while portion := list(islice(indexes, size)):
            yield from zip(portion, self.load(portion), strict=True)
            size = min(4 * size, _LARGEST_PORTION)


def project(path: PathView) -> SessionContext:
    """The context at the end of `path`."""
    path = _loaded_once(path)
    messages = [shown.message for shown in projected(path)]
    return SessionContext(messages, _model(path), _thinking_level(path))


def _loaded_once(path: PathView) -> PathView:
    """The same path, of which no entry is loaded twice."""
    known: dict[int, Entry] = {}

    def load(indexes: Sequence[int]) -> Iterable[Entry]:
        missing = [index for index in indexes if index not in known]
        known.update(zip(missing, path.load(missing), strict=True))
        return (known[index] for index in indexes)

    return PathView(path.kinds, path.ids, load)


def projected(path: PathView) -> list[Projected]:
    """The messages of the context, each with its entry."""
    last_edits = _last_edits(path)
    changes = {entry_id: edit.replacement for entry_id, (_, edit) in last_edits.items()}
    chosen = _selection(path)
    changed_until = chosen[0] if chosen else 0  # where it is a compaction, that changed what it kept
    found = []
    with _no_collection():
        for index, entry in zip(chosen, path.load(chosen), strict=True):
            if entry.id in last_edits:
                changed_until = max(changed_until, last_edits[entry.id][0])
            message = message_of(entry, changes)
            if message is not None:
                found.append(Projected(entry, message, index < changed_until))
    return found


def _selection(path: PathView) -> list[int]:
    """The indexes of the entries that may give a message, in the order in which their messages come."""
    compaction, entry = _last_compaction(path)
    if entry is None:
        return [index for index, kind in enumerate(path.kinds) if kind in _SHOWN]
    kept = _last_index(path.ids, entry.first_kept_entry_id, compaction)
    # An older compaction in the kept part is already in the newer one's summary.
    before = [index for index in range(kept, compaction) if path.kinds[index] in _KEPT]
    after = [index for index in range(compaction + 1, len(path.kinds)) if path.kinds[index] in _SHOWN]
    return [compaction, *before, *after]


def _last_edits(path: PathView) -> dict[str, tuple[int, ContextEditEntry]]:
    """For each entry that was edited on this path, its latest edit and where that is."""
    indexes = [index for index, kind in enumerate(path.kinds) if kind == "context_edit"]
    return {
        entry.target_id: (index, entry)
        for index, entry in zip(indexes, path.load(indexes), strict=True)
        if isinstance(entry, ContextEditEntry)
    }


def message_of(entry: Entry, changes: dict[str, JsonObject | None]) -> AgentMessage | None:
    """The message that an entry gives after `changes`; None when it gives none."""
    message = _unedited(entry)
    if message is None or entry.id not in changes:
        return message
    replacement = changes[entry.id]
    return None if replacement is None else _with_content(message, replacement["content"])


def _unedited(entry: Entry) -> AgentMessage | None:
    match entry:
        case MessageEntry():
            return entry.message
        case CustomMessageEntry():
            return ExtensionMessage(
                custom_type=entry.custom_type,
                content=entry.content,
                display=entry.display,
                details=entry.details,
                timestamp=milliseconds(entry.timestamp) or 0,
            )
        case CompactionEntry():
            return CompactionSummaryMessage(
                summary=entry.summary,
                tokens_before=int(entry.tokens_before or 0),
                timestamp=milliseconds(entry.timestamp) or 0,
            )
        case BranchSummaryEntry() if entry.summary:
            return BranchSummaryMessage(
                summary=entry.summary, from_id=entry.from_id, timestamp=milliseconds(entry.timestamp) or 0
            )
    return None


def _with_content(message: AgentMessage, content: Json) -> AgentMessage:
    raw = message.to_json()
    if "content" not in raw or isinstance(message, UnknownMessage):
        return message
    if isinstance(content, str) and raw["role"] in {"assistant", "toolResult"}:
        content = [{"type": "text", "text": content}]
    return agent_message_from_json({**raw, "content": content})


def _model(path: PathView) -> tuple[str, str] | None:
    """What the last change chose, unless an answer came later: other programs may choose without an entry.

    Answers that compaction or edits hide count, too.
    """
    place, change = next(path.backwards("model_change"), _NOTHING)
    answer = _last_answer(path, after=place if isinstance(change, ModelChangeEntry) else -1)
    if answer is not None:
        return answer.provider, answer.model
    return (change.provider, change.model_id) if isinstance(change, ModelChangeEntry) else None


def _thinking_level(path: PathView) -> str | None:
    """What the last change chose, unless an answer came later that tells its own."""
    place, change = next(path.backwards("thinking_level_change"), _NOTHING)
    chosen = change.thinking_level if isinstance(change, ThinkingLevelChangeEntry) else None
    answer = _last_answer(path, after=-1 if chosen is None else place)
    return (None if answer is None else answer.thinking_level) or chosen


def _last_answer(path: PathView, after: int) -> AssistantMessage | None:
    """The latest answer on the path, behind the entry with this index."""
    for index, entry in path.backwards("message"):
        if index < after:
            break
        if isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage):
            return entry.message
    return None


def _last_compaction(path: PathView) -> tuple[int, CompactionEntry | None]:
    for index, entry in path.backwards("compaction"):
        if isinstance(entry, CompactionEntry):
            return index, entry
    return 0, None


def _last_index(ids: Sequence[str], entry_id: str, before: int) -> int:
    """Where the entry `entry_id` is in front of `before`; `before` when it is not."""
    for index in range(before - 1, -1, -1):
        if ids[index] == entry_id:
            return index
    return before


@contextmanager
def _no_collection() -> Iterator[None]:
    """Half of the time to decode a long history would go into looking for garbage that it does not make."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
