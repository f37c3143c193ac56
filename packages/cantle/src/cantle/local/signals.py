"""Signals that end a process, as an exception, so that what is half done is taken away."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Stopped", "stoppable"]

_ENDING = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)  # Windows has no SIGHUP


class Stopped(BaseException):
    """The signal `number` came."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = signal.Signals(number)


@contextmanager
def stoppable() -> Iterator[None]:
    """Let the first signal that would end the process raise :class:`Stopped`; the next one acts as before.

    One that the caller ignores, as `nohup` does, stays ignored.
    """
    before = {number: signal.getsignal(number) for number in _ENDING}

    def restore() -> None:
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:
                signal.signal(number, handler)

    def stop(number: int, frame: FrameType | None) -> None:
        restore()
        raise Stopped(number)

    try:
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:
                signal.signal(number, stop)
        yield
    finally:
        restore()
