"""What a stream must not leave behind: tasks, and complaints of asyncio."""

import asyncio
import gc
from collections.abc import AsyncIterator

import pytest_asyncio

from packages.ai.tests.stream.sources import settle


@pytest_asyncio.fixture
async def nothing_left() -> AsyncIterator[None]:
    """Fails the test when a task outlives it, or asyncio had something to report."""
    loop = asyncio.get_running_loop()
    complaints: list[dict[str, object]] = []
    loop.set_exception_handler(lambda _, context: complaints.append(context))
    before = asyncio.all_tasks()
    yield
    gc.collect(1)
    await settle(50)
    gc.collect(1)
    left = {task for task in asyncio.all_tasks() - before if task is not asyncio.current_task()}
    assert not left
    assert not complaints
