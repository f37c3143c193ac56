"""How a run's events reach those who listen: each in order, one after the other, awaited.

A listener that raises keeps nobody else from the event. One that does not return within the grace period
after an abort is cancelled, so that an abort always ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from cantle_agent.errors import ListenerError
from cantle_agent.events import AgentEvent
from cantle_ai.abort import AbortSignal

__all__ = ["Delivery", "Listener"]

Listener: TypeAlias = Callable[[AgentEvent], Awaitable[None] | None]
"""Gets every event. May be a plain function or a coroutine function."""


class Delivery:
    """Delivers the events of one run to `listeners`, which may change meanwhile."""

    __slots__ = ("_awaited", "_grace", "_interrupted", "_listeners", "_signal", "_task", "_unlink")

    def __init__(self, listeners: Sequence[Listener], signal: AbortSignal, grace: float) -> None:
        self._listeners = listeners
        self._signal = signal
        self._grace = grace
        self._awaited: Awaitable[None] | None = None
        self._interrupted: Awaitable[None] | None = None
        self._task: asyncio.Task[object] | None = None
        self._unlink = signal.add_callback(self._on_abort)

    async def tell(self, event: AgentEvent) -> None:
        """Give `event` to all. Raises ListenerError for the first that failed, when all have had it."""
        failure: ListenerError | None = None
        for listener in tuple(self._listeners):
            try:
                work = listener(event)
                if work is not None:
                    await self._await(work)
            except Exception as error:  # noqa: BLE001 - a listener may raise anything; it is raised again below
                failure = failure or ListenerError(_name(listener), event.type, error)
        if failure is not None:
            raise failure

    def close(self) -> None:
        """The run has ended."""
        self._unlink()

    async def _await(self, work: Awaitable[None]) -> None:
        if self._task is None:
            self._task = asyncio.current_task()
        self._awaited = work
        try:
            if self._signal.aborted:
                async with asyncio.timeout(self._grace):
                    await work
            else:
                await work
        except asyncio.CancelledError:
            if self._interrupted is not work or self._task is None:
                raise
            self._task.uncancel()
            raise TimeoutError(self._late) from None
        except TimeoutError as error:
            raise TimeoutError(str(error) or self._late) from error
        finally:
            self._awaited = None

    @property
    def _late(self) -> str:
        return f"did not return within {self._grace:g} s of an abort"

    def _on_abort(self) -> None:
        if self._awaited is not None and self._task is not None:
            self._task.get_loop().call_later(self._grace, self._interrupt, self._awaited)

    def _interrupt(self, work: Awaitable[None]) -> None:
        if self._awaited is work and self._task is not None:
            self._interrupted = work
            self._task.cancel()


def _name(listener: Listener) -> str:
    return getattr(listener, "__qualname__", None) or type(listener).__qualname__
