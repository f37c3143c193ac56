"""The demo: it shows what happens, and its exit code says whether the tests failed before and pass after."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cantle.demo import show
from cantle.demo.project_tests import Counts, run_tests
from cantle.demo.script import responses
from tests.support.cli import Cli


def test_it_says_that_the_model_is_scripted_and_shows_each_step(cli: Cli) -> None:
    done = cli.run("demo", "--folder", "here")
    assert (done.returncode, done.stderr) == (0, "")
    steps = [
        str(cli.cwd / "here" / "project"),
        "The model is scripted",
        "Tests before: 4 passed, 3 failed",
        "> bash",
        "FAILED",
        "> read shop/order.py",
        "> read shop/bill.py",
        "> edit shop/order.py",
        "> edit shop/bill.py",
        "> bash",
        "OK",
        "Tests after: 7 passed, 0 failed",
        "6 tool calls in 6 turns",
    ]
    place = 0
    for step in steps:
        place = done.stdout.find(step, place)
        assert place >= 0, f"{step!r} is not shown in its place:\n{done.stdout}"


@pytest.mark.skipif(sys.platform == "win32", reason="bash is held up by a file that it reads first")
def test_steps_are_shown_while_it_works(cli: Cli) -> None:
    gate, script = cli.cwd / "gate", cli.cwd / "wait.sh"
    script.write_text(f"while [ ! -e {shlex.quote(str(gate))} ]; do sleep 0.01; done\n", "utf-8")
    cli.variables["BASH_ENV"] = str(script)
    with cli.started("demo", "--folder", "here") as process:
        assert process.stdout is not None
        shown = b"".join(iter_until(process.stdout, b"> bash"))
        assert b"Tests before: 4 passed, 3 failed" in shown
        assert process.poll() is None
        gate.touch()
        assert b"Tests after: 7 passed" in process.stdout.read()
        assert process.wait(timeout=20) == 0


def iter_until(lines: Iterable[bytes], part: bytes) -> Iterator[bytes]:
    """The lines up to the first that holds `part`; fails if there is none."""
    for line in lines:
        yield line
        if part in line:
            return
    raise AssertionError(f"{part!r} was not shown")


UNDONE: list[tuple[str, list[Any]]] = [
    ("nothing", ["I did nothing."]),
    ("half of it", [*responses()[:3], "That will do."]),
    ("the request fails", [{"error": {"status": 400, "message": "no"}}]),
]


@pytest.mark.parametrize("answers", [row[1] for row in UNDONE], ids=[row[0] for row in UNDONE])
def test_tests_that_still_fail_are_a_failure(
    answers: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(show, "responses", lambda: answers)
    assert show.run_demo(tmp_path / "here", as_json=True) == 1
    said = capsys.readouterr()
    report = json.loads(said.out)
    assert report["testsBefore"] == {"passed": 4, "failed": 3}
    assert report["testsAfter"]["failed"] > 0
    assert "did not work" in said.err


def test_tests_that_passed_before_are_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(show, "run_tests", lambda folder: _better(run_tests(folder)))
    assert show.run_demo(tmp_path / "here", as_json=False) == 1
    assert "did not work" in capsys.readouterr().err


def _better(counts: Counts) -> Counts:
    return Counts(counts.passed + counts.failed, 0)
