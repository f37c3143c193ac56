"""What waits for its turn, as listeners are told of it. The queues themselves are the agent's."""

from __future__ import annotations

from collections.abc import Callable

from cantle.hub.events import QueueUpdate
from cantle_agent.agent import Agent
from cantle_agent.queues import MessageQueue
from cantle_ai.messages import UserMessage

__all__ = ["queue_update", "watch_queues"]


def queue_update(agent: Agent) -> QueueUpdate:
    """Both queues of `agent` as they are."""
    return QueueUpdate(_texts(agent.steering), _texts(agent.follow_ups))


def watch_queues(agent: Agent, post: Callable[[QueueUpdate], None]) -> None:
    """Post the queues of `agent` whenever one of them changes."""
    agent.steering.on_change = agent.follow_ups.on_change = lambda: post(queue_update(agent))


def _texts(queue: MessageQueue) -> list[str]:
    return [message.text for message in queue.pending if isinstance(message, UserMessage)]
