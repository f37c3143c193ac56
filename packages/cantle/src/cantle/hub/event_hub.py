"""Delivers a session's events: to every listener, in the order of subscription, one event after the other."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from cantle.hub.events import SessionEvent
from cantle_agent.errors import ListenerError
from cantle_agent.listeners import add_listener, listener_name
from cantle_agent.patience import was_cancelled

__all__ = ["EventHub", "Listener"]

Listener: TypeAlias = "Callable[[SessionEvent], Awaitable[None] | None]"
"""Gets each event. May be a coroutine function; it is awaited before the next event."""


class EventHub:
    """The listeners of one session. The run awaits its events (`emit`); others hand theirs in (`post`)."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []
        self._posted: deque[SessionEvent] = deque()
        self._drain: asyncio.Task[None] | None = None
        self._deliverer: asyncio.Task[object] | None = None
        self._failure: ListenerError | None = None
        self.interrupted: tuple[str, str] | None = None
        """The listener and the event that it had when its task was last cancelled."""

    @property
    def delivering_here(self) -> bool:
        """Whether the current task is inside a listener."""
        return self._deliverer is not None and self._deliverer is asyncio.current_task()

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with every event from now on. Returns a function that stops that."""
        return add_listener(self._listeners, listener)

    async def emit(self, event: SessionEvent) -> None:
        """Deliver `event`, and what listeners post meanwhile.

        Raises :class:`cantle_agent.errors.ListenerError` after everyone has had it, when a listener raised.
        """
        while self._drain is not None:
            await asyncio.wait([self._drain])
        try:
            await self._deliver(event)
            while self._posted:
                await self._deliver(self._posted.popleft())
        finally:
            self._deliverer = None
        if self._failure is not None:
            self._raise_failure()

    def post(self, event: SessionEvent) -> None:
        """Deliver `event` as soon as nothing else is being delivered, without waiting for it.

        What a listener raises then comes out of the next :meth:`emit`. Needs a running loop
        once there are listeners.
        """
        if not self._listeners:
            return
        self._posted.append(event)
        if self._deliverer is None and self._drain is None:
            self._drain = asyncio.get_running_loop().create_task(self._drain_posted(), name="cantle-events")

    async def _drain_posted(self) -> None:
        try:
            while self._posted:
                await self._deliver(self._posted.popleft())
        finally:
            self._deliverer = self._drain = None

    async def _deliver(self, event: SessionEvent) -> None:
        if self._deliverer is None:
            self._deliverer = asyncio.current_task()
        for listener in tuple(self._listeners):
            try:
                waiting = listener(event)
                if waiting is not None:
                    await waiting
            except (
                Exception,
                asyncio.CancelledError,
            ) as error:  # foreign code; raised when all had the event
                if was_cancelled(error):
                    self.interrupted = listener_name(listener), event.type
                    raise
                if self._failure is None:
                    self._failure = ListenerError(listener_name(listener), event.type, error)

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
