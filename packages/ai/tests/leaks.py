"""What a request must not leave behind: threads, and open sockets."""

from __future__ import annotations

import gc
import threading
from pathlib import Path

_FOLDER = Path("/proc/self/fd")


def open_sockets() -> int | None:
    """How many sockets this process has; None where that cannot be told."""
    if not _FOLDER.is_dir():
        return None
    gc.collect()
    count = 0
    for entry in _FOLDER.iterdir():
        try:
            count += str(entry.readlink()).startswith("socket:")
        except OSError:
            continue
    return count


def http_threads() -> list[threading.Thread]:
    """The request threads that have not ended, after a grace for those that are about to."""
    threads = [thread for thread in threading.enumerate() if thread.name == "cantle-http"]
    for thread in threads:
        thread.join(5)
    return [thread for thread in threads if thread.is_alive()]
