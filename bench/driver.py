"""Runs the shared bench with more tests: `driver.py FOLDER [ARGUMENTS OF THE BENCH]`.

The bench's modules have short names of their own (`run`, `core`), so they are imported in this process alone.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any


def main() -> None:
    folder = sys.argv.pop(1)
    sys.path[0] = folder
    bench: Any = importlib.import_module("run")
    # A cost that grows faster than the argument shows in twice its size.
    for name, cap, json_mode in (("bigarg400-p", "bigarg", False), ("bigarg400-json", "json", True)):
        test = bench.stream_test("bigarg-400000-16", 25_000, json_mode)
        bench.SUITES["bigarg"].append((name, cap, test, 1))
    # As one that grows faster than the entries does in twice as many.
    bench.SUITES["resume"].append(("resume20k", "resume", bench.resume_test(20_000, 0), 1))
    bench.main()


if __name__ == "__main__":
    main()
