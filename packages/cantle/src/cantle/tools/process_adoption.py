"""Being the parent of processes that have lost theirs, while commands are followed. Linux only.

Elsewhere, and in a program that has not asked for it, the first process of the system gets them, and nobody
can say any more where they come from. The system knows one such setting for a whole program; it is put back
when the last command is over, so that what an embedding program leaves behind goes where it went before.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from threading import Lock
from typing import cast

__all__ = ["begin_adoption", "end_adoption"]

_SET, _GET = 36, 37
"""PR_SET_CHILD_SUBREAPER and PR_GET_CHILD_SUBREAPER."""


class _State:
    """Of this program: how many commands want it, and whether we were the ones to ask for it."""

    lock = Lock()
    wanted = 0
    set_by_us = False
    works = False
    call: Callable[..., int] | None = None


def begin_adoption() -> bool:
    """Ask for it until :func:`end_adoption`. Whether processes without parents come to us from now on."""
    with _State.lock:
        if not _State.wanted:
            before = _setting() if sys.platform == "linux" else None
            _State.works = before == 1 or (before == 0 and _set(1))
            _State.set_by_us = _State.works and before == 0
        _State.wanted += 1
        return _State.works


def end_adoption() -> None:
    """Ask for it no longer."""
    with _State.lock:
        _State.wanted -= 1
        if not _State.wanted and _State.set_by_us:
            _set(0)


def _setting() -> int | None:
    import ctypes

    value = ctypes.c_int(0)
    failed = _control(_GET, ctypes.addressof(value))
    return None if failed else value.value


def _set(value: int) -> bool:
    return not _control(_SET, value)


def _control(what: int, argument: int) -> int:
    if _State.call is None:
        _State.call = _system_call()
    return _State.call(what, argument, 0, 0, 0)


def _system_call() -> Callable[..., int]:
    import ctypes

    try:
        call = ctypes.CDLL(None).prctl
    except (OSError, AttributeError):
        return lambda *arguments: -1
    call.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
    call.restype = ctypes.c_int
    return cast("Callable[..., int]", call)
