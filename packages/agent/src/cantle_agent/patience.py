"""Waiting for code that is not ours, in bounded time once it has been told to stop.

Told means that the abort signal is set. Then the work has a grace period to end by itself; then its task
is cancelled; a second grace period later it is left behind. Work that is not aborted may take for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar, overload

from cantle_ai.abort import AbortController, AbortError, AbortSignal

__all__ = ["LeftBehindError", "WorkCancelledError", "patiently", "see_through", "was_cancelled"]

_T = TypeVar("_T")


class LeftBehindError(AbortError):
    """The work neither stopped when told nor when cancelled; it may still be running."""


class WorkCancelledError(Exception):
    """The work ended without a result and without an error: cancelled, though nobody aborted, or by `sys.exit`."""


@overload
async def patiently(value: Awaitable[_T], signal: AbortSignal, grace: float) -> _T: ...
@overload
async def patiently(value: _T | Awaitable[_T], signal: AbortSignal, grace: float) -> _T: ...
async def patiently(value: _T | Awaitable[_T], signal: AbortSignal, grace: float) -> _T:
    """The result of a hook or tool: a plain value at once, an awaitable when it is done.

    Raises what the work raises; AbortError when it had to be cancelled after an abort, LeftBehindError
    when not even that ended it, WorkCancelledError when it ended cancelled for a reason of its own.
    """
    if not isinstance(value, Awaitable):
        return value
    work: Awaitable[_T] = value
    task = asyncio.get_running_loop().create_task(_contained(work))
    try:
        ended = await _ended(task, signal, grace)
    except asyncio.CancelledError:
        task.cancel()
        _abandon(task)
        raise
    if not ended:
        _abandon(task)
        raise LeftBehindError("did not stop when told, and was left running")
    if task.cancelled():
        if signal.aborted:
            raise AbortError(signal.reason)
        raise WorkCancelledError("was cancelled")
    return task.result()


async def see_through(task: asyncio.Task[_T], controller: AbortController, grace: float) -> _T:
    """Await a run. If this wait is cancelled, the run is aborted and still awaited, so that it ends in order.

    It has time for four things that each use up their grace. After that, or when the wait is cancelled again,
    the run is cancelled too, and awaited for one grace period more.
    """
    try:
        await asyncio.wait([task])
    except asyncio.CancelledError:
        controller.abort("Cancelled")
        try:
            await asyncio.wait([task], timeout=4 * grace)
        except asyncio.CancelledError:
            pass  # raised below, when the run has ended
        if not task.done():
            task.cancel()
            await _outlast(task, grace)
        _abandon(task)
        raise
    return task.result()


async def _outlast(task: asyncio.Task[Any], seconds: float) -> None:
    """Wait for `task`, whoever cancels the wait meanwhile."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while not task.done() and (left := deadline - loop.time()) > 0:
        try:
            await asyncio.wait([task], timeout=left)
        except asyncio.CancelledError:
            continue


def was_cancelled(error: BaseException) -> bool:
    """Whether `error` is the cancellation of the task that runs now, and not one that foreign code let out."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


async def _contained(value: Awaitable[_T]) -> _T:
    try:
        return await value
    except SystemExit as wish:
        raise WorkCancelledError(f"tried to exit the program ({wish})") from wish


async def _ended(task: asyncio.Future[Any], signal: AbortSignal, grace: float) -> bool:
    if not signal.aborted:
        aborted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        remove = signal.add_callback(lambda: _set(aborted))
        try:
            await asyncio.wait([task, aborted], return_when=asyncio.FIRST_COMPLETED)
        finally:
            remove()
            aborted.cancel()
    if not task.done():
        await asyncio.wait([task], timeout=grace)
    if not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=grace)
    return task.done()


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


_left_behind: set[asyncio.Future[Any]] = set()
"""Keeps abandoned tasks from being collected while they run."""


def _abandon(task: asyncio.Future[Any]) -> None:
    _left_behind.add(task)
    task.add_done_callback(_forget)


def _forget(task: asyncio.Future[Any]) -> None:
    _left_behind.discard(task)
    if not task.cancelled():
        task.exception()  # seen, so that it is not reported as never retrieved
