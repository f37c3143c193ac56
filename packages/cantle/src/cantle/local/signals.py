"""Signals that end a process, as an exception, so that what is half done is taken away."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

__all__ = ["Stopped", "held_back", "stoppable"]

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

    def stop(number: int, frame: FrameType | None) -> None:
        _handle(before)
        raise Stopped(number)

    before = _handlers()
    with _handled_by(stop, before):
        yield


@contextmanager
def held_back() -> Iterator[None]:
    """Let a signal that comes meanwhile act afterwards: what is being started is known by then."""
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)

    with _handled_by(note, _handlers()):
        yield
    for number in came[:1]:
        signal.raise_signal(number)


@contextmanager
def _handled_by(
    handler: Callable[[int, FrameType | None], None], before: Mapping[int, Any]
) -> Iterator[None]:
    """Let `handler` act at the signals of `before`, and those again afterwards."""
    try:
        _handle(dict.fromkeys(before, handler))
        yield
    finally:
        _handle(before)


def _handlers() -> dict[int, Any]:
    """What happens at each of the signals that would end the process now."""
    handlers = {number: signal.getsignal(number) for number in _ENDING}
    return {number: handler for number, handler in handlers.items() if handler is not signal.SIG_IGN}


def _handle(handlers: Mapping[int, Any]) -> None:
    for number, handler in handlers.items():
        signal.signal(number, handler)
