"""`tools/acceptance`: its rows name things that exist, and it reports what a command says."""

import importlib
import importlib.util
import re
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.paths import ROOT

ISSUES = sorted(path.stem for path in (ROOT / "tools/acceptance_issues").glob("issue_*.py"))


@pytest.fixture(scope="module")
def runner() -> ModuleType:
    loader = SourceFileLoader("acceptance_runner", str(ROOT / "tools/acceptance"))
    spec = importlib.util.spec_from_loader("acceptance_runner", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["acceptance_runner"] = module
    loader.exec_module(module)
    return module


@pytest.mark.parametrize("issue", ISSUES)
def test_the_rows_are_numbered_and_name_files_that_exist(issue: str) -> None:
    rows = importlib.import_module(f"tools.acceptance_issues.{issue}").ROWS
    assert [row.number for row in rows] == list(range(1, len(rows) + 1))
    named = [
        path
        for row in rows
        for command in row.commands
        for path in re.findall(r"(?:packages|tests)/[\w/.]+", command)
    ]
    assert [path for path in named if not (ROOT / path).exists()] == []


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("....\n=== 4 passed in 0.10s ===\n", "4 passed in 0.10s"),
        ("4 passed, 1 skipped in 0.10s\n\n", "4 passed, 1 skipped in 0.10s"),
        ("  249 loop.py\n", "249 loop.py"),
        ("", "(no output)"),
    ],
)
def test_the_closing_line_is_kept(output: str, said: str, runner: ModuleType) -> None:
    assert runner.closing_line(output) == said


def test_figures_that_tests_measured_are_kept(runner: ModuleType, tmp_path: Path) -> None:
    outcome = runner.run("echo figure: 3 ms; echo ==== 1 passed in 2s ====", tmp_path / "log.txt")
    assert outcome.said == "1 passed in 2s; 3 ms"


def test_a_failing_command_is_a_failed_row(runner: ModuleType, tmp_path: Path) -> None:
    outcome = runner.run("echo one; echo two; false", tmp_path / "log.txt")
    assert (outcome.passed, outcome.said) == (False, "two")
    assert (tmp_path / "log.txt").read_text(encoding="utf-8") == "$ echo one; echo two; false\none\ntwo\n"


def test_rows_can_be_listed_without_running_them() -> None:
    command = [sys.executable, str(ROOT / "tools/acceptance"), "2", "--list"]
    listed = subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout
    assert "5. kill -9" in listed
