"""Messages that wait for their place in a run. Taking one is one step: it is queued, or it is the run's."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Literal, TypeAlias

from cantle_agent.messages import AgentMessage

__all__ = ["MessageQueue", "QueueMode"]

QueueMode: TypeAlias = Literal["all", "one-at-a-time"]
"""How many messages enter at one of a queue's moments."""


class MessageQueue:
    """First in, first out. `on_change` is called after each change, for whoever shows the queue."""

    __slots__ = ("_messages", "mode", "on_change")

    def __init__(
        self, mode: QueueMode = "one-at-a-time", *, on_change: Callable[[], None] | None = None
    ) -> None:
        self.mode: QueueMode = mode
        self.on_change = on_change
        self._messages: deque[AgentMessage] = deque()

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def pending(self) -> tuple[AgentMessage, ...]:
        """What waits, the next one first."""
        return tuple(self._messages)

    def put(self, message: AgentMessage) -> None:
        self._messages.append(message)
        self._changed()

    def take(self) -> list[AgentMessage]:
        """Remove and return what enters at this moment: everything, or the first, or nothing."""
        count = len(self._messages) if self.mode == "all" else min(1, len(self._messages))
        taken = [self._messages.popleft() for _ in range(count)]
        if taken:
            self._changed()
        return taken

    def clear(self) -> list[AgentMessage]:
        """Remove and return all."""
        removed = list(self._messages)
        self._messages.clear()
        if removed:
            self._changed()
        return removed

    def _changed(self) -> None:
        if self.on_change is not None:
            self.on_change()
