"""A pytest plugin that writes down which tests there are, and asks another pytest for that list."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.support.paths import ROOT

_OUTPUT = "CANTLE_COLLECTED_TESTS"
_TARGET = os.environ.get(_OUTPUT)


def parity_marks(items: Iterable[pytest.Item]) -> dict[str, list[str]]:
    """Test function, as a node id without parameters -> ids of its parity marks."""
    found: dict[str, set[str]] = {}
    for item in items:
        marks = found.setdefault(item.nodeid.partition("[")[0], set())
        marks |= {mark.args[0] for mark in item.iter_markers("parity")}
    return {name: sorted(marks) for name, marks in found.items()}


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Write what was collected to the file that the asking process waits for."""
    if _TARGET:
        Path(_TARGET).write_text(json.dumps(parity_marks(session.items)), encoding="utf-8")


def collect_all() -> dict[str, list[str]]:
    """Every test function of the repository, as node id without parameters -> its parity ids."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "tests.json"
        words = ["-m", "pytest", "--collect-only", "-q", "-p", "tests.support.collection", "-p", "no:xdist"]
        run = subprocess.run(
            [sys.executable, *words, "-p", "no:cacheprovider"],
            cwd=ROOT,
            env={**os.environ, _OUTPUT: str(output)},
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        if not output.exists() or run.returncode != 0:
            raise AssertionError(
                f"the tests could not be collected:\n{run.stdout[-4000:]}\n{run.stderr[-2000:]}"
            )
        listed: dict[str, list[str]] = json.loads(output.read_text(encoding="utf-8"))
        return listed
