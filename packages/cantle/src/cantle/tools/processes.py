"""The commands of one session: what runs, what they left behind, and the end of both.

The work is done by a thread for each command (:mod:`cantle.tools.process_command`); here it is waited for.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias
from weakref import WeakSet

from msgspec import Struct

if TYPE_CHECKING:
    from cantle.tools.process_command import Command

__all__ = ["CommandEnd", "EndedProcess", "Processes", "RunningProcess", "Settle", "StartError"]


class StartError(Exception):
    """A command could not be started; the text says why."""


class RunningProcess(Struct, frozen=True):
    """A process that runs."""

    pid: int
    """0 when the system does not tell."""
    name: str = ""
    """Of its program, perhaps shortened; empty when the system does not tell."""


class EndedProcess(Struct, frozen=True):
    """A process that a command left running, and that has ended since."""

    pid: int
    name: str
    exit_code: int | None
    """-N when signal N ended it; None when only its parent was told."""


class CommandEnd(Struct, frozen=True):
    """How a command ended."""

    exit_code: int | None
    """Of the shell; -N when signal N ended it; None when others in this program have taken it."""
    stopped: str | None = None
    """Why we ended it: `timeout`, or the reason given to `stop`."""
    left_running: tuple[RunningProcess, ...] = ()
    """What it started and still runs."""
    ended_with_it: tuple[RunningProcess, ...] = ()
    """What it left running and was ended for that, because nothing is to be left."""


Settle: TypeAlias = Callable[["CommandEnd | StartError"], None]
"""Takes how a command ended. The first call counts."""

_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.001, 0.02
"""Seconds between two looks whether all has ended."""

_all: WeakSet[Command] = WeakSet()


def _kill_all() -> None:
    for command in list(_all):
        command.kill_now()


class Processes:
    """The commands of one session."""

    __slots__ = ("_commands", "_ended")

    def __init__(self) -> None:
        self._commands: list[Command] = []
        self._ended: list[EndedProcess] = []

    @property
    def left_running(self) -> tuple[RunningProcess, ...]:
        """What commands that have ended left running, the oldest command's first."""
        return tuple(process for command in self._commands for process in command.left_running)

    def take_ended(self) -> list[EndedProcess]:
        """Those of `left_running` that have ended since the last time this was asked."""
        self._forget_finished()
        ended, self._ended = self._ended, []
        for command in self._commands:
            ended.extend(command.take_ended())
        return ended

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
        _start(command, settle)
        self._commands.append(command)
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
        limit, pause = time.monotonic() + max(command.ends_within for command in commands), _SHORTEST_PAUSE
        # Not in a thread of the loop's: those may all wait for something else.
        while not all(command.over.is_set() for command in commands) and time.monotonic() < limit:
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        self._forget_finished()

    def _forget_finished(self) -> None:
        for command in self._commands:
            if command.over.is_set():
                self._ended.extend(command.take_ended())
        self._commands = [command for command in self._commands if not command.over.is_set()]


def _start(command: Command, settle: Settle) -> None:
    from threading import Thread

    if not _all:
        import atexit

        # Registered once, however often the last command goes and a new one comes.
        atexit.unregister(_kill_all)
        atexit.register(_kill_all)
    _all.add(command)
    try:
        Thread(target=command.follow, args=(settle,), daemon=True, name="cantle-command").start()
    except RuntimeError:
        command.over.set()
        raise StartError(
            "the system gives this program no more threads. End something that runs, and try again."
        ) from None


def _resolve(settled: asyncio.Future[CommandEnd], outcome: CommandEnd | StartError) -> None:
    if settled.done():
        return
    if isinstance(outcome, StartError):
        settled.set_exception(outcome)
        settled.exception()
    else:
        settled.set_result(outcome)
