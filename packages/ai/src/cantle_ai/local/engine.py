"""Models that are loaded, each with a thread of its own that answers one request after the other.

    engine = Engine(options)
    job = engine.ask(request)
    async for chunk in job: ...        in the event loop that asked
    job.cancel()                       at once; the thread notices at the next token or batch of the prompt

A model is loaded by its thread when it is first asked, and stays until the engine is closed. Nobody waits for
the thread but who closes: a job that is cancelled is over for its reader, and the next one waits its turn.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import functools
import os
import queue
import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from cantle_ai.errors import CantleAIError, ProviderError

if TYPE_CHECKING:
    from cantle_ai.local.llama_server import LoadOptions, Server

__all__ = ["Engine", "Job"]

_AT_EXIT = 10.0
"""Seconds that a program that ends waits for the thread of an engine that nobody closed."""


class Job:
    """One request on its way: an asynchronous iterator over the chunks of its answer, as JSON, for one reader."""

    def __init__(self, request: bytes) -> None:
        self.request = request
        self.cancelled = False
        self._loop = asyncio.get_running_loop()
        self._chunks: deque[bytes] = deque()
        self._failure: Exception | None = None
        self._ended = False
        self._news = asyncio.Event()

    def cancel(self) -> None:
        """Nobody wants the rest. Returns at once."""
        self.cancelled = True

    def __aiter__(self) -> Job:
        return self

    async def __anext__(self) -> bytes:
        """The next chunk. Raises what went wrong, a :class:`CantleAIError`."""
        while not self._chunks:
            if self._failure is not None:
                raise self._failure
            if self._ended:
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        return self._chunks.popleft()

    # --- the engine's thread

    def chunk(self, chunk: bytes) -> bool:
        """Take a chunk, and say whether to stop."""
        if not self.cancelled:
            self._tell(lambda: self._chunks.append(chunk))
        return self.cancelled

    def end(self, failure: Exception | None = None) -> None:
        """No more chunks come, and why where something went wrong."""

        def finish() -> None:
            self._failure, self._ended = failure, True

        self._tell(finish)

    def _tell(self, change: Callable[[], None]) -> None:
        def tell() -> None:
            change()
            self._news.set()

        try:
            self._loop.call_soon_threadsafe(tell)
        except RuntimeError:  # its loop is closed: nobody reads
            self.cancelled = True


class Engine:
    """One model. Made at no cost; see the module. Any thread may ask and close."""

    def __init__(self, options: LoadOptions, load: Callable[[LoadOptions], Server] | None = None) -> None:
        """`load` is what loads the model: llama.cpp, unless a test has something else."""
        self._options = options
        self._load = load
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._current: Job | None = None
        self._server: Server | None = None
        self._closed = False

    def ask(self, request: bytes) -> Job:
        """Ask for a chat completion, streamed; `request` is its JSON. To be called in an event loop."""
        job = Job(request)
        with self._lock:
            if self._closed:
                raise ProviderError("The local model was closed", code="closed", kind="protocol")
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="cantle-local-model", daemon=True)
                _close_at_exit(self)
                self._thread.start()
            self._jobs.put(job)
        return job

    def close(self) -> None:
        """End what is going on and let the thread end. Returns at once."""
        with self._lock:
            self._closed = True
            current = self._current
        if current is not None:
            current.cancel()
        self._jobs.put(None)

    def join(self, timeout: float | None = None) -> None:
        """Wait until the thread has ended and the model's memory is free again."""
        if self._thread is not None:
            self._thread.join(timeout)

    async def aclose(self) -> None:
        """Close, and wait for it without holding up the event loop."""
        self.close()
        if self._thread is not None:
            await asyncio.get_running_loop().run_in_executor(None, self._thread.join)

    def forked(self) -> None:
        """Begin anew in a child process: threads do not come along, neither this one's nor those of the model.

        What was loaded is never freed here, because that would wait for its threads.
        """
        if self._server is not None:
            import ctypes

            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._server))
        self._jobs, self._lock = queue.SimpleQueue(), threading.Lock()
        self._thread = self._current = self._server = None

    # --- the thread

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            with self._lock:
                self._current = job
                if self._closed:
                    job.cancel()
            failure = self._answer(job)
            self._current = None
            job.end(_closed() if failure is None and self._closed else failure)
        self._server = None
        self._refuse()
        _running.discard(self)

    def _answer(self, job: Job) -> Exception | None:
        """Let the model answer. What goes wrong is the result: the job's reader is told."""
        try:
            if self._server is None and not job.cancelled:
                self._server = self._loaded()
            if self._server is not None and not job.cancelled:
                self._server.handle_chat_completions(job.request, job.chunk)
        except CantleAIError as error:
            return error
        except Exception as error:  # noqa: BLE001 - llama.cpp's exceptions have no type of their own
            return ProviderError(f"llama.cpp: {error}", code="engine_error", kind="protocol")
        return None

    def _loaded(self) -> Server:
        if self._load is not None:
            return self._load(self._options)
        from cantle_ai.local.llama_server import load

        return load(self._options)

    def _refuse(self) -> None:
        """End what was asked for between the last job and now."""
        with contextlib.suppress(queue.Empty):
            while True:
                job = self._jobs.get_nowait()
                if job is not None:
                    job.end(_closed())


def _closed() -> ProviderError:
    return ProviderError("The local model was closed before it had answered", code="closed", kind="protocol")


_running: weakref.WeakSet[Engine] = weakref.WeakSet()


def _close_at_exit(engine: Engine) -> None:
    """A thread that is inside llama.cpp when the interpreter goes would take the process down with it."""
    _running.add(engine)
    _watch()


@functools.cache
def _watch() -> None:
    """Have the interpreter tell, once, when it ends and when it was forked."""
    atexit.register(_close_all)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_begin_anew)


def _begin_anew() -> None:
    for engine in list(_running):
        engine.forked()
    _running.clear()


def _close_all() -> None:
    engines = list(_running)
    for engine in engines:
        engine.close()
    for engine in engines:
        engine.join(_AT_EXIT)
