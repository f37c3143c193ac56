"""The budgets are read, and a run is judged by them."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench.harness import SUITES, members
from bench.run import BEGIN, BUDGETS, END, PAGE, main, recorded
from bench.trouble import Unable
from bench.verdicts import Budget, Word, judge, read_budgets, table

SAMPLE = Path(__file__).with_name("sample.json")
"""Results as the shared bench writes them: both programs, all suites, three rounds."""


def figures(**metrics: float) -> dict[str, list[float]]:
    return {name: [value, value, value] for name, value in metrics.items()}


def budget(of: str = "reference", *, metrics: tuple[str, ...] = ("cpu_ms",), least: bool = False) -> Budget:
    return Budget("a run", "print", metrics, of, 0.5, least)


def judged(budget: Budget, ours: dict[str, Any], reference: dict[str, Any]) -> Word:
    (verdict,) = judge([budget], {"cantle": {"print": ours}, "pi": {"print": reference}})
    return verdict.word


@pytest.mark.parametrize(
    ("ours", "least", "word"),
    [(50, False, "ok"), (50.1, False, "over"), (50, True, "ok"), (49.9, True, "over")],
)
def test_a_ratio_is_compared_with_its_limit(ours: float, least: bool, word: str) -> None:
    assert judged(budget(least=least), figures(cpu_ms=ours), figures(cpu_ms=100)) == word


def test_a_figure_of_our_own_needs_no_reference() -> None:
    (verdict,) = judge([budget("itself")], {"cantle": {"print": figures(cpu_ms=0.5)}})
    assert (verdict.word, verdict.value) == ("ok", 0.5)


def test_several_metrics_are_added_up() -> None:
    both = budget(metrics=("system", "tools"))
    ours, reference = figures(system=20, tools=31), figures(system=50, tools=50)
    (verdict,) = judge([both], {"cantle": {"print": ours}, "pi": {"print": reference}})
    assert (verdict.word, verdict.ours, verdict.other) == ("over", 51, 100)


def test_a_figure_is_compared_with_another_test_beyond_the_cost_of_a_start() -> None:
    twice = Budget("double", "big", ("work_ms",), "small", 2.3, False)
    results = {
        "cantle": {
            "print": figures(cpu_ms=100),
            "small": figures(cpu_ms=150),
            "big": figures(cpu_ms=210),
        }
    }
    (verdict,) = judge([twice], results)
    assert (verdict.ours, verdict.other, verdict.value, verdict.word) == (110, 50, 2.2, "ok")
    assert twice.tests == {"big", "small", "print"}


@pytest.mark.parametrize(
    ("ours", "why"),
    [
        ({}, "cantle has no cpu_ms in print"),
        (figures(cpu_ms=1) | {"rc": [0, 0, 1]}, "cantle failed in print"),
        (figures(cpu_ms=1) | {"rc": [0, -9, 0]}, "cantle failed in print"),
        (figures(cpu_ms=1, error=1), "the bench could not run print with cantle"),
        ({"_error": "ValueError()"}, "the bench could not run print with cantle"),
    ],
)
def test_a_run_that_failed_is_no_measurement(ours: dict[str, Any], why: str) -> None:
    (verdict,) = judge([budget()], {"cantle": {"print": ours}, "pi": {"print": figures(cpu_ms=100)}})
    assert (verdict.word, verdict.why) == ("not measured", why)


def test_without_the_reference_there_is_no_ratio() -> None:
    (verdict,) = judge([budget()], {"cantle": {"print": figures(cpu_ms=1)}})
    assert (verdict.word, verdict.why) == ("not measured", "pi did not run print")
    assert judged(budget(), figures(cpu_ms=1), figures(cpu_ms=0)) == "not measured"


def test_the_budgets_name_tests_of_the_suites() -> None:
    budgets = read_budgets(BUDGETS)
    named = set().union(*(each.tests for each in budgets))
    assert named <= members(list(SUITES))
    assert {"version", "print", "tools", "stream50k-p", "stream50k-json", "bigarg-p", "footprint"} <= named


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ('shows = "x"\ntest = "print"\nof = "itself"\nat_most = 1', "row 1: metric is missing"),
        ('shows = "x"\ntest = "p"\nmetric = "m"\nof = "itself"', "needs at_most or at_least"),
        ('shows = "x"\ntest = "p"\nmetric = "m"\nof = "itself"\nat_most = 1\nat_least = 1', "one of them"),
        (
            'shows = "x"\ntest = "p"\nmetric = "m"\nof = "itself"\nat_most = 1\nratio = 1',
            "ratio means nothing",
        ),
        ("shows =", "could not be read"),
    ],
)
def test_a_wrong_row_is_named(row: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "budgets.toml"
    file.write_text(f"[[budget]]\n{row}\n", encoding="utf-8")
    with pytest.raises(Unable, match=said):
        read_budgets(file)


def test_every_budget_can_be_judged_by_a_recorded_run() -> None:
    results = json.loads(SAMPLE.read_text(encoding="utf-8"))["data"]
    verdicts = judge(read_budgets(BUDGETS), results)
    assert [(each.budget.shows, each.why) for each in verdicts if each.word == "not measured"] == []
    lines = table(verdicts).splitlines()
    assert len(lines) == len(verdicts) + 2
    assert {line.count(" | ") for line in lines[2:]} == {5}


def test_the_exit_status_says_whether_all_budgets_are_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = json.loads(SAMPLE.read_text(encoding="utf-8"))
    assert main(["--judge", str(SAMPLE)]) == 0
    assert "budgets are kept" in capsys.readouterr().out
    results["data"]["cantle"]["version"]["cpu_ms"] = [1000, 1000, 1000]
    slow = tmp_path / "slow.json"
    slow.write_text(json.dumps(results), encoding="utf-8")
    assert main(["--judge", str(slow)]) == 1
    assert "over |" in capsys.readouterr().out
    assert main(["--judge", str(slow), "--suites", "print"]) == 0
    del results["data"]["cantle"]["version"]
    slow.write_text(json.dumps(results), encoding="utf-8")
    assert main(["--judge", str(slow)]) == 1
    assert "not measured: cantle did not run version" in capsys.readouterr().out


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"data": {}}'])
def test_a_file_that_holds_no_results_is_named(
    content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "results.json"
    file.write_text(content, encoding="utf-8")
    assert main(["--judge", str(file)]) == 2
    assert f"{file} does not hold results of the bench" in capsys.readouterr().err


def test_the_table_of_the_page_is_made_anew() -> None:
    results = json.loads(SAMPLE.read_text(encoding="utf-8"))
    results["runs"] = 7
    results["machine"] = {"system": "Linux x86_64", "cores": 2, "python": "Python 3.11.7"}
    verdicts = judge(read_budgets(BUDGETS), results["data"])
    page = f"Above\n{BEGIN}\n| old | table |\n{END}\nBelow\n"
    made = recorded(page, results, verdicts)
    assert made.startswith(f"Above\n{BEGIN}\n| budget |") and made.endswith(f"{END}\nBelow\n")
    assert "7 rounds on Linux x86_64, 2 cores, Python 3.11.7." in made
    assert "old" not in made
    assert recorded(made, results, verdicts) == made
    with pytest.raises(Unable, match="no place for the table"):
        recorded("Above\nBelow\n", results, verdicts)
    with pytest.raises(Unable, match="at least 7 rounds"):
        recorded(page, {**results, "runs": 3}, verdicts)


def test_the_page_has_a_place_for_the_table() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page.count(BEGIN) == page.count(END) == 1
