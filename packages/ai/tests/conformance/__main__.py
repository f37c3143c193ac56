"""Runs the table and prints it: `python -m packages.ai.tests.conformance [pytest's arguments]`.

A cell says what its test did in this run: ✓ passed, ✗ failed, – not asked of this API (the reasons follow), and
nothing where it was not run. The exit status is pytest's.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from packages.ai.tests.conformance.cases import CASES
from packages.ai.tests.conformance.column import APIS

_MARKS = {"passed": "✓", "failed": "✗", "skipped": "–"}
_SHORT = {
    "openai-completions": "completions",
    "openai-responses": "responses",
    "azure-openai-responses": "azure",
    "openai-codex-responses": "codex",
    "anthropic-messages": "anthropic",
    "google-generative-ai": "google",
    "google-vertex": "vertex",
    "mistral-conversations": "mistral",
    "bedrock-converse-stream": "bedrock",
}


class Table:
    """A pytest plugin that keeps what came of each cell."""

    def __init__(self) -> None:
        self.cells: dict[tuple[str, str], str] = {}
        self.reasons: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        cell = dict(report.user_properties).get("cell")
        if not isinstance(cell, tuple | list):
            return
        api, case = cell
        before = self.cells.get((api, case))
        if report.when == "call" or report.outcome != "passed":
            self.cells[api, case] = report.outcome if before != "failed" else before
        if report.skipped and isinstance(report.longrepr, tuple):
            self.reasons.append(f"{case}, {api}: {report.longrepr[2].removeprefix('Skipped: ')}")

    def lines(self) -> list[str]:
        """The table as Markdown, the reasons under it."""
        apis = [api for api in APIS if any(ran == api for ran, _ in self.cells)]
        rows = [["case", *(_SHORT[api] for api in apis)]]
        for case in CASES:
            if any(ran == case for _, ran in self.cells):
                rows.append([case, *(_MARKS.get(self.cells.get((api, case), ""), "") for api in apis)])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [_line(row, widths) for row in rows]
        lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
        passed = sum(outcome == "passed" for outcome in self.cells.values())
        failed = sum(outcome == "failed" for outcome in self.cells.values())
        left_out = len(self.cells) - passed - failed
        lines += (
            ["", f"{passed} passed, {failed} failed, {left_out} not asked:"]
            if left_out
            else ["", f"{passed} passed, {failed} failed"]
        )
        return [*lines, *sorted(self.reasons)]


def _line(cells: list[str], widths: list[int]) -> str:
    return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"


def main(arguments: list[str]) -> int:
    """Run, then print."""
    table = Table()
    tests = str(Path(__file__).with_name("test_conformance.py"))
    status = pytest.main([tests, "-q", "--no-header", "--tb=short", "-r", "N", *arguments], plugins=[table])
    print("\n".join(["", *table.lines()]))
    return int(status)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
