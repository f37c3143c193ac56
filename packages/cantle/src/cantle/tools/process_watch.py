"""Waiting for what a command does next: output, its end, or a word from us.

Where the system can wait for a pipe and a process together, one call does; elsewhere a thread reads the pipe.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Protocol

from cantle.tools.process_groups import ProcessGroup
from cantle.tools.process_signals import process_descriptor

__all__ = ["Watch", "open_watch"]

_READ = 65_536
_TICK = 0.05
"""Seconds between two looks at a process that can't be waited for."""
_FOLLOWED = 16
"""Processes left behind whose end is noticed at once; each takes a descriptor."""


class Watch(Protocol):
    """Watches one process group. `wake` may be called from any thread, the rest from one."""

    def wait(self, timeout: float | None) -> bytes | None:
        """Wait until something has happened, at most `timeout` seconds. What came of the output, None for nothing.

        It may return early.
        """
        ...

    @property
    def closed(self) -> bool:
        """Whether the output has ended: nobody holds its other end any more."""
        ...

    def wake(self) -> None:
        """Make the `wait` that runs, or the next one, return."""
        ...

    def follow(self, pids: Iterable[int]) -> None:
        """Let `wait` return when one of these processes ends, where the system can; they take others' places."""
        ...

    def close(self) -> None: ...


if sys.platform == "win32":

    def open_watch(group: ProcessGroup) -> Watch:
        """The best way to watch that this system has."""
        return ThreadWatch(group)

else:
    import select

    def open_watch(group: ProcessGroup) -> Watch:
        """The best way to watch that this system has."""
        return PollWatch(group)

    class PollWatch:
        """Waits with `poll` for the pipe, the process (Linux) and a pipe of our own that wakes it."""

        def __init__(self, group: ProcessGroup) -> None:
            from threading import Lock

            self._group = group
            self._lock = Lock()
            self._poll = select.poll()
            self._output = group.output
            self._poll.register(self._output, select.POLLIN)
            self._ear, self._mouth = os.pipe()
            os.set_blocking(self._mouth, False)
            self._poll.register(self._ear, select.POLLIN)
            self._process = process_descriptor(group.process.pid)
            if self._process is not None:
                self._poll.register(self._process, select.POLLIN)
            self._waits_for_end = True
            self._followed: dict[int, int] = {}
            self.closed = False

        def wait(self, timeout: float | None) -> bytes | None:
            if self._process is None and self._waits_for_end:
                timeout = _TICK if timeout is None else min(timeout, _TICK)
            ready = {
                descriptor for descriptor, _ in self._poll.poll(None if timeout is None else timeout * 1_000)
            }
            if self._ear in ready:
                os.read(self._ear, 64)
            if self._waits_for_end and self._group.ended:
                self._waits_for_end = False
                if self._process is not None:
                    # It stays readable for ever.
                    self._poll.unregister(self._process)
            for pid in [pid for pid, handle in self._followed.items() if handle in ready]:
                self._leave(pid)
            if self._output not in ready:
                return None
            data = os.read(self._output, _READ)
            if not data:
                self.closed = True
                self._poll.unregister(self._output)
            return data or None

        def wake(self) -> None:
            with self._lock:
                if self._mouth >= 0:
                    try:
                        os.write(self._mouth, b".")
                    except BlockingIOError:
                        pass

        def follow(self, pids: Iterable[int]) -> None:
            wanted = list(pids)[:_FOLLOWED]
            for pid in [pid for pid in self._followed if pid not in wanted]:
                self._leave(pid)
            for pid in wanted:
                if pid not in self._followed and (handle := process_descriptor(pid)) is not None:
                    self._followed[pid] = handle
                    self._poll.register(handle, select.POLLIN)

        def _leave(self, pid: int) -> None:
            handle = self._followed.pop(pid)
            self._poll.unregister(handle)
            os.close(handle)

        def close(self) -> None:
            self.follow(())
            with self._lock:
                os.close(self._mouth)
                self._mouth = -1
            os.close(self._ear)
            if self._process is not None:
                os.close(self._process)
            self._group.close_output()


class ThreadWatch:
    """A thread reads the pipe; the process is looked at between two pieces.

    When a process that is left behind holds the pipe, the thread stays until that ends.
    """

    def __init__(self, group: ProcessGroup) -> None:
        from queue import Queue
        from threading import Thread

        self._group = group
        self._pieces: Queue[bytes | None] = Queue(maxsize=16)
        self.closed = False
        Thread(target=self._read, daemon=True, name="cantle-output").start()

    def wait(self, timeout: float | None) -> bytes | None:
        from queue import Empty

        try:
            data = self._pieces.get(timeout=_TICK if timeout is None else min(timeout, _TICK))
        except Empty:
            return None
        if data == b"":
            self.closed = True
        return data or None

    def wake(self) -> None:
        return

    def follow(self, pids: Iterable[int]) -> None:
        return

    def close(self) -> None:
        return

    def _read(self) -> None:
        descriptor = self._group.output
        while True:
            try:
                data = os.read(descriptor, _READ)
            except OSError:
                data = b""
            self._pieces.put(data)
            if not data:
                self._group.close_output()
                return
