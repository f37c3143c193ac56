"""Hands the events of a run to one reader, who sets the pace."""

from __future__ import annotations

import asyncio

from cantle_agent.events import AgentEvent

__all__ = ["Rendezvous"]


class Rendezvous:
    """The run waits in :meth:`put` until its event was taken and the next one is asked for."""

    __slots__ = ("_ended", "_event", "_left", "_offered", "_reader", "_writer")

    def __init__(self) -> None:
        self._event: AgentEvent | None = None
        self._reader: asyncio.Future[None] | None = None
        self._writer: asyncio.Future[None] | None = None
        self._offered = False
        self._ended = False
        self._left = False

    async def put(self, event: AgentEvent) -> None:
        """Offer `event`. Returns when the reader asks for another; at once when it has left."""
        if self._left:
            return
        self._event, self._offered = event, True
        _wake(self._reader)
        self._writer = asyncio.get_running_loop().create_future()
        await self._writer

    async def get(self) -> AgentEvent | None:
        """The next event; None when the run has ended."""
        self._offered = False
        _wake(self._writer)
        while not self._offered and not self._ended:
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        return self._event if self._offered else None

    def leave(self) -> None:
        """The reader takes nothing more: let the run go on without it."""
        self._left = True
        _wake(self._writer)

    def end(self) -> None:
        """The run puts nothing more."""
        self._ended = True
        _wake(self._reader)


def _wake(future: asyncio.Future[None] | None) -> None:
    if future is not None and not future.done():
        future.set_result(None)
