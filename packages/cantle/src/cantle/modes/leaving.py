"""The end of a process whose work is done: what a tool left running in it does not hold it."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time

from cantle.console import notice

__all__ = ["leave_in_time"]

_LINGER = 2.0
"""Seconds that tasks and threads have to end by themselves."""


def leave_in_time(code: int) -> None:
    """End the process with `code`, should it not end by itself soon. Call it last, when all output is out.

    Python waits for tasks that ignore being cancelled, and for threads, without bounds.
    """
    if len(asyncio.all_tasks()) == 1 and threading.active_count() == 1:
        return
    timer = threading.Timer(_LINGER, _leave, [code])
    timer.daemon = True
    timer.start()


def _leave(code: int) -> None:
    # A login's new token is saved first: the old one is of no use any more.
    renewal = sys.modules.get("cantle_ai.auth.renewal")
    if renewal is not None and renewal.wait_for_renewals():
        time.sleep(_LINGER)  # that was all, perhaps, and the process ends by itself
    notice("what a tool left running in this process does not end by itself, and is ended with it.")
    os._exit(code)
