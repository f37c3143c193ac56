"""The comparison of the wire APIs with each other runs, and tells one that costs too much."""

import subprocess
import sys

import pytest

from bench.micro.apis import KINDS, ApiCost, arguments_case, measure, table
from bench.micro.measure import growth
from bench.micro.run import MOST_GROWTH
from packages.ai.tests.conformance.column import Column, columns
from tests.support.paths import ROOT
from tests.support.samples import full_run


def test_every_api_is_measured() -> None:
    costs = measure(rounds=1, share=0.01)
    assert [cost.api for cost in costs] == [column.api for column in columns()]
    for cost in costs:
        # Some vendors send arguments whole.
        assert {"text", "thinking"} <= cost.milliseconds.keys() <= set(KINDS)
        assert min(cost.milliseconds.values()) > 0


def test_the_leanest_is_the_measure_of_the_others() -> None:
    lean = ApiCost("lean", {"text": 10, "thinking": 30, "argument": 10})
    lines, within = table([lean, ApiCost("fair", {"text": 15, "thinking": 20})])
    assert within
    assert lines[2:] == [
        "| lean | 10 | 1.00 | 30 | 1.50 | 10 | 1.00 |",
        "| fair | 15 | 1.50 | 20 | 1.00 | in one piece |  |",
    ]
    lines, within = table([lean, ApiCost("fat", {"text": 16, "thinking": 30, "argument": 10})])
    assert not within
    assert "| 1.60 (too much) |" in lines[3]


@pytest.mark.fault("A08")
@pytest.mark.parametrize("column", columns(), ids=[column.api for column in columns()])
def test_ten_times_as_many_pieces_of_arguments_cost_ten_times_as_much(column: Column) -> None:
    assert growth(arguments_case(column), rounds=1, share=0.2).calls <= MOST_GROWTH


@pytest.mark.slow
@pytest.mark.skipif(not full_run(), reason="compares times, which needs a quiet machine: CANTLE_FULL=1")
def test_no_api_costs_more_than_one_and_a_half_times_the_leanest() -> None:
    words = [sys.executable, str(ROOT / "bench/micro/run.py"), "--apis"]
    done = subprocess.run(words, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stdout + done.stderr
