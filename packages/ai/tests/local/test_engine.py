"""One model, one thread, one request after the other; a job that is given up is over at once, and nothing is left."""

import asyncio
import contextlib
import os
import queue
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from cantle_ai.errors import ConfigurationError, ProviderError
from cantle_ai.local.engine import Engine, Job
from cantle_ai.local.llama_server import LoadOptions, Server

OPTIONS = LoadOptions(path=Path("m.gguf"), context=10)


class FakeServer:
    """Answers with its request, byte by byte; `gates` hold it up before each. Knows how many answer at once."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.open.set()
        self.began = threading.Event()
        self.running = 0
        self.most = 0
        self.requests: list[bytes] = []
        self.error: Exception | None = None

    def handle_chat_completions(self, request: bytes, callback: Callable[[bytes], bool], /) -> object:
        self.requests.append(request)
        self.running += 1
        self.most = max(self.most, self.running)
        self.began.set()
        try:
            for place in range(len(request)):
                while not self.open.wait(0.005):
                    if callback(b"."):  # llama.cpp reports its progress through the prompt
                        return None
                if callback(request[place : place + 1]):
                    return None
            if self.error is not None:
                raise self.error
            return None
        finally:
            self.running -= 1


@pytest.fixture
def server() -> FakeServer:
    return FakeServer()


@pytest.fixture
async def engine(server: FakeServer) -> AsyncIterator[Engine]:
    engine = Engine(OPTIONS, lambda _: server)
    yield engine
    server.open.set()
    await engine.aclose()
    assert not threads()


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "cantle-local-model"]


async def read(job: Job) -> bytes:
    return b"".join([chunk async for chunk in job])


async def test_an_answer_arrives_in_order(engine: Engine) -> None:
    assert await read(engine.ask(b"hello")) == b"hello"


async def test_requests_are_answered_one_after_the_other(engine: Engine, server: FakeServer) -> None:
    requests = [bytes([65 + number]) * 20 for number in range(8)]
    jobs = [engine.ask(request) for request in requests]
    assert await asyncio.gather(*map(read, jobs)) == requests
    assert (server.requests, server.most) == (requests, 1)


async def test_the_model_is_loaded_once_and_only_when_it_is_asked(server: FakeServer) -> None:
    loads: list[LoadOptions] = []

    def load(options: LoadOptions) -> Server:
        loads.append(options)
        return server

    engine = Engine(OPTIONS, load)
    assert loads == [] and not threads()
    await read(engine.ask(b"a"))
    await read(engine.ask(b"b"))
    assert loads == [OPTIONS]
    await engine.aclose()


async def test_a_job_that_is_given_up_stops_and_the_next_gets_its_answer(
    engine: Engine, server: FakeServer
) -> None:
    server.open.clear()
    first, second = engine.ask(b"first"), engine.ask(b"second")
    assert await anext(first) == b"."
    first.cancel()
    server.began.clear()
    await asyncio.to_thread(server.began.wait, 10)  # the second one's turn
    server.open.set()
    assert (await read(second)).endswith(b"second")


async def test_one_that_is_given_up_before_its_turn_is_never_begun(
    engine: Engine, server: FakeServer
) -> None:
    server.open.clear()
    first, second, third = engine.ask(b"1"), engine.ask(b"2"), engine.ask(b"3")
    second.cancel()
    server.open.set()
    await read(first)
    await read(third)
    assert server.requests == [b"1", b"3"]


async def test_a_failure_reaches_who_asked_and_the_next_is_answered(
    engine: Engine, server: FakeServer
) -> None:
    server.error = RuntimeError("no such template")
    with pytest.raises(ProviderError, match=r"llama\.cpp: no such template"):
        await read(engine.ask(b"a"))
    server.error = None
    assert await read(engine.ask(b"b")) == b"b"


async def test_a_model_that_could_not_be_loaded_is_tried_again(server: FakeServer) -> None:
    failures: list[Exception] = [ConfigurationError(None, "is damaged")]

    def load(_: LoadOptions) -> Server:
        if failures:
            raise failures.pop()
        return server

    engine = Engine(OPTIONS, load)
    with pytest.raises(ConfigurationError, match="is damaged"):
        await read(engine.ask(b"a"))
    assert await read(engine.ask(b"b")) == b"b"
    await engine.aclose()


async def test_closing_ends_what_is_going_on_and_what_waits(engine: Engine, server: FakeServer) -> None:
    server.open.clear()
    jobs = [engine.ask(b"1"), engine.ask(b"2")]
    await anext(jobs[0])
    await engine.aclose()
    for job in jobs:
        with pytest.raises(ProviderError, match="was closed"):
            await read(job)
    with pytest.raises(ProviderError, match="was closed"):
        engine.ask(b"3")
    assert not threads()


async def test_closing_frees_the_model_even_while_a_failure_is_kept() -> None:
    """Its memory is in the server; an exception that was raised in the thread must not hold on to that."""
    freed = threading.Event()

    class Freed:
        def handle_chat_completions(self, request: bytes, callback: Callable[[bytes], bool], /) -> object:
            raise RuntimeError("x")

        def __del__(self) -> None:
            freed.set()

    engine = Engine(OPTIONS, lambda _: Freed())
    with pytest.raises(ProviderError) as caught:
        await read(engine.ask(b"a"))
    await engine.aclose()
    assert freed.is_set() and str(caught.value)


def test_an_event_loop_that_is_gone_holds_nobody_up(server: FakeServer) -> None:
    engine = Engine(OPTIONS, lambda _: server)
    server.open.clear()

    async def leave() -> None:
        await anext(engine.ask(b"abc"))

    asyncio.run(leave())
    assert server.began.is_set()
    server.open.set()

    async def ask() -> bytes:
        return await read(engine.ask(b"again"))

    assert asyncio.run(ask()) == b"again"
    engine.close()
    engine.join(10)
    assert not threads()


def test_a_program_that_forgets_to_close_ends_all_the_same() -> None:
    code = """
import asyncio, sys
from packages.ai.tests.local.test_engine import OPTIONS, FakeServer
from cantle_ai.local.engine import Engine
server = FakeServer()
server.open.clear()
engine = Engine(OPTIONS, lambda _: server)
async def main():
    job = engine.ask(b"x")
    await anext(job)
asyncio.run(main())
print("end")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50)
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_child_process_that_was_forked_has_a_thread_of_its_own() -> None:
    code = """
import asyncio, os, signal
from packages.ai.tests.local.test_engine import OPTIONS, FakeServer, read
from cantle_ai.local.engine import Engine
engine = Engine(OPTIONS, lambda _: FakeServer())
async def ask():
    return await read(engine.ask(b"x"))
async def close():
    await engine.aclose()
assert asyncio.run(ask()) == b"x"
child = os.fork()
if child == 0:
    signal.alarm(20)
    assert asyncio.run(ask()) == b"x"
    asyncio.run(close())
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert asyncio.run(ask()) == b"x"
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=50
    )
    assert (done.returncode, done.stderr) == (0, "")


async def test_whoever_asks_while_it_closes_is_answered_or_refused(server: FakeServer) -> None:
    """The thread that closes comes between the look at whether it is closed and the request's place in the queue."""
    engine = Engine(OPTIONS, lambda _: server)
    closing = threading.Thread(target=engine.close)

    class Held(queue.SimpleQueue[Job | None]):
        def put(self, item: Job | None, block: bool = True, timeout: float | None = None) -> None:
            if item is not None:
                closing.start()
                closing.join(0.2)  # it waits for its turn, or has closed it
                engine.join(0.2)
            super().put(item)

    engine._jobs = Held()
    async with asyncio.timeout(10):
        with contextlib.suppress(ProviderError):
            assert await read(engine.ask(b"2")) == b"2"
    engine.join(10)
    assert not threads()
