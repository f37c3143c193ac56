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

_ABORTED = "Operation aborted"


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
        self._callbacks: dict[object, Callable[[], None]] = {}

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
        """Call `callback` once on abort, at once if that has happened.

        Returns a function that removes it, if it has not been called; calling that again does nothing.
        """
        if self._reason is not None:
            callback()
            return _nothing
        key = object()
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

    __slots__ = ("_unfollow", "signal")

    def __init__(self, parent: AbortSignal | None = None) -> None:
        """A new, unaborted signal; with `parent`, one that is aborted as soon as the parent is.

        A parent that outlives many children keeps each until :meth:`detach`.
        """
        self.signal = AbortSignal()
        self._unfollow = _nothing
        if parent is not None:
            self._unfollow = parent.add_callback(lambda: self.abort(parent.reason or _ABORTED))

    def abort(self, reason: str = _ABORTED) -> None:
        """Abort the signal and run its callbacks, in the order in which they were added. Later calls do nothing.

        A callback that raises keeps no other from being called; the first such exception is raised afterwards.
        """
        signal = self.signal
        if signal._reason is not None:
            return
        signal._reason = reason or _ABORTED
        self._unfollow()
        failures: list[Exception] = []
        for key in list(signal._callbacks):
            callback = signal._callbacks.pop(key, _nothing)
            try:
                callback()
            except Exception as error:  # noqa: BLE001 - raised below, when everybody else has been told
                failures.append(error)
        if failures:
            raise failures[0]

    def detach(self) -> None:
        """Stop following the parent. To be called when the work that the signal belongs to is over."""
        self._unfollow()


def _nothing() -> None:
    return None
