"""Makes file permissions count for a command that the super-user starts."""

from __future__ import annotations

import os
import sys

import pytest

_DROP = """
import ctypes, os, sys
for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
    if ctypes.CDLL(None, use_errno=True).prctl(24, capability, 0, 0, 0):  # PR_CAPBSET_DROP
        sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
os.execv(sys.argv[1], sys.argv[1:])
"""


def bound_by_permissions(words: list[str]) -> list[str]:
    """The command `words`, run so that the mode bits of files bind it. Skips the test where that cannot be had.

    The super-user stays itself, which keeps its own folders open to it, without the right to ignore modes.
    """
    if sys.platform == "win32" or os.geteuid() != 0:
        return words
    if sys.platform != "linux":
        pytest.skip("the super-user ignores permissions here; run the test as another user")
    return [sys.executable, "-c", _DROP, *words]
