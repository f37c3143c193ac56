"""Standard output of a run: taken over whole, written in order, at the reader's pace.

In print and JSON mode stdout belongs to the answer or the protocol. So it is moved away from file
descriptor 1 first, and what anything else prints, child processes included, goes to stderr.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Protocol

__all__ = ["Output", "take_stdout"]

PIPE_BUF = 4096
"""A pipe that polls as writable takes this many bytes without blocking (POSIX; its value on Linux)."""

HIGH_WATER = 65_536
"""Bytes that may wait before the writer has to."""


def take_stdout() -> int:
    """Move stdout to a descriptor of its own and let descriptor 1 be stderr. Returns the descriptor."""
    sys.stdout.flush()
    descriptor = os.dup(1)
    os.dup2(2, 1)
    return descriptor


class _Poll(Protocol):
    def poll(self, timeout: float, /) -> list[tuple[int, int]]:
        """What the descriptor is ready for within `timeout` milliseconds; empty when that is nothing."""
        ...


class Output:
    """Bytes on their way to a file descriptor. Belongs to one event loop.

    `write` never blocks; what it takes is written as soon as the loop is free. `closed` becomes true
    when the reader is gone or writing failed; what is written after that is dropped.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._parts: list[bytes] = []
        self._size = 0
        self._flushing: asyncio.Task[None] | None = None
        self._poll = _poller(descriptor)
        self._failure: OSError | None = None
        self.closed = False

    def write(self, data: bytes) -> None:
        """Take `data`; it leaves when the event loop is next free, together with what came meanwhile."""
        if self.closed:
            return
        self._parts.append(data)
        self._size += len(data)
        if self._flushing is None:
            self._flushing = asyncio.get_running_loop().create_task(self._flush(), name="cantle-output")

    @property
    def full(self) -> bool:
        """Whether so much waits that the caller should `drain` before it writes more."""
        return self._size >= HIGH_WATER

    async def drain(self) -> None:
        """Wait until all that was taken is written, or the reader is gone.

        Raises OSError when the descriptor cannot be written to for another reason, such as a full disk.
        """
        await self.catch_up()
        if self._failure is not None:
            raise self._failure

    async def catch_up(self) -> None:
        """Wait like :meth:`drain`, and leave a failure for it to raise."""
        while self._flushing is not None:
            await asyncio.wait([self._flushing])

    def abandon(self) -> None:
        """Drop what waits and what comes, for a reader that stands still."""
        self.closed = True
        self._parts, self._size = [], 0
        if self._flushing is not None:
            self._flushing.cancel()

    async def _flush(self) -> None:
        try:
            while self._parts and not self.closed:
                data, self._parts, self._size = b"".join(self._parts), [], 0
                await self._write_all(memoryview(data))
        except OSError as error:
            self.closed = True
            self._parts, self._size = [], 0
            if not isinstance(error, BrokenPipeError):
                self._failure = error
        finally:
            self._flushing = None

    async def _write_all(self, data: memoryview) -> None:
        if self._poll is None:
            while data:
                data = data[os.write(self._descriptor, data) :]
            return
        while data:
            if not self._poll.poll(0):
                await self._writable()
            try:
                data = data[os.write(self._descriptor, data[:PIPE_BUF]) :]
            except BlockingIOError:  # the caller made it non-blocking, and another writer was faster
                await self._writable()

    async def _writable(self) -> None:
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()

        def wake() -> None:
            if not ready.done():
                ready.set_result(None)

        loop.add_writer(self._descriptor, wake)
        try:
            await ready
        finally:
            loop.remove_writer(self._descriptor)


if sys.platform == "win32":

    def _poller(descriptor: int) -> _Poll | None:
        """Windows pipes cannot be polled: writing blocks until the reader has room."""
        return None

else:
    import select
    import stat

    def _poller(descriptor: int) -> _Poll | None:
        """None for regular files, which never make a writer wait and may be written at once."""
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        poll = select.poll()
        poll.register(descriptor, select.POLLOUT)
        return poll
