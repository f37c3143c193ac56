"""One command that runs, and what becomes of it.

It is followed by one thread of its own, from start to end: measured against asyncio's subprocesses it takes
as long and a third less CPU, it keeps gigabytes of output off the event loop, and it works under any loop.
The thread alone signals the processes, so a number is never used after it may belong to someone else.

    started → output … → the shell ends → a moment for output that is on its way → settled
                 ↓ stop or time-out                       ↓ nothing may be left   ↓ something still runs
              TERM to all, KILL to what is left after a grace → settled        its output is dropped until
                                                                               it ends or the session does
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Event, Lock

from cantle.tools.process_groups import ProcessGroup
from cantle.tools.process_signals import KILL, TERM
from cantle.tools.process_watch import Watch, open_watch
from cantle.tools.processes import CommandEnd, EndedProcess, RunningProcess, Settle, StartError
from cantle_ai.system_errors import reason_of

__all__ = ["Command"]

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
"""Seconds between two looks at what is being ended, at most."""
_LOOK_LEFT = 5.0
"""Seconds between two looks at what is left behind, for those whose end the system does not tell."""
_LONGEST_ARGUMENT = 131_072
"""Bytes that Linux takes as one argument of a program."""


class Command:
    """A command to run once."""

    ends_within = GRACE + 2 * _KILLED + _DRAIN
    """Seconds after :meth:`stop` in which it is over, unless the system does not let go of a process."""

    def __init__(
        self,
        argv: Sequence[str],
        cwd: Path,
        variables: Mapping[str, str],
        *,
        feed: Callable[[bytes], None],
        show: Callable[[], None],
        timeout: float | None = None,
        ends_leftovers: bool = False,
    ) -> None:
        """`feed` takes the output as it comes, `show` is called now and then when there is some: both in a thread.

        With `ends_leftovers` the command leaves nothing running.
        """
        self._argv = argv
        self._cwd = cwd
        self._variables = variables
        self._feed = feed
        self._show = show
        self._timeout = timeout
        self._ends_leftovers = ends_leftovers
        self._lock = Lock()
        self._stop: str | None = None
        self._watch: Watch | None = None
        self._group: ProcessGroup | None = None
        self._left: dict[int, RunningProcess] = {}
        self._ended: list[EndedProcess] = []
        self._next_show = 0.0
        self._unshown = False
        self.over = Event()
        """Set when nothing of the command is left, and nobody watches it any more."""

    @property
    def left_running(self) -> tuple[RunningProcess, ...]:
        """What it left running when it ended, without those that have ended since."""
        with self._lock:
            return tuple(self._left.values())

    def take_ended(self) -> list[EndedProcess]:
        """What has gone from `left_running` since the last time this was asked."""
        with self._lock:
            ended, self._ended = self._ended, []
        return ended

    def stop(self, reason: str) -> None:
        """End the command with all that it started, and what it left behind. From any thread, at any time."""
        with self._lock:
            self._stop = self._stop or reason
            watch = self._watch
        if watch is not None:
            watch.wake()

    def kill_now(self) -> None:
        """The last thing before this program ends. A copy of it that `fork` made ends without a word to them."""
        if self._group is not None and not self.over.is_set() and self._group.owner == os.getpid():
            self._group.kill()

    def follow(self, settle: Settle) -> None:
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

    # --- its life

    def _run(self, settle: Settle) -> CommandEnd:
        if self._stop is not None:
            return CommandEnd(-TERM, self._stop)
        group = self._started()
        try:
            watch = self._watched(group)
            try:
                end = self._ended_shell(group, watch)
                if end.left_running or not watch.closed:
                    with self._lock:
                        self._left = {process.pid: process for process in end.left_running}
                    settle(end)
                    self._linger(group, watch)
                return end
            finally:
                watch.close()
        except BaseException:  # raised again: whatever happens, no command is left that nobody follows
            group.kill()
            group.process.wait()
            raise
        finally:
            group.release()

    def _started(self) -> ProcessGroup:
        try:
            return ProcessGroup(self._argv, self._cwd, self._variables)
        except ValueError as problem:
            raise StartError(f"{problem}.") from None
        except OSError as problem:
            raise StartError(self._why(problem)) from None

    def _why(self, problem: OSError) -> str:
        if problem.errno == errno.E2BIG:
            longest = max(self._argv, key=len)
            if len(longest.encode("utf-8", "replace")) >= _LONGEST_ARGUMENT:
                return f"it is too long for this system ({len(longest):,} characters). Write it to a file and run that."
            return "command and environment variables together are too long for this system. Unset some variables."
        reason = f"{problem.filename or self._argv[0]}: {reason_of(problem)}."
        if problem.errno == errno.EAGAIN:
            return f"{reason} Too many processes run; end some of them, and try again."
        return reason

    def _watched(self, group: ProcessGroup) -> Watch:
        try:
            watch = open_watch(group)
        except OSError as problem:
            group.close_output()
            raise StartError(f"{reason_of(problem)}.") from None
        with self._lock:
            self._group, self._watch = group, watch
        return watch

    def _ended_shell(self, group: ProcessGroup, watch: Watch) -> CommandEnd:
        """Follow it to the end of the shell, and what has to come after that."""
        stopped = self._wait(group, watch)
        self._drain(watch)
        left = self._left_behind(group, watch)
        ended: tuple[RunningProcess, ...] = ()
        if left and stopped is None and (self._stop is not None or self._ends_leftovers):
            stopped = self._stop
            self._end_all(group, watch)
            self._drain(watch)
            group.members()
            ended, left = left, group.roots()
        if stopped is not None:
            ended = ()
            if not group.ended:
                return CommandEnd(-KILL, stopped, left)
        return CommandEnd(group.exit_code, stopped, left, ended)

    def _wait(self, group: ProcessGroup, watch: Watch) -> str | None:
        """Take output until the shell has ended, or end it. Why it was ended."""
        deadline = None if self._timeout is None else time.monotonic() + self._timeout
        while not group.ended:
            now = time.monotonic()
            stopped = self._stop
            if stopped is None and deadline is not None and now >= deadline:
                stopped = "timeout"
            if stopped is not None:
                self._end_all(group, watch)
                return stopped
            self._take(watch, self._patience(now, deadline))
        return None

    def _left_behind(self, group: ProcessGroup, watch: Watch) -> tuple[RunningProcess, ...]:
        # A process closes its output a moment before it is gone.
        limit = time.monotonic() + (_QUIET if watch.closed else 0)
        while group.members() and time.monotonic() < limit:
            time.sleep(_LOOK / 4)
        return group.roots()

    # --- output

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

    # --- the end of what it started

    def _end_all(self, group: ProcessGroup, watch: Watch) -> None:
        """TERM to all, then KILL; returns when none is left, or can't be ended."""
        group.terminate()
        if self._all_gone(group, watch, GRACE):
            return
        limit = time.monotonic() + _KILLED
        while time.monotonic() < limit:
            # Again and again: it may have been about to start another.
            group.kill()
            if self._all_gone(group, watch, _KILLED / 5):
                return

    def _all_gone(self, group: ProcessGroup, watch: Watch, seconds: float) -> bool:
        limit = time.monotonic() + seconds
        while group.members():
            if time.monotonic() >= limit:
                return False
            data = watch.wait(_LOOK)
            if data is not None:
                self._feed(data)
            elif watch.closed:
                time.sleep(_LOOK)
        return True

    def _linger(self, group: ProcessGroup, watch: Watch) -> None:
        """Stay with what is left behind: its end is noted, its output goes nowhere."""
        self._feed = _drop
        while True:
            stopped = self._stop is not None
            if stopped:
                self._end_all(group, watch)
            members = group.members()
            self._note_ended(group)
            if stopped or (watch.closed and not members):
                return
            watch.follow(process.pid for process in group.roots())
            self._drop_output(watch)

    def _drop_output(self, watch: Watch) -> None:
        """Until something else happens, or it is time for a look."""
        limit = time.monotonic() + _LOOK_LEFT
        while self._stop is None and (now := time.monotonic()) < limit:
            if watch.wait(limit - now) is None:
                return
            # What writes without end gets no more of our time than this.
            time.sleep(_LOOK / 2)

    def _note_ended(self, group: ProcessGroup) -> None:
        """What has gone is told; what it has left in turn takes its place."""
        running = {process.pid: process for process in group.roots()}
        with self._lock:
            self._ended.extend(
                EndedProcess(process.pid, process.name, group.exit_codes.get(process.pid))
                for process in self._left.values()
                if process.pid not in running
            )
            self._left = running


def _drop(data: bytes) -> None:
    return
