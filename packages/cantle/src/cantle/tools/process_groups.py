"""Processes that are started, watched and ended together.

A command gets a session of its own, so one signal reaches all that it starts, and nothing it does to a
terminal reaches ours. What leaves that group by starting a session of its own is followed from parent to child
where the system tells, and on Linux also when its parents are gone: then it is a child of ours, and carries the
command's mark. On Windows a command gets a process group, and `taskkill` walks the tree.

    we ── shell ── a ── b           group: shell, a, b
     │      └── c (own session)     found as a child of the shell
     └── d (own session, orphan)    found among our children, by its mark

Children of ours without the mark belong to the program that Cantle runs in: they get no signal, and nobody here
waits for them.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from cantle.tools.process_adoption import begin_adoption, end_adoption
from cantle.tools.process_marks import Mark
from cantle.tools.process_signals import (
    CONT,
    KILL,
    STOP,
    TERM,
    exit_code_of,
    let_go_of_group,
    send_signal,
    signal_group,
    wait_for,
)
from cantle.tools.process_snapshots import Snapshot, snapshot_of_adopted, snapshot_of_all
from cantle.tools.process_table import ProcessInfo
from cantle.tools.processes import RunningProcess

__all__ = ["ProcessGroup"]

_WINDOWS = os.name == "nt"

_FREEZES = 10
"""How often those that are about to be killed are looked for, to stop them from starting others."""


class ProcessGroup:
    """A running command and everything it has started.

    Used by one thread. The group's number is ours as long as a process of it lives or its first one has not been
    waited for; afterwards it may be anyone's. So signals go to the whole group only before that process has been
    waited for, and later to each process by itself.
    """

    __slots__ = (
        "_adopts",
        "_emptied",
        "_lost",
        "_seen",
        "_unknown",
        "exit_codes",
        "mark",
        "owner",
        "process",
    )

    def __init__(self, argv: Sequence[str], cwd: Path, variables: Mapping[str, str]) -> None:
        """Start the command with nothing to read, its output and errors in one pipe. Raises OSError, ValueError."""
        self._emptied = False
        """Whether the group's number may belong to others by now."""
        self._lost = False
        self._unknown = False
        self._seen: dict[int, ProcessInfo] = {}
        self.mark = Mark()
        self.owner = os.getpid()
        """The program that started it, which alone may end it."""
        self.exit_codes: dict[int, int] = {}
        """How processes ended that we have waited for; -N for one that signal N ended."""
        self._adopts = begin_adoption()
        flags = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0) | getattr(
            subprocess, "CREATE_NO_WINDOW", 0
        )
        try:
            with self.mark.worn():
                self.process = subprocess.Popen(
                    argv,
                    cwd=cwd,
                    env=self.mark.variables(variables),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    bufsize=0,
                    start_new_session=not _WINDOWS,
                    creationflags=flags if _WINDOWS else 0,
                )
        except BaseException:  # raised again: what was not started adopts nobody
            end_adoption()
            raise
        self.mark.take_off_others()

    @property
    def ended(self) -> bool:
        """Whether its first process has ended. Only here it is waited for: `Popen` takes a lost exit code for 0."""
        process = self.process
        if _WINDOWS:
            return process.poll() is not None
        if process.returncode is None:
            try:
                process.returncode = wait_for(process.pid)
            except ChildProcessError:
                self._lost, process.returncode = True, 0
        return process.returncode is not None

    @property
    def exit_code(self) -> int | None:
        """Of the first process when it has ended; None when others in this program have taken it."""
        return None if self._lost else self.process.returncode

    @property
    def output(self) -> int:
        """The descriptor to read the output from."""
        assert self.process.stdout is not None
        return self.process.stdout.fileno()

    def close_output(self) -> None:
        if self.process.stdout is not None:
            self.process.stdout.close()

    def release(self) -> None:
        """No process of it is left, or wanted. Called once."""
        end_adoption()

    def members(self) -> tuple[RunningProcess, ...]:
        """Its processes that live. Those that have ended and were left to us are waited for on the way."""
        alive = not self.ended
        if _WINDOWS:
            self._unknown = alive
            return (RunningProcess(self.process.pid),) if alive else ()
        if not alive and not self._may_be_left():
            self._seen, self._unknown = {}, False
            return ()
        snapshot = snapshot_of_all()
        self._unknown = snapshot is None
        if snapshot is None:
            if not alive:
                let_go_of_group(self.process.pid)
            return (RunningProcess(0),)
        self._find(snapshot, alive)
        return tuple(RunningProcess(info.pid, info.name) for _, info in sorted(self._seen.items()))

    def roots(self) -> tuple[RunningProcess, ...]:
        """Those of the last `members` that none of them started: what a reader would name."""
        if self._unknown:
            return (RunningProcess(0),)
        found = sorted(self._seen.values())
        return tuple(RunningProcess(info.pid, info.name) for info in found if info.parent not in self._seen)

    def terminate(self) -> None:
        """Ask every process to end, parents before their children; one that is stopped is let go on to hear it."""
        self.members()
        self._send(TERM)
        if not _WINDOWS:
            self._send(CONT)

    def kill(self) -> None:
        """End every process. They are stopped first, so that none can start another in the meantime."""
        if _WINDOWS:
            self._send(TERM)
            return
        known: set[int] = set()
        for _ in range(_FREEZES):
            self.members()
            if self._seen.keys() <= known:
                break
            self._send(STOP)
            known |= self._seen.keys()
        self._send(KILL)

    def _send(self, number: int) -> None:
        if _WINDOWS:
            _end_tree(self.process)
            return
        whole = not self.ended or (self._unknown and not self._emptied)
        if whole:
            signal_group(self.process.pid, number)
        for info in self._parents_first():
            if not (whole and info.group == self.process.pid):
                send_signal(info, number)

    def _parents_first(self) -> Iterable[ProcessInfo]:
        def depth(info: ProcessInfo) -> int:
            steps = 0
            while (parent := self._seen.get(info.parent)) is not None and steps < len(self._seen):
                info, steps = parent, steps + 1
            return steps

        return sorted(self._seen.values(), key=depth)

    def _may_be_left(self) -> bool:
        """Whether something is left after the shell has ended: a cheap question, asked after each command."""
        if self._seen:
            return True
        try:
            ours = snapshot_of_adopted() if self._adopts else None
        except OSError:
            return True
        if ours is not None:
            return any(True for _ in self._known(ours))
        self._emptied = self._emptied or not signal_group(self.process.pid, 0)
        return not self._emptied

    def _find(self, snapshot: Snapshot, alive: bool) -> None:
        """Find those that live: the group, what was seen of it before, our orphans, and the children of all."""
        family = {info.pid: info for info in self._known(snapshot)}
        waiting = list(family)
        while waiting:
            new = [info for info in snapshot.children_of(waiting.pop()) if info.pid not in family]
            family.update((info.pid, info) for info in new)
            waiting.extend(info.pid for info in new)
        found = family.values()
        if not alive and not any(self.process.pid in (info.group, info.session) for info in found):
            self._emptied = True
        for info in found:
            if info.ended and info.parent == os.getpid() and info.pid != self.process.pid:
                # Only one that is known as the command's comes here: another's exit code is not ours to take.
                if (exit_code := exit_code_of(info.pid)) is not None:
                    self.exit_codes[info.pid] = exit_code
        self._seen = {info.pid: info for info in found if not info.ended}

    def _known(self, snapshot: Snapshot) -> Iterator[ProcessInfo]:
        """Those of a snapshot that are the command's, whatever their parents are.

        Where nobody gives us the orphans they are the first process's children.
        """
        for pid, seen in self._seen.items():
            if (now := snapshot.table.get(pid)) is not None and now.born == seen.born:
                yield now
        if not self._emptied:
            yield from snapshot.started_by(self.process.pid)
        for foster in {os.getpid()} if self._adopts else {os.getpid(), 1}:
            yield from snapshot.marked(self.mark, foster)


def _end_tree(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        try:
            subprocess.run(
                ["taskkill", "/T", "/F", "/PID", str(process.pid)], capture_output=True, check=False
            )
        except OSError:
            process.kill()
