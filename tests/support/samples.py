"""How many samples a test draws: few in everyday runs, all of them when `CANTLE_FULL=1`."""

import os

# Read here and once: the variable is gone when a test runs, so that no command under test sees it.
_FULL = os.environ.get("CANTLE_FULL") == "1"


def full_run() -> bool:
    """Whether the long form of the tests was asked for (`tools/acceptance` does)."""
    return _FULL


def samples(full: int, quick: int) -> int:
    """`full` in a full run, else `quick`."""
    return full if full_run() else quick
