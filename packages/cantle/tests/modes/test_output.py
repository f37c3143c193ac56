"""Output goes at the reader's pace: whoever writes waits, and what waits is bounded."""

import asyncio
import os
import sys
from collections.abc import Iterator
from io import FileIO
from typing import TypeAlias

import pytest

from cantle.modes import output as module
from cantle.modes.output import HIGH_WATER, Output

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows pipes block the writer themselves")

Pipe: TypeAlias = tuple[FileIO, FileIO]

TURNS = 20
"""Turns of the loop in which a writer that does not wait would be done."""


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    """Its reading and its writing end; a test may close either."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb", buffering=0) as reader, os.fdopen(writing, "wb", buffering=0) as writer:
        yield reader, writer


async def turns() -> None:
    for _ in range(TURNS):
        await asyncio.sleep(0)


async def read_all(reading: FileIO, size: int) -> bytes:
    """`size` bytes, taken in a thread as another process would."""

    def take() -> bytes:
        data = b""
        while len(data) < size and (block := reading.read(1 << 16)):
            data += block
        return data

    return await asyncio.to_thread(take)


@pytest.mark.fault("K02")
async def test_k02_a_writer_waits_for_a_reader_that_stands_still(pipe: Pipe) -> None:
    reading, writing = pipe
    output = Output(writing.fileno())
    taken = 0

    async def write_much() -> None:
        nonlocal taken
        for number in range(4_000):
            output.write(b"%07d\n" % number * 128)
            taken += 1
            if output.full:
                await output.drain()
        await output.drain()

    writer = asyncio.create_task(write_much())
    while not output.full:
        await asyncio.sleep(0)
    await turns()
    held = taken
    await turns()
    assert not writer.done()
    assert taken == held
    # What the pipe holds, what is being written, and what waits.
    assert held * 1_024 < (1 << 20) + 2 * HIGH_WATER
    data = await read_all(reading, 4_000 * 1_024)
    async with asyncio.timeout(20):
        await writer
    assert data == b"".join(b"%07d\n" % number * 128 for number in range(4_000))


@pytest.mark.fault("K02")
async def test_k02_all_that_was_written_is_out_when_drained(pipe: Pipe) -> None:
    reading, writing = pipe
    output = Output(writing.fileno())
    for number in range(10):
        output.write(b"%d\n" % number)
    await output.drain()
    assert reading.read(1 << 16) == b"".join(b"%d\n" % number for number in range(10))


@pytest.mark.fault("K02")
async def test_a_reader_that_goes_away_ends_the_wait(pipe: Pipe) -> None:
    reading, writing = pipe
    output = Output(writing.fileno())
    output.write(b"x" * (1 << 20))
    waiting = asyncio.create_task(output.drain())
    await turns()
    assert not waiting.done()
    reading.close()
    async with asyncio.timeout(20):
        await waiting
    assert output.closed
    output.write(b"dropped")
    await output.drain()


@pytest.mark.fault("K02")
async def test_the_loop_is_free_while_the_reader_stands_still(pipe: Pipe) -> None:
    _, writing = pipe
    output = Output(writing.fileno())
    output.write(b"x" * (1 << 20))
    waiting = asyncio.create_task(output.drain())
    async with asyncio.timeout(20):
        await asyncio.to_thread(lambda: None)
    assert not waiting.done()
    waiting.cancel()
    output.abandon()
    await asyncio.wait([waiting])


class _Faster:
    """Polls a pipe as another writer leaves it that fills it right after each look."""

    def poll(self, timeout: int) -> list[tuple[int, int]]:
        return [(0, 0)]


@pytest.mark.fault("K02")
async def test_a_pipe_that_blocks_nobody_loses_nothing(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many runtimes hand over pipes that are set so, and whoever shares such a pipe may have filled it."""
    monkeypatch.setattr(module, "_poller", lambda descriptor: _Faster())
    reading, writing = pipe
    os.set_blocking(writing.fileno(), False)
    output = Output(writing.fileno())
    output.write(b"o" * 2_000_000)
    waiting = asyncio.create_task(output.drain())
    await turns()
    assert not waiting.done()
    data = await read_all(reading, 2_000_000)
    async with asyncio.timeout(20):
        await waiting
    assert data == b"o" * 2_000_000
