#!/usr/bin/env python3
"""Measures this checkout next to the reference, and judges the figures by bench/budgets.toml.

    python3 bench/run.py                        everything, seven rounds: some minutes
    python3 bench/run.py --quick                three rounds without the long streams
    python3 bench/run.py --suites version,print --rounds 9
    python3 bench/run.py --record               everything, and put the table into docs/performance.md

Cantle is built into wheels and installed into a new environment with compiled bytecode. Both programs run in
turn within each round of the shared bench, against its scripted server on 127.0.0.1. Raw results go to
build/bench/, two tables in Markdown to stdout, and progress to stderr. The exit status is 1 when a figure is
over its budget, or was asked for and not measured; 2 when nothing could be measured at all.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.harness import SUITES, find_harness, members, report, run_harness  # noqa: E402 - found just above
from bench.install import Installed, find_peers, install_cantle  # noqa: E402
from bench.trouble import Unable  # noqa: E402
from bench.verdicts import OURS, REFERENCE, Verdict, judge, read_budgets, table  # noqa: E402

BUDGETS = ROOT / "bench" / "budgets.toml"
PAGE = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- figures: python3 bench/run.py --record -->", "<!-- end of figures -->"
"""What stands around the table in the page."""
_QUICK_ROUNDS, _QUICK_SUITES = 3, ("version", "print", "tools", "prompt", "footprint")
_ENOUGH = 7
"""Rounds below which medians are not worth a verdict that lasts."""


def options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure Cantle next to the reference.")
    parser.add_argument("--rounds", type=int, help="how often each test runs (7)")
    parser.add_argument("--suites", help=f"which of {', '.join(SUITES)}, with commas between them (all)")
    parser.add_argument("--quick", action="store_true", help="three rounds of the short suites")
    parser.add_argument("--harness", metavar="DIR", help="the shared bench ($CANTLE_BENCH)")
    parser.add_argument(
        "--peers", metavar="DIR", help="the folder that has the reference as pi ($BENCH_PEERS)"
    )
    parser.add_argument("--python", default=sys.executable, help="the Python that runs Cantle (this one)")
    parser.add_argument("--record", action="store_true", help="put the table into docs/performance.md")
    parser.add_argument(
        "--judge", metavar="FILE", help="judge the results of an earlier run, and run nothing"
    )
    return parser.parse_args(arguments)


def chosen(asked: argparse.Namespace) -> tuple[list[str], int]:
    """The suites and the number of rounds. Raises :class:`Unable`."""
    names = asked.suites.split(",") if asked.suites else list(_QUICK_SUITES if asked.quick else SUITES)
    unknown = [name for name in names if name not in SUITES]
    if unknown:
        raise Unable(f"There is no suite {unknown[0]!r}. There are: {', '.join(SUITES)}.")
    rounds = asked.rounds if asked.rounds is not None else _QUICK_ROUNDS if asked.quick else _ENOUGH
    if rounds < 1:
        raise Unable("--rounds must be at least 1.")
    if asked.record and set(names) != set(SUITES):
        raise Unable("--record needs all suites: the page has one table of one run.")
    if asked.record and not asked.judge and rounds < _ENOUGH:
        raise Unable(f"--record needs at least {_ENOUGH} rounds.")
    return names, rounds


def measure(asked: argparse.Namespace, suites: Sequence[str], rounds: int) -> Path:
    """Run the bench; returns the file with its results and with what it was run on."""
    harness = find_harness(asked.harness, os.environ)
    peers = find_peers(asked.peers, os.environ)
    out = ROOT / "build" / "bench" / time.strftime("%Y%m%d-%H%M%S.json")
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="cantle-bench-") as folder:
        say("Building and installing Cantle …")
        installed = install_cantle(Path(folder), asked.python)
        say(f"Running {', '.join(suites)}, {rounds} rounds …")
        environ = {
            **os.environ,
            "BENCH_PEERS": str(peers),
            "CANTLE": str(installed.command),
            "CANTLE_ROOTS": str(installed.home),
        }
        run_harness(harness, peers=(REFERENCE, OURS), suites=suites, rounds=rounds, environ=environ, out=out)
        results = json.loads(out.read_text(encoding="utf-8"))
        results["machine"] = machine(installed)
    out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(report(harness, out))
    return out


def machine(installed: Installed) -> dict[str, object]:
    """What the figures were measured on."""
    words = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        commit = subprocess.run(words, cwd=ROOT, capture_output=True, encoding="utf-8", check=False).stdout
    except OSError:  # no git here
        commit = ""
    return {
        "commit": commit.strip(),
        "python": installed.python,
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
    }


def conclude(verdicts: Sequence[Verdict], asked_for: set[str]) -> int:
    """Print the table of the verdicts that were asked for. Returns the exit status."""
    wanted = [verdict for verdict in verdicts if verdict.budget.tests <= asked_for]
    print(table(wanted))
    bad = [verdict for verdict in wanted if verdict.word != "ok"]
    print(f"\n{len(wanted) - len(bad)} of {len(wanted)} budgets are kept.")
    return 1 if bad else 0


def recorded(page: str, results: Mapping[str, Any], verdicts: Sequence[Verdict]) -> str:
    """The page with its table made anew. Raises :class:`Unable` when it has no place for one, or for few rounds."""
    if results["runs"] < _ENOUGH:
        raise Unable(f"--record needs at least {_ENOUGH} rounds.")
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise Unable(f"{PAGE} has no place for the table: it goes between {BEGIN} and {END}.")
    on = results.get("machine", {})
    about = f"{results['runs']} rounds on {on.get('system')}, {on.get('cores')} cores, {on.get('python')}."
    return f"{before}{BEGIN}\n{table(verdicts)}\n\n{about}\n{END}{after}"


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(arguments: Sequence[str]) -> int:
    asked = options(arguments)
    try:
        suites, rounds = chosen(asked)
        budgets = read_budgets(BUDGETS)
        file = Path(asked.judge) if asked.judge else measure(asked, suites, rounds)
        try:
            results = json.loads(file.read_text(encoding="utf-8"))
            data, ran = results["data"], results["runs"]
        except OSError as error:
            raise Unable(f"{file} can't be read: {error.strerror}.") from None
        except (ValueError, KeyError, TypeError):
            raise Unable(
                f"{file} does not hold results of the bench; those of earlier runs are in build/bench/."
            ) from None
        verdicts = judge(budgets, data)
        if asked.record:
            page = recorded(PAGE.read_text(encoding="utf-8"), results, verdicts)
            PAGE.write_text(page, encoding="utf-8")
    except Unable as problem:
        say(str(problem))
        return 2
    except KeyboardInterrupt:
        return 130
    print(f"Medians of {ran} rounds; raw results in {file}.")
    if ran < _ENOUGH:
        say(f"{ran} rounds are few: take {_ENOUGH} before you trust a figure.")
    return conclude(verdicts, members(suites))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
