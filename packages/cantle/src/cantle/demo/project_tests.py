"""Runs the demo project's own tests and counts."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from msgspec import Struct

__all__ = ["Counts", "command", "run_tests"]

TIMEOUT = 60.0
"""Seconds. The tests take a fraction of one."""


class Counts(Struct, frozen=True):
    """What a test run came to."""

    passed: int
    failed: int

    @property
    def ok(self) -> bool:
        return self.passed > 0 and self.failed == 0

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed"


def command() -> list[str]:
    """The command that runs the tests, with the Python that runs Cantle; leaves no byte code behind."""
    return [sys.executable, "-B", "-m", "unittest"]


def run_tests(folder: Path) -> Counts:
    """Run the tests in `folder`. A run that cannot start or never ends counts as none passed, one failed."""
    try:
        done = subprocess.run(
            command(),
            cwd=folder,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            timeout=TIMEOUT,
        )
    except (OSError, subprocess.TimeoutExpired):
        return Counts(0, 1)
    ran = re.search(r"^Ran (\d+) tests?", done.stderr, re.MULTILINE)
    if ran is None:
        return Counts(0, 1)
    bad = sum(int(number) for number in re.findall(r"(?:failures|errors)=(\d+)", done.stderr))
    if done.returncode and not bad:
        bad = 1
    return Counts(int(ran[1]) - bad, bad)
