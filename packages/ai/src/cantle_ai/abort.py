"""Cooperative cancellation: one controller aborts, any number of holders of its signal notice.

A signal is not a task cancellation. Cancelling a task unwinds its stack; aborting a signal asks the
work behind it to stop and to say what it had done so far. Everything in Cantle that can take long
accepts a signal: a model request, a tool, a hook, a retry wait.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio

__all__ = ["AbortController", "AbortError", "AbortSignal"]


class AbortError(Exception):
    """The work was given up because its signal was aborted."""


class AbortSignal:
    """The receiving end of an :class:`AbortController`. Becomes aborted once and stays so.

    Callbacks run in the thread that aborts. `wait` belongs to one event loop's thread, from which
    the controller must be aborted too (`loop.call_soon_threadsafe(controller.abort)` from elsewhere).
    """

    __slots__ = ("_callbacks", "_reason")

    def __init__(self) -> None:
        self._reason: str | None = None
        self._callbacks: dict[int, Callable[[], None]] = {}

    @property
    def aborted(self) -> bool:
        return self._reason is not None

    @property
    def reason(self) -> str | None:
        """Why it was aborted, as one phrase for a person; None while it is not."""
        return self._reason

    def raise_if_aborted(self) -> None:
        """Raise :class:`AbortError` when aborted."""
        if self._reason is not None:
            raise AbortError(self._reason)

    def add_callback(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` once on abort, at once if that has happened. Returns a function that removes it."""
        if self._reason is not None:
            callback()
            return _nothing
        key = id(callback)
        while key in self._callbacks:
            key += 1
        self._callbacks[key] = callback

        def remove() -> None:
            self._callbacks.pop(key, None)

        return remove

    async def wait(self) -> None:
        """Return once aborted."""
        import asyncio

        if self._reason is not None:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def wake() -> None:
            if not future.done():
                future.set_result(None)

        remove = self.add_callback(wake)
        try:
            await future
        finally:
            remove()


class AbortController:
    """Owns a signal and may abort it."""

    __slots__ = ("signal",)

    def __init__(self, parent: AbortSignal | None = None) -> None:
        """A new, unaborted signal; with `parent`, one that is aborted as soon as the parent is."""
        self.signal = AbortSignal()
        if parent is not None:
            parent.add_callback(lambda: self.abort(parent.reason or "aborted"))

    def abort(self, reason: str = "Operation aborted") -> None:
        """Abort the signal and run its callbacks, in the order in which they were added. Later calls do nothing."""
        signal = self.signal
        if signal._reason is not None:
            return
        signal._reason = reason
        callbacks, signal._callbacks = list(signal._callbacks.values()), {}
        for callback in callbacks:
            callback()


def _nothing() -> None:
    return None
