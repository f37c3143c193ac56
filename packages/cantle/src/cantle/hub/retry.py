"""Whether a failed run is tried again, and when. The tables are those of `cantle_ai.retry`; this keeps the count."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from cantle_ai.abort import AbortSignal
from cantle_ai.messages import AssistantMessage
from cantle_ai.retry_policy import RetryPolicy

__all__ = ["Pause", "Retry", "pause"]

Pause: TypeAlias = "Callable[[float, AbortSignal], Awaitable[None]]"
"""Waits so many seconds, or until the signal is aborted. The clock of retries; tests bring their own."""


async def pause(seconds: float, signal: AbortSignal) -> None:
    """Wait, or be woken by an abort."""
    try:
        async with asyncio.timeout(seconds):
            await signal.wait()
    except TimeoutError:
        pass


class Retry:
    """Counts the attempts to get one answer. Every answer that comes starts the count anew."""

    def __init__(self, policy: RetryPolicy) -> None:
        self.policy = policy
        self.attempt = 0

    def wanted(self, message: AssistantMessage) -> bool:
        """Whether this failure is worth another attempt, and one is left."""
        if message.stop_reason != "error" or self.attempt >= self.policy.max_retries:
            return False
        from cantle_ai.retry import retryable  # its tables are compiled; most runs never need them

        return retryable(message)

    def begin(self, message: AssistantMessage) -> int:
        """Count an attempt. Returns how many milliseconds to wait for it."""
        from cantle_ai.retry import delay_ms

        self.attempt += 1
        return delay_ms(message, self.attempt, self.policy)

    def end(self) -> int:
        """Forget the attempts. Returns how many there were; 0 when nothing was being retried."""
        attempts, self.attempt = self.attempt, 0
        return attempts
