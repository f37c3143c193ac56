"""Every test here ends with no task left and nothing that asyncio had to complain about."""

import asyncio
import gc
from collections.abc import AsyncIterator

import pytest_asyncio

from packages.ai.tests.stream.sources import settle


@pytest_asyncio.fixture(autouse=True)
async def nothing_left() -> AsyncIterator[None]:
    loop = asyncio.get_running_loop()
    complaints: list[dict[str, object]] = []
    loop.set_exception_handler(lambda _, context: complaints.append(context))
    before = asyncio.all_tasks()
    yield
    gc.collect()
    await settle(50)
    gc.collect()
    left = {task for task in asyncio.all_tasks() - before if task is not asyncio.current_task()}
    assert not left
    assert not complaints
