"""What a session, or several, came to: messages, tools, tokens, cost."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec import Struct

from cantle_ai.usage import Usage

if TYPE_CHECKING:
    from cantle_session.session import Session

__all__ = ["ModelShare", "SessionStats", "session_stats", "total_stats"]


class ModelShare(Struct, frozen=True, kw_only=True):
    """What one model did: its answers, and what they took."""

    answers: int
    usage: Usage


class SessionStats(Struct, frozen=True, kw_only=True):
    """Counts over all branches. Times are Unix milliseconds, None where there is none."""

    sessions: int = 1
    entries: dict[str, int]
    """By entry type."""
    messages: dict[str, int]
    """By role."""
    tool_calls: dict[str, int]
    """By tool."""
    tool_errors: dict[str, int]
    """By tool."""
    models: dict[str, ModelShare]
    """By `provider/model`."""
    usage: Usage
    """In all, also what no answer accounts for."""
    branches: int
    """Entries that no other follows."""
    first: int | None = None
    last: int | None = None
    bytes: int = 0
    """What its lines take, where that is known."""


def session_stats(session: Session) -> SessionStats:
    """The counts of one session. Reads every entry."""
    raise NotImplementedError


def total_stats(each: Iterable[SessionStats]) -> SessionStats:
    """The counts of several sessions together."""
    raise NotImplementedError
