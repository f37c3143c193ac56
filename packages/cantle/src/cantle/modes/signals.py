"""Signals that ask a run to end: the first asks it, the second insists, the third does what the system does."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from types import FrameType
from typing import Any

__all__ = ["Signals"]

_ENDING = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)  # Windows has no SIGHUP


class Signals:
    """While it is entered, signals end the work of the current task.

    The first one calls `stop`; the second calls `insist` and cancels the task; from then on they act as before.
    Both leave time to end what was started, which a process that dies of a signal leaves behind. A signal that
    is ignored already, as by `nohup`, stays ignored.
    """

    def __init__(self, stop: Callable[[], None], insist: Callable[[], None]) -> None:
        self._stop = stop
        self._insist = insist
        self._previous: dict[int, Any] = {}
        self.received: signal.Signals | None = None
        """The first signal that came."""

    @property
    def exit_code(self) -> int:
        """What a shell says of a program that this signal ended; 0 when none came."""
        return 0 if self.received is None else 128 + self.received

    def __enter__(self) -> Signals:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def handle(number: int, frame: FrameType | None) -> None:
            if self.received is None:
                self.received = signal.Signals(number)
                loop.call_soon_threadsafe(self._stop)
            else:
                self._restore()
                loop.call_soon_threadsafe(self._insist)
                loop.call_soon_threadsafe(task.cancel)

        for number in _ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._previous[number] = signal.signal(number, handle)
        return self

    def __exit__(self, *exc: object) -> None:
        self._restore()

    def _restore(self) -> None:
        while self._previous:
            signal.signal(*self._previous.popitem())
