"""How a case is measured: the best of several runs by CPU, and next to a loop that tells machines apart."""

from __future__ import annotations

import gc
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from bench.micro.cases import Case, Work

__all__ = ["Growth", "Timing", "best", "calibrate", "growth", "time_case"]

_LOOP = 100_000
_FACTOR = 10


@dataclass(frozen=True, slots=True)
class Timing:
    """`microseconds` for one unit; `loops` is the same as a share of what a round of the calibration loop takes."""

    case: Case
    microseconds: float
    loops: float


@dataclass(frozen=True, slots=True)
class Growth:
    """By how much calls and CPU grow with ten times the work."""

    case: Case
    calls: float
    time: float


def calibrate(rounds: int = 5) -> float:
    """Microseconds of CPU for a round of a loop that does what interpreters do: look up, add, call, make a string."""

    def loop() -> None:
        table, total = {"a": 1, "b": 2}, 0
        for number in range(_LOOP):
            total += table["a"] + len(str(number))

    return best(loop, rounds) / _LOOP * 1e6


def time_case(case: Case, loop: float, *, rounds: int, share: float = 1.0) -> Timing:
    """The best of `rounds` runs. `loop` is what :func:`calibrate` says; `share` makes the work smaller."""
    size = max(2, round(case.size * share))
    with tempfile.TemporaryDirectory(prefix="cantle-micro-") as folder:
        work = case.make(size, Path(folder))
        work()  # loads what the first use loads
        microseconds = best(work, rounds) / size * 1e6
    return Timing(case, microseconds, microseconds / loop)


def growth(case: Case, *, rounds: int, share: float = 1.0) -> Growth:
    """What ten times the work costs: in calls of functions, which are always the same, and in CPU."""
    size = max(2, round(case.size * share))
    with tempfile.TemporaryDirectory(prefix="cantle-micro-") as folder:
        small, large = case.make(size, Path(folder)), case.make(_FACTOR * size, Path(folder))
        small()
        calls = _calls(large) / _calls(small)
        return Growth(case, calls, best(large, rounds) / best(small, rounds))


def best(work: Work, rounds: int) -> float:
    """Seconds of CPU of the quickest run."""
    best = float("inf")
    with _without_garbage_collection():
        for _ in range(rounds):
            began = time.process_time()
            work()
            best = min(best, time.process_time() - began)
    return best


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _calls(work: Work) -> int:
    """How many functions `work` calls, Python's and built-in ones, in whatever thread."""
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    previous = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(previous)
        threading.setprofile(previous)
    return count
