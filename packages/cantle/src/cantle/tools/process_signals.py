"""What is done to processes: signals to one or to a group, and letting go of one that has ended.

Signals are POSIX's; on Windows nothing here does anything, and a tree of processes is ended as a whole.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable

from cantle.tools.process_table import ProcessInfo, read_process

__all__ = [
    "CONT",
    "KILL",
    "STOP",
    "TERM",
    "exit_code_of",
    "let_go_of_group",
    "own_session",
    "process_descriptor",
    "send_signal",
    "signal_group",
    "wait_for",
]

TERM = int(signal.SIGTERM)

if sys.platform == "win32":
    CONT = KILL = STOP = TERM

    def signal_group(group: int, number: int) -> bool:
        return False

    def own_session() -> int:
        return 0

    def exit_code_of(pid: int) -> int | None:
        return None

    def wait_for(pid: int) -> int | None:
        return None

    def let_go_of_group(group: int) -> None:
        return

else:
    CONT = int(signal.SIGCONT)
    KILL = int(signal.SIGKILL)
    STOP = int(signal.SIGSTOP)

    def signal_group(group: int, number: int) -> bool:
        """Send a signal, or 0 to ask, to all of a process group. False when nobody is in it."""
        try:
            os.killpg(group, number)
        except ProcessLookupError:
            return False
        except PermissionError:
            # Others own all that are left.
            pass
        return True

    def own_session() -> int:
        """The session of this program."""
        return os.getsid(0)

    def exit_code_of(pid: int) -> int | None:
        """Let go of a child that has ended: its exit code, -N after signal N, None when it is not to be had."""
        try:
            return wait_for(pid)
        except ChildProcessError:
            return None

    def wait_for(pid: int) -> int | None:
        """The exit code of a child, -N after signal N, None while it runs. Raises ChildProcessError when it is
        no child, or its exit code is lost: others have waited for it, or SIGCHLD is ignored.
        """
        done, status = os.waitpid(pid, os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if done else None

    def let_go_of_group(group: int) -> None:
        """Let go of all children in a process group that have ended."""
        try:
            while os.waitpid(-group, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass


def process_descriptor(pid: int) -> int | None:
    """A descriptor that stands for one process, to be closed; None where the system has none, or none left."""
    open_process: Callable[[int], int] | None = getattr(os, "pidfd_open", None)
    if open_process is None:
        return None
    try:
        return open_process(pid)
    except OSError:
        return None


def send_signal(info: ProcessInfo, number: int) -> None:
    """Send a signal to this very process; nothing happens when it is gone, even if its number is in use again."""
    handle = process_descriptor(info.pid)
    try:
        now = read_process(info.pid)
        if now is None or now.born != info.born:
            return
        if handle is None:
            os.kill(info.pid, number)
        else:
            _signal_by(handle, number)
    except OSError:
        # It has ended meanwhile, or belongs to someone else, who alone may end it.
        pass
    finally:
        if handle is not None:
            os.close(handle)


if sys.platform == "linux":

    def _signal_by(handle: int, number: int) -> None:
        signal.pidfd_send_signal(handle, number)

else:

    def _signal_by(handle: int, number: int) -> None:
        raise OSError("only Linux has descriptors of processes")
