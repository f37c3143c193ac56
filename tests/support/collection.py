"""A pytest plugin that writes down which tests there are, and asks another pytest for that list."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.support.paths import ROOT

_OUTPUT = "CANTLE_COLLECTED_TESTS"


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Write test function -> ids of its parity marks (loaded with `-p tests.support.collection`)."""
    found: dict[str, set[str]] = {}
    for item in session.items:
        marks = found.setdefault(item.nodeid.partition("[")[0], set())
        marks |= {mark.args[0] for mark in item.iter_markers("parity")}
    target = os.environ.get(_OUTPUT)
    if target:
        listed = {name: sorted(marks) for name, marks in found.items()}
        Path(target).write_text(json.dumps(listed), encoding="utf-8")


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
