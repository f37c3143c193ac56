"""Commands that run, and what becomes of them.

Each is followed by one thread of its own, from start to end: measured against asyncio's subprocesses it takes
as long and a third less CPU, it keeps gigabytes of output off the event loop, and it works under any loop.
The thread alone signals the processes, so a number is never used after it may belong to someone else.

    started → output … → the shell ends → a moment for output that is on its way → settled
                 ↓ stop or time-out                                                  ↓ something still runs
              TERM to all, KILL to what is left after a grace → settled           its output is dropped until
                                                                                  it ends or the session does
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Event, Lock, Thread
from typing import TypeAlias
from weakref import WeakSet

from msgspec import Struct

from cantle.tools.process_groups import ProcessGroup
from cantle.tools.process_watch import Watch, open_watch
from cantle_ai.system_errors import reason_of

__all__ = ["Command", "CommandEnd", "Processes", "StartError"]

GRACE = 2.0
"""Seconds between TERM and KILL."""
_KILLED = 1.0
"""Seconds in which killed processes disappear, or are given up."""
_QUIET = 0.1
"""Seconds without output after which nothing more is expected from what the shell left behind."""
_DRAIN = 1.0
"""Seconds after the shell's end for which output is taken, however much comes."""
_SHOW = 0.1
"""Seconds between two showings of progress."""
_LOOK = 0.02
_LOOK_LEFT = 5.0


class StartError(Exception):
    """A command could not be started; the text says why."""


class CommandEnd(Struct, frozen=True):
    """How a command ended."""

    exit_code: int
    """Of the shell; -N when signal N ended it."""
    stopped: str | None = None
    """Why we ended it: `timeout`, or the reason given to `stop`."""
    left_running: tuple[int, ...] = ()
    """Processes of it that still run; 0 for one without a known number."""


_Settle: TypeAlias = Callable[["CommandEnd | StartError"], None]


class Command:
    """A command to run once."""

    def __init__(
        self,
        argv: Sequence[str],
        cwd: Path,
        variables: Mapping[str, str],
        *,
        feed: Callable[[bytes], None],
        show: Callable[[], None],
        timeout: float | None = None,
    ) -> None:
        """`feed` takes the output as it comes, `show` is called now and then when there is some: both in a thread."""
        self._argv = argv
        self._cwd = cwd
        self._variables = variables
        self._feed = feed
        self._show = show
        self._timeout = timeout
        self._lock = Lock()
        self._stop: str | None = None
        self._watch: Watch | None = None
        self._group: ProcessGroup | None = None
        self._next_show = 0.0
        self._unshown = False
        self.over = Event()
        """Set when nothing of the command is left, and nobody watches it any more."""

    def stop(self, reason: str) -> None:
        """End the command with all that it started, and what it left behind. From any thread, at any time."""
        with self._lock:
            self._stop = self._stop or reason
            watch = self._watch
        if watch is not None:
            watch.wake()

    def kill_now(self) -> None:
        """The last thing before this program ends."""
        if self._group is not None and not self.over.is_set():
            self._group.kill()

    def follow(self, settle: _Settle) -> None:
        """Run it in the calling thread. `settle` is called with how it ended, the first call counts; the thread
        may have to stay longer.
        """
        outcome: CommandEnd | StartError = StartError("it could not be followed to its end.")
        try:
            outcome = self._run(settle)
        except StartError as problem:
            outcome = problem
        finally:
            settle(outcome)
            self.over.set()

    def _run(self, settle: _Settle) -> CommandEnd:
        group = self._started()
        if group is None:
            return CommandEnd(-15, self._stop)
        try:
            watch = open_watch(group)
        except OSError as problem:
            group.kill()
            group.process.wait()
            group.close_output()
            raise StartError(f"{reason_of(problem)}.") from None
        with self._lock:
            self._group, self._watch = group, watch
        try:
            end = self._ended(group, watch)
            if end.left_running or not watch.closed:
                settle(end)
                self._linger(group, watch)
            return end
        except BaseException:
            group.kill()
            group.process.wait()
            raise
        finally:
            watch.close()

    def _started(self) -> ProcessGroup | None:
        if self._stop is not None:
            return None
        try:
            return ProcessGroup(self._argv, self._cwd, self._variables)
        except ValueError as problem:
            raise StartError(f"{problem}.") from None
        except OSError as problem:
            import errno

            if problem.errno == errno.E2BIG:
                size = sum(len(part) for part in self._argv)
                raise StartError(
                    f"it is too long for this system ({size:,} characters). Write it to a file and run that."
                ) from None
            raise StartError(f"{problem.filename or self._argv[0]}: {reason_of(problem)}.") from None

    def _ended(self, group: ProcessGroup, watch: Watch) -> CommandEnd:
        deadline = None if self._timeout is None else time.monotonic() + self._timeout
        stopped = None
        while group.process.poll() is None:
            now = time.monotonic()
            stopped = self._stop
            if stopped is None and deadline is not None and now >= deadline:
                stopped = "timeout"
            if stopped is not None:
                self._end_all(group, watch)
                break
            self._take(watch, self._patience(now, deadline))
        self._drain(watch)
        left = self._left(group, watch)
        if stopped is not None and group.process.poll() is None:
            return CommandEnd(-9, stopped, left)
        return CommandEnd(group.process.wait(), stopped, left)

    def _left(self, group: ProcessGroup, watch: Watch) -> tuple[int, ...]:
        # A process closes its output a moment before it is gone.
        limit = time.monotonic() + (_QUIET if watch.closed else 0)
        while (left := group.members()) and time.monotonic() < limit:
            time.sleep(_LOOK / 4)
        return left

    def _patience(self, now: float, deadline: float | None) -> float | None:
        due = [
            moment for moment in (deadline, self._next_show if self._unshown else None) if moment is not None
        ]
        return max(min(due) - now, 0.0) if due else None

    def _take(self, watch: Watch, timeout: float | None) -> None:
        data = watch.wait(timeout)
        if data is not None:
            self._feed(data)
            self._unshown = True
        now = time.monotonic()
        if self._unshown and now >= self._next_show:
            self._unshown, self._next_show = False, now + _SHOW
            self._show()

    def _drain(self, watch: Watch) -> None:
        now = time.monotonic()
        limit, quiet_until = now + _DRAIN, now + _QUIET
        while not watch.closed and now < min(limit, quiet_until):
            data = watch.wait(min(limit, quiet_until) - now)
            now = time.monotonic()
            if data is not None:
                self._feed(data)
                quiet_until = now + _QUIET

    def _end_all(self, group: ProcessGroup, watch: Watch) -> None:
        """TERM to all, then KILL; returns when none is left, or can't be ended."""
        for ending, patience in ((group.terminate, GRACE), (group.kill, _KILLED)):
            ending()
            limit = time.monotonic() + patience
            while group.members():
                if time.monotonic() >= limit:
                    break
                data = watch.wait(_LOOK)
                if data is not None:
                    self._feed(data)
                elif watch.closed:
                    time.sleep(_LOOK)
            else:
                return

    def _linger(self, group: ProcessGroup, watch: Watch) -> None:
        self._feed = _drop
        while not watch.closed or group.members():
            if self._stop is not None:
                self._end_all(group, watch)
                return
            watch.wait(_LOOK_LEFT)


def _drop(data: bytes) -> None:
    return


_all: WeakSet[Command] = WeakSet()


def _kill_all() -> None:
    for command in list(_all):
        command.kill_now()


class Processes:
    """The commands of one session."""

    __slots__ = ("_commands",)

    def __init__(self) -> None:
        self._commands: set[Command] = set()

    async def run(self, command: Command) -> CommandEnd:
        """Run a command until its shell has ended. Raises :class:`StartError`.

        Cancelled, it ends the command with all that it started before it lets go.
        """
        loop = asyncio.get_running_loop()
        settled: asyncio.Future[CommandEnd] = loop.create_future()

        def settle(outcome: CommandEnd | StartError) -> None:
            try:
                loop.call_soon_threadsafe(_resolve, settled, outcome)
            except RuntimeError:
                # The loop is closed: nobody waits any more.
                pass

        self._forget_finished()
        self._commands.add(command)
        if not _all:
            import atexit

            # Registered once, however often the last command goes and a new one comes.
            atexit.unregister(_kill_all)
            atexit.register(_kill_all)
        _all.add(command)
        Thread(target=command.follow, args=(settle,), daemon=True, name="cantle-command").start()
        try:
            return await asyncio.shield(settled)
        except asyncio.CancelledError:
            command.stop("cancelled")
            await asyncio.wait([settled])
            raise

    async def close(self) -> None:
        """End all commands and all that they left behind."""
        self._forget_finished()
        commands = list(self._commands)
        if not commands:
            return
        for command in commands:
            command.stop("the session is closed")
        limit = time.monotonic() + GRACE + 2 * _KILLED + _DRAIN

        def wait() -> None:
            for command in commands:
                command.over.wait(max(limit - time.monotonic(), 0))

        await asyncio.get_running_loop().run_in_executor(None, wait)
        self._forget_finished()

    def _forget_finished(self) -> None:
        self._commands = {command for command in self._commands if not command.over.is_set()}


def _resolve(settled: asyncio.Future[CommandEnd], outcome: CommandEnd | StartError) -> None:
    if settled.done():
        return
    if isinstance(outcome, StartError):
        settled.set_exception(outcome)
        settled.exception()
    else:
        settled.set_result(outcome)
