"""How a run's events reach those who listen: each in order, one after the other, awaited.

A listener that raises keeps nobody else from the event. One that does not return within the grace period
after an abort is cancelled, so that an abort always ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias, TypeVar

from cantle_agent.errors import ListenerError
from cantle_agent.events import AgentEvent, MessageUpdate
from cantle_agent.patience import was_cancelled
from cantle_ai.abort import AbortSignal

__all__ = ["Delivery", "Listener", "add_listener", "listener_name"]

Listener: TypeAlias = Callable[[AgentEvent], Awaitable[None] | None]
"""Gets every event. May be a plain function or a coroutine function."""


_L = TypeVar("_L")


class Delivery:
    """Delivers the events of one run to `listeners`, which may change meanwhile."""

    __slots__ = (
        "_aborted",
        "_awaited",
        "_grace",
        "_interrupted",
        "_listeners",
        "_observe",
        "_task",
        "_unlink",
    )

    def __init__(
        self,
        listeners: Sequence[Listener],
        observe: Callable[[AgentEvent], None],
        signal: AbortSignal,
        grace: float,
    ) -> None:
        """`observe` gets each event but `message_update` before the listeners do, and must not fail."""
        self._listeners = listeners
        self._observe = observe
        self._grace = grace
        self._aborted = False
        self._awaited: Awaitable[None] | None = None
        self._interrupted = False
        self._task: asyncio.Task[object] | None = None
        self._unlink = signal.add_callback(self._on_abort)

    async def tell(self, event: AgentEvent) -> None:
        """Give `event` to all. Raises ListenerError for the first that failed, when all have had it."""
        if type(event) is not MessageUpdate:
            self._task = asyncio.current_task()
            self._observe(event)
        failure: ListenerError | None = None
        for listener in tuple(self._listeners):
            try:
                work = listener(event)
                if work is None:
                    continue
                if self._aborted:
                    await self._hurry(work)
                else:
                    self._awaited = work
                    await work
                    self._awaited = None
            except (
                Exception,
                asyncio.CancelledError,
            ) as error:  # foreign code; raised when all had the event
                self._awaited = None
                if was_cancelled(error):
                    if not self._interrupted or self._task is None:
                        raise
                    self._interrupted = False
                    self._task.uncancel()
                    error = TimeoutError(self._late)
                failure = failure or ListenerError(listener_name(listener), event.type, error)
        if failure is not None:
            raise failure

    def close(self) -> None:
        """The run has ended."""
        self._unlink()

    async def _hurry(self, work: Awaitable[None]) -> None:
        limit = asyncio.timeout(self._grace)
        try:
            async with limit:
                await work
        except TimeoutError:
            if limit.expired():
                raise TimeoutError(self._late) from None
            raise

    @property
    def _late(self) -> str:
        return f"did not return within {self._grace:g} s of an abort"

    def _on_abort(self) -> None:
        self._aborted = True
        if self._awaited is not None and self._task is not None:
            self._task.get_loop().call_later(self._grace, self._interrupt, self._awaited)

    def _interrupt(self, work: Awaitable[None]) -> None:
        if self._awaited is work and self._task is not None:
            self._interrupted = True
            self._task.cancel()


def add_listener(listeners: list[_L], listener: _L) -> Callable[[], None]:
    """Put `listener` behind the others. Returns a function that takes it away, once."""
    listeners.append(listener)

    def remove() -> None:
        if listener in listeners:
            listeners.remove(listener)

    return remove


def listener_name(listener: Callable[..., object]) -> str:
    """What an error calls it."""
    return getattr(listener, "__qualname__", None) or type(listener).__qualname__
