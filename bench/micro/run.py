#!/usr/bin/env python3
"""Measures single parts of Cantle: what a unit of their work costs, next to a stored baseline.

    .venv/bin/python bench/micro/run.py                    all cases
    .venv/bin/python bench/micro/run.py --only stream      those that have the word in their name
    .venv/bin/python bench/micro/run.py --growth           what ten times the work costs
    .venv/bin/python bench/micro/run.py --apis             what 10,000 deltas cost by each wire API
    .venv/bin/python bench/micro/run.py --save             make the figures the baseline

CPU time, best of some runs. A figure is compared with the baseline as a multiple of a plain Python loop, so that
another machine may compare as well. The exit status is 1 when a case costs more than `--limit` times its
baseline, with `--growth` when ten times the work makes more than eleven times the calls, and with `--apis` when
an API costs more than 1.5 times the leanest.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[0] = str(ROOT)  # not this folder, whose modules are `bench.micro`'s

try:
    import cantle  # noqa: F401 - whether it is there
except ModuleNotFoundError:
    sys.exit(
        "This Python has no cantle: run the file with that of the checkout, .venv/bin/python bench/micro/run.py; "
        "`python3 tools/dev.py demo` makes it."
    )

from bench.micro.cases import CASES, Case  # noqa: E402 - the checkout's own package, found just above
from bench.micro.measure import Growth, Timing, calibrate, growth, time_case  # noqa: E402

BASELINE = Path(__file__).with_name("baseline.json")
MOST_GROWTH = 11.0


def options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure single parts of Cantle.")
    parser.add_argument("--only", metavar="WORD", default="", help="cases with this word in their name")
    parser.add_argument(
        "--rounds", type=int, default=7, help="runs of each case, of which the best counts (7)"
    )
    parser.add_argument("--share", type=float, default=1.0, help="share of the usual amount of work (1)")
    parser.add_argument(
        "--limit", type=float, default=1.5, help="what is too much, next to the baseline (1.5)"
    )
    parser.add_argument("--growth", action="store_true", help="compare with ten times the work instead")
    parser.add_argument("--apis", action="store_true", help="compare the wire APIs with each other instead")
    parser.add_argument("--json", metavar="FILE", help="also write the figures there")
    parser.add_argument("--save", action="store_true", help="make them the baseline")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    asked = options(arguments)
    cases = [case for case in CASES if asked.only in case.name]
    if not cases or asked.rounds < 1 or asked.share <= 0:
        print("Nothing to measure: see --help for --only, --rounds and --share.", file=sys.stderr)
        return 2
    if asked.apis:
        return _apis(asked)
    return _grow(cases, asked) if asked.growth else _time(cases, asked)


def _time(cases: Sequence[Case], asked: argparse.Namespace) -> int:
    baseline = read_baseline()
    print("| case | µs | of one | next to the baseline |\n|---|---|---|---|", flush=True)
    timings, slower = [], 0
    for case in cases:
        # Anew for each: a machine that others use is not equally quick all the time.
        timing = time_case(case, calibrate(), rounds=asked.rounds, share=asked.share)
        timings.append(timing)
        ratio = next_to(timing, baseline)
        slower += ratio is not None and ratio > asked.limit
        print(_row(timing, ratio, asked.limit), flush=True)
    figures = {timing.case.name: round(timing.loops, 3) for timing in timings}
    if asked.json:
        Path(asked.json).write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    if asked.save:
        text = json.dumps({**baseline, **figures}, indent=1) + "\n"
        BASELINE.write_text(text, encoding="utf-8")
    return 1 if slower and not asked.save else 0


def read_baseline() -> dict[str, float]:
    """The stored figures: by case, multiples of a round of the calibration loop."""
    if not BASELINE.is_file():
        return {}
    stored: dict[str, float] = json.loads(BASELINE.read_text(encoding="utf-8"))
    return stored


def next_to(timing: Timing, baseline: Mapping[str, float]) -> float | None:
    """How many times its baseline a case costs; None for one that has none."""
    stored = baseline.get(timing.case.name)
    return None if not stored else timing.loops / stored


def _row(timing: Timing, ratio: float | None, limit: float) -> str:
    told = "new" if ratio is None else f"{ratio:.2f}{' (too much)' if ratio > limit else ''}"
    return f"| {timing.case.name} | {timing.microseconds:.2f} | {timing.case.unit} | {told} |"


def _grow(cases: Sequence[Case], asked: argparse.Namespace) -> int:
    print("| case | calls | CPU |\n|---|---|---|", flush=True)
    found: list[Growth] = []
    for case in cases:
        grown = growth(case, rounds=asked.rounds, share=asked.share)
        found.append(grown)
        print(f"| {case.name} | {grown.calls:.1f} | {grown.time:.1f} |", flush=True)
    return 1 if any(grown.calls > MOST_GROWTH for grown in found) else 0


def _apis(asked: argparse.Namespace) -> int:
    from bench.micro.apis import measure, table

    lines, within = table(measure(rounds=asked.rounds, share=asked.share))
    print("\n".join(lines), flush=True)
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
