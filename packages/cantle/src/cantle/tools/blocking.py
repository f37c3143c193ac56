"""File work in a thread, given up in an orderly way.

A thread can't be cancelled. So the work looks, at points where nothing is half done, whether it is
still wanted; and whoever waits for it, even when cancelled, waits until it has looked. A lock that is
held around the call is then never released while the file is still being changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeAlias, TypeVar

from cantle_agent.tool import ToolError
from cantle_ai.abort import AbortSignal

__all__ = ["Check", "run_blocking"]

T = TypeVar("T")
Check: TypeAlias = Callable[[], None]
"""Raises :class:`ToolError` when the work is no longer wanted."""


async def run_blocking(
    work: Callable[[Check], T], signal: AbortSignal, *, halt: Callable[[], None] | None = None
) -> T:
    """What `work(check)` returns or raises, run in a thread. Cancelled, it ends after the work has.

    `halt` is called, here, once the work is no longer wanted: for work that waits for something else.
    """
    cancelled = False

    def check() -> None:
        if cancelled or signal.aborted:
            raise ToolError(f"{signal.reason or 'Cancelled'}: nothing was done.")

    task = asyncio.get_running_loop().run_in_executor(None, work, check)
    remove = signal.add_callback(halt) if halt is not None else None
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        cancelled = True
        if halt is not None:
            halt()
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()
        raise
    finally:
        if remove is not None:
            remove()
