"""Finds the shared bench, and runs it in a process of its own, with the tests that this project adds to it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.trouble import Unable

__all__ = ["SUITES", "find_harness", "members", "report", "run_harness"]

ROOT = Path(__file__).resolve().parent.parent

SUITES = {
    "version": ("version", "help"),
    "print": ("print", "json"),
    "tools": ("tools",),
    "stream": ("stream5k-p", "stream5k-json", "stream50k-p", "stream50k-json"),
    "bigarg": ("bigarg-p", "bigarg-json", "bigarg400-p", "bigarg400-json"),
    "prompt": ("prompt",),
    "continue": ("continue",),
    "resume": ("resume1k", "resume10k", "resume20k", "resume1k-c", "resume10k-c", "resume100k-c"),
    "footprint": ("footprint",),
}
"""The suites that have to do with what Cantle can do so far, with their tests."""

_FILES = ("run.py", "report.py", "peers.py", "mock.py")


def find_harness(given: str | None, environ: Mapping[str, str]) -> Path:
    """The bench's folder: `given`, else `$CANTLE_BENCH`, else `shared/bench` beside the checkout."""
    beside = ROOT.parent / "shared" / "bench"
    folder = Path(given or environ.get("CANTLE_BENCH") or beside).expanduser().resolve()
    missing = [name for name in _FILES if not (folder / name).is_file()]
    if missing:
        raise Unable(
            f"The shared bench, which is not part of this repository, is not in {folder} (there is no "
            f"{', '.join(missing)}). Name its folder with --harness DIR or in $CANTLE_BENCH. "
            "bench/micro/run.py measures Cantle alone and needs nothing else."
        )
    return folder


def members(suites: Sequence[str]) -> set[str]:
    """The tests that the suites consist of."""
    return {test for suite in suites for test in SUITES[suite]}


def run_harness(
    folder: Path,
    *,
    peers: Sequence[str],
    suites: Sequence[str],
    rounds: int,
    environ: Mapping[str, str],
    out: Path,
) -> None:
    """Run the suites and leave the results in `out`. What the bench says while it works goes to stderr."""
    driver = Path(__file__).with_name("driver.py")
    words = [sys.executable, str(driver), str(folder), "--peers", ",".join(peers)]
    words += ["--suites", ",".join(suites), "--runs", str(rounds), "--out", str(out)]
    code = subprocess.run(
        words, env=environ, stdout=sys.stderr, stdin=subprocess.DEVNULL, check=False
    ).returncode
    if code or not out.is_file():
        raise Unable(f"The shared bench did not get to its end (exit status {code}, see above).")


def report(folder: Path, results: Path) -> str:
    """The bench's own table of all figures, in Markdown."""
    words = [sys.executable, str(folder / "report.py"), str(results)]
    environ = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(words, env=environ, capture_output=True, encoding="utf-8", check=False)
    if done.returncode:
        raise Unable(f"The bench's report failed: {done.stderr.strip()}")
    return done.stdout
