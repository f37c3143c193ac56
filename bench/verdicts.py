"""Judges a run of the shared bench by the rows of `budgets.toml`.

A run's results are `{peer: {test: {metric: [median, least, most]}}}`, as the bench writes them under `data`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from bench.trouble import Unable

__all__ = ["OURS", "REFERENCE", "Budget", "Results", "Verdict", "judge", "read_budgets", "table"]

Results: TypeAlias = Mapping[str, Mapping[str, Mapping[str, Any]]]
Word: TypeAlias = Literal["ok", "over", "not measured"]

OURS, REFERENCE = "cantle", "pi"
"""The peers' names in the bench."""
_BASE = "print"
"""The test that `work_ms` takes off."""


@dataclass(frozen=True, slots=True)
class Budget:
    """One promise. Its bound is `at_most` or `at_least`."""

    shows: str
    test: str
    metrics: tuple[str, ...]
    of: str
    limit: float
    least: bool
    """Whether `limit` is the least that is allowed, not the most."""

    @property
    def tests(self) -> set[str]:
        """The tests that it needs."""
        needed = {self.test} | ({self.of} - {"reference", "itself"})
        return needed | ({_BASE} if "work_ms" in self.metrics else set())


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a budget fared. `value` is what is compared with the limit: a ratio, or the figure itself."""

    budget: Budget
    word: Word
    ours: float | None = None
    other: float | None = None
    value: float | None = None
    why: str = ""
    """Why nothing was measured."""


def read_budgets(path: Path) -> list[Budget]:
    """The rows of a budget file. Raises :class:`Unable` with the row that is wrong."""
    try:
        rows = tomllib.loads(path.read_text(encoding="utf-8")).get("budget", [])
    except (OSError, ValueError) as error:
        raise Unable(f"{path} could not be read: {error}.") from None
    return [_budget(row, f"{path}, row {number}") for number, row in enumerate(rows, 1)]


def _budget(row: Mapping[str, Any], where: str) -> Budget:
    missing = [name for name in ("shows", "test", "metric", "of") if name not in row]
    if missing:
        raise Unable(f"{where}: {', '.join(missing)} is missing.")
    unknown = sorted(set(row) - {"shows", "test", "metric", "of", "at_most", "at_least"})
    if unknown:
        raise Unable(f"{where}: {', '.join(unknown)} means nothing here.")
    bounds = [name for name in ("at_most", "at_least") if name in row]
    if len(bounds) != 1:
        raise Unable(f"{where}: needs at_most or at_least, and one of them only.")
    metric = row["metric"]
    metrics = (metric,) if isinstance(metric, str) else tuple(metric)
    least = bounds == ["at_least"]
    return Budget(row["shows"], row["test"], metrics, row["of"], float(row[bounds[0]]), least)


def judge(budgets: Sequence[Budget], results: Results) -> list[Verdict]:
    """A verdict for each budget."""
    return [_verdict(budget, results) for budget in budgets]


def _verdict(budget: Budget, results: Results) -> Verdict:
    ours = _figure(results, OURS, budget.test, budget.metrics)
    if isinstance(ours, str):
        return Verdict(budget, "not measured", why=ours)
    if budget.of == "itself":
        return Verdict(budget, _compare(ours, budget), ours, value=ours)
    peer, test = (REFERENCE, budget.test) if budget.of == "reference" else (OURS, budget.of)
    other = _figure(results, peer, test, budget.metrics)
    if isinstance(other, str):
        return Verdict(budget, "not measured", ours, why=other)
    if other <= 0:
        return Verdict(budget, "not measured", ours, other, why=f"{peer} has {other:g} in {test}")
    return Verdict(budget, _compare(ours / other, budget), ours, other, ours / other)


def _compare(value: float, budget: Budget) -> Word:
    return "ok" if (value >= budget.limit if budget.least else value <= budget.limit) else "over"


def _figure(results: Results, peer: str, test: str, metrics: Sequence[str]) -> float | str:
    """The sum of the metrics' medians, or why there is none."""
    row = results.get(peer, {}).get(test)
    if row is None:
        return f"{peer} did not run {test}"
    # A program that fails at once is quick: figures of such a run are worth nothing.
    if _most(row, "error") or "_error" in row:
        return f"the bench could not run {test} with {peer}"
    if _most(row, "rc"):
        return f"{peer} failed in {test}"
    total = 0.0
    for metric in metrics:
        if metric == "work_ms":
            start = _figure(results, peer, _BASE, ["cpu_ms"])
            if isinstance(start, str):
                return start
            total -= start
            metric = "cpu_ms"
        if metric not in row:
            return f"{peer} has no {metric} in {test}"
        total += float(row[metric][0])
    return total


def _most(row: Mapping[str, Any], metric: str) -> float:
    """The largest value of any round, without regard to its sign."""
    return max(map(abs, row[metric])) if metric in row else 0.0


def table(verdicts: Sequence[Verdict]) -> str:
    """The verdicts as a Markdown table."""
    lines = [
        "| budget | the reference | Cantle | ratio | limit | verdict |",
        "|---|---|---|---|---|---|",
    ]
    for verdict in verdicts:
        budget = verdict.budget
        sign = "≥" if budget.least else "≤"
        ratio = "" if verdict.value is None or budget.of == "itself" else f"{verdict.value:.2f}"
        word = verdict.word if not verdict.why else f"{verdict.word}: {verdict.why}"
        cells = [
            budget.shows,
            _number(verdict.other if budget.of == "reference" else None),
            _number(verdict.ours),
            ratio,
            f"{sign} {budget.limit:g}",
            word,
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"
