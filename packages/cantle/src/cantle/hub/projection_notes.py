"""Tells a session's listeners when a request leaves out or changes something of the history."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cantle.hub.events import HistoryProjected

if TYPE_CHECKING:
    from cantle_ai.history import ProjectionReport

__all__ = ["ProjectionNotes"]


class ProjectionNotes:
    """Hears of each request's projection, and passes on those that differ from the one before."""

    def __init__(self) -> None:
        self.post: Callable[[HistoryProjected], None] | None = None
        self._last: ProjectionReport | None = None

    def __call__(self, report: ProjectionReport) -> None:
        if report != self._last and self.post is not None:
            self._last = report
            self.post(HistoryProjected(report.counts))
