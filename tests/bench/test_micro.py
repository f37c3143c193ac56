"""The micro-benchmarks run, and no part's cost grows faster than its work."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.micro import run as runner
from bench.micro.cases import CASES, Case
from bench.micro.measure import Timing, growth, time_case
from tests.support.paths import ROOT
from tests.support.samples import samples

NAMES = [case.name for case in CASES]


def case_of(work_for: int) -> Case:
    """A case that makes `size ** work_for` calls."""

    def make(size: int, folder: Path):
        def work() -> None:
            for number in range(size**work_for):
                abs(number)

        return work

    return Case("a case", "item", 100, make)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_ten_times_the_work_costs_ten_times_as_much(case: Case) -> None:
    grown = growth(case, rounds=samples(5, 3), share=samples(50, 10) / 100)
    assert grown.calls <= runner.MOST_GROWTH
    # What no call shows, such as copying what has grown. The square would be 100; clocks are not exact.
    assert grown.time <= 30


def test_growth_sees_work_that_is_squared() -> None:
    assert growth(case_of(1), rounds=1).calls == pytest.approx(10, rel=0.1)
    assert growth(case_of(2), rounds=1).calls > 80


def test_a_case_is_timed_by_the_unit() -> None:
    timing = time_case(case_of(1), loop=0.5, rounds=2, share=10)
    assert 0 < timing.microseconds < 100
    assert timing.loops == timing.microseconds / 0.5


def test_a_figure_is_compared_as_a_multiple_of_the_loop() -> None:
    timing = Timing(case_of(1), microseconds=4, loops=8)
    assert runner.next_to(timing, {"a case": 4}) == 2
    assert runner.next_to(timing, {}) is None


def test_every_case_has_a_baseline() -> None:
    assert sorted(runner.read_baseline()) == sorted(NAMES)


def test_all_cases_run_with_little_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = tmp_path / "figures.json"
    words = ["--share", "0.01", "--rounds", "1", "--limit", "1e9", "--json", str(figures)]
    assert runner.main(words) == 0
    assert sorted(json.loads(figures.read_text(encoding="utf-8"))) == sorted(NAMES)
    assert len(capsys.readouterr().out.splitlines()) == len(NAMES) + 2


def test_more_than_the_limit_is_an_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--share", "0.01", "--rounds", "1", "--only", "framing", "--limit", "0"]
    assert runner.main(words) == 2, "no case has this word"
    assert runner.main([*words[:-4], "--only", "chunked", "--limit", "0"]) == 1
    assert "(too much)" in capsys.readouterr().out


def test_a_python_without_cantle_is_told_what_to_do() -> None:
    words = [sys.executable, "-I", "-S", str(ROOT / "bench/micro/run.py")]
    done = subprocess.run(words, capture_output=True, encoding="utf-8", check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "run the file with that of the checkout" in done.stderr
