"""A pytest plugin that writes down which tests there are, and asks another pytest for that list."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.support.paths import ROOT

_OUTPUT = "CANTLE_COLLECTED_TESTS"
_TARGET = os.environ.get(_OUTPUT)

Marks: TypeAlias = dict[str, dict[str, list[str]]]
"""Test function, as a node id without parameters -> kind of mark -> the ids that it gives."""

KINDS = ("parity", "fault")


def marks_of(items: Iterable[pytest.Item]) -> Marks:
    """The tests among `items` with the ids that tie them to rows of a ledger."""
    found: dict[str, dict[str, set[str]]] = {}
    for item in items:
        marks = found.setdefault(item.nodeid.partition("[")[0], {kind: set() for kind in KINDS})
        for kind in KINDS:
            marks[kind].update(id for mark in item.iter_markers(kind) for id in mark.args)
    return {name: {kind: sorted(ids) for kind, ids in marks.items() if ids} for name, marks in found.items()}


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Write what was collected to the file that the asking process waits for."""
    if _TARGET:
        Path(_TARGET).write_text(json.dumps(marks_of(session.items)), encoding="utf-8")


def collect_all() -> Marks:
    """Every test function of the repository, with the ids of its marks."""
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
        listed: Marks = json.loads(output.read_text(encoding="utf-8"))
        return listed
