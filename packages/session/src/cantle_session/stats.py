"""What a session, or several, came to: messages, tools, tokens, cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec import Struct, field

from cantle_ai.content import ToolCall
from cantle_ai.messages import AssistantMessage, ToolResultMessage
from cantle_ai.usage import Usage, total_usage
from cantle_session.entries import BranchSummaryEntry, CompactionEntry, Entry, MessageEntry, UsageEntry
from cantle_session.stamps import milliseconds

if TYPE_CHECKING:
    from cantle_session.session import Session

__all__ = ["ModelShare", "SessionStats", "session_stats", "total_stats"]


class ModelShare(Struct, frozen=True):
    """What one model did: how many answers, and what they and other work took."""

    answers: int
    usage: Usage


class SessionStats(Struct, frozen=True, kw_only=True):
    """Counts over all branches. Times are Unix milliseconds, None where no entry has one."""

    sessions: int = 1
    entries: dict[str, int] = field(default_factory=dict)
    """By entry type."""
    messages: dict[str, int] = field(default_factory=dict)
    """By role."""
    tool_calls: dict[str, int] = field(default_factory=dict)
    """By tool."""
    tool_errors: dict[str, int] = field(default_factory=dict)
    """By tool: results that say that something failed."""
    models: dict[str, ModelShare] = field(default_factory=dict)
    """By `provider/model`: who gave the answers, or took what an entry of usage tells."""
    others: dict[str, Usage] = field(default_factory=dict)
    """What no model's share has in it: `summaries`, of which nobody knows who wrote them, and `tools`, what those took themselves."""
    usage: Usage = Usage()
    """In all: the shares of the models and the others."""
    branches: int = 0
    """How many entries no other one follows."""
    first: int | None = None
    last: int | None = None


def session_stats(session: Session) -> SessionStats:
    """The counts of one session. Reads every entry."""
    counts = _Counts()
    for entry in session.walk(whole=True):
        counts.add(entry)
    return counts.stats()


def total_stats(each: Iterable[SessionStats]) -> SessionStats:
    """The counts of several sessions together."""
    all_of = list(each)
    models: dict[str, list[ModelShare]] = {}
    others: dict[str, list[Usage]] = {}
    for stats in all_of:
        for name, share in stats.models.items():
            models.setdefault(name, []).append(share)
        for name, usage in stats.others.items():
            others.setdefault(name, []).append(usage)
    return SessionStats(
        sessions=sum(stats.sessions for stats in all_of),
        entries=_sum(stats.entries for stats in all_of),
        messages=_sum(stats.messages for stats in all_of),
        tool_calls=_sum(stats.tool_calls for stats in all_of),
        tool_errors=_sum(stats.tool_errors for stats in all_of),
        models={
            name: ModelShare(
                sum(share.answers for share in shares), total_usage(share.usage for share in shares)
            )
            for name, shares in models.items()
        },
        others={name: total_usage(usages) for name, usages in others.items()},
        usage=total_usage(stats.usage for stats in all_of),
        branches=sum(stats.branches for stats in all_of),
        first=min((stats.first for stats in all_of if stats.first is not None), default=None),
        last=max((stats.last for stats in all_of if stats.last is not None), default=None),
    )


class _Counts:
    """The counts so far."""

    def __init__(self) -> None:
        self._entries: Counter[str] = Counter()
        self._messages: Counter[str] = Counter()
        self._calls: Counter[str] = Counter()
        self._errors: Counter[str] = Counter()
        self._answers: Counter[str] = Counter()
        self._usages: dict[str, list[Usage]] = {}
        self._others: dict[str, list[Usage]] = {}
        self._leaves: set[str] = set()
        self._times: list[int] = []

    def add(self, entry: Entry) -> None:
        self._entries[entry.type] += 1
        self._leaves.discard(entry.parent_id or "")
        self._leaves.add(entry.id)
        moment = milliseconds(entry.timestamp)
        if moment is not None:
            self._times.append(moment)
        match entry:
            case MessageEntry(message=message):
                self._messages[message.role] += 1
                if isinstance(message, AssistantMessage):
                    self._answer(message)
                elif isinstance(message, ToolResultMessage):
                    self._errors[message.tool_name] += message.is_error
                    self._take("tools", message.usage)
            case UsageEntry():
                self._usages.setdefault(f"{entry.provider}/{entry.model}", []).append(entry.usage)
            case CompactionEntry() | BranchSummaryEntry():
                self._take("summaries", entry.usage)

    def stats(self) -> SessionStats:
        models = {name: ModelShare(self._answers[name], total_usage(u)) for name, u in self._usages.items()}
        others = {name: total_usage(usages) for name, usages in self._others.items()}
        return SessionStats(
            entries=dict(self._entries),
            messages=dict(self._messages),
            tool_calls=dict(self._calls),
            tool_errors=dict(+self._errors),
            models=models,
            others=others,
            usage=total_usage([*(share.usage for share in models.values()), *others.values()]),
            branches=len(self._leaves),
            first=min(self._times, default=None),
            last=max(self._times, default=None),
        )

    def _answer(self, message: AssistantMessage) -> None:
        name = f"{message.provider}/{message.model}"
        self._answers[name] += 1
        self._usages.setdefault(name, []).append(message.usage)
        self._calls.update(block.name for block in message.content if isinstance(block, ToolCall))

    def _take(self, kind: str, usage: Usage | None) -> None:
        if usage is not None:
            self._others.setdefault(kind, []).append(usage)


def _sum(each: Iterable[dict[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for counts in each:
        total.update(counts)
    return dict(total)
