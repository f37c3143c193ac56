"""What a conversation took in all, over its whole life."""

from __future__ import annotations

from cantle_agent.messages import AgentMessage
from cantle_ai.messages import AssistantMessage, ToolResultMessage
from cantle_ai.usage import Usage, total_usage
from cantle_session.session import Session

__all__ = ["UsageTotal"]


class UsageTotal:
    """Counts messages as they are written. What a continued session took before is read when it is first asked for."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._before: Usage | None = Usage() if session.leaf_id is None else None
        self._since = Usage()

    @property
    def total(self) -> Usage:
        """Everything so far. Reads the session, so the first time it must be open."""
        if self._before is None:
            self._before = self._session.usage()
        return total_usage([self._before, self._since])

    def add(self, message: AgentMessage) -> None:
        """Count a message that has just been written. Until the session was read, it will be counted there."""
        if isinstance(message, AssistantMessage | ToolResultMessage):
            self.add_usage(message.usage)

    def add_usage(self, usage: Usage | None) -> None:
        """The same for an entry that is no message, such as a summary."""
        if self._before is not None and usage is not None:
            self._since = total_usage([self._since, usage])
