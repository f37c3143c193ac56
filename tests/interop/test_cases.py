"""Both programs do the same with each case, but for what rows of the ledger explain; and each explains something."""

from __future__ import annotations

import copy
import json
import re
import shutil
from collections import Counter

import pytest

from tests.interop.case import Case
from tests.interop.cases import ALL, CASES
from tests.interop.differ import Difference, differences
from tests.interop.explanations import Explanation, explanations, unexplained
from tests.interop.normalisers import RULES, raw_view, view
from tests.interop.recorded import Recorder
from tests.parity.ledger import rows
from tests.support.paths import ROOT, own_files


@pytest.fixture(scope="module")
def known() -> list[Explanation]:
    return explanations(rows())


def found(recorder: Recorder, case: Case) -> list[Difference]:
    ours, theirs = recorder.runs(case)
    return list(differences(view(case, ours), view(case, theirs)))


@pytest.mark.reference
@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_both_do_the_same_but_for_what_the_ledger_explains(
    recorder: Recorder, known: list[Explanation], name: str
) -> None:
    case = CASES[name]
    if in_the_way := [program for program in case.without if shutil.which(program)]:
        pytest.skip(f"the reference does something else where {in_the_way[0]} is installed")
    left = unexplained(name, found(recorder, case), known)
    assert not left, "\n".join(["no row of the ledger explains (Cantle's != the reference's):", *left])


@pytest.mark.reference
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_explanation_explains_something(recorder: Recorder, known: list[Explanation]) -> None:
    played = {name: case for name, case in CASES.items() if not any(map(shutil.which, case.without))}
    left = [line for line in known if any(map(line.cases.fullmatch, played))]
    for name, case in played.items():
        here = found(recorder, case)
        left = [line for line in left if not any(line.covers(name, difference) for difference in here)]
    assert not left, "\n".join(
        ["these explain nothing any more:", *(f"{one.row}: {one.line}" for one in left)]
    )


@pytest.mark.reference
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_rule_takes_something_out(recorder: Recorder) -> None:
    idle = {rule.name for rule in RULES}
    for case in CASES.values():
        for run in recorder.runs(case):
            shown = raw_view(run)
            for rule in RULES:
                before = copy.deepcopy(shown) if rule.name in idle else None
                rule.apply(shown, case, run)
                if before is not None and shown != before:
                    idle.discard(rule.name)
    assert idle == set()


@pytest.mark.parity("events.run-order")
@pytest.mark.reference
@pytest.mark.slow
def test_a_task_of_six_calls_gives_the_same_events_in_the_same_order(recorder: Recorder) -> None:
    case = CASES["six-calls"]
    ours, theirs = (view(case, run) for run in recorder.runs(case))
    assert len(ours["requests"]) == len(theirs["requests"]) == 6
    assert ours["events"]["order"].count("tool_execution_start") == 6
    assert ours["events"]["order"] == theirs["events"]["order"]
    assert ours["files"] == theirs["files"]


def test_each_case_has_a_name_of_its_own() -> None:
    counts = Counter(case.name for case in ALL)
    assert [name for name, count in counts.items() if count > 1] == []


def test_the_ledger_names_only_cases_that_there_are(known: list[Explanation]) -> None:
    assert [f"{one.row}: {one.line}" for one in known if not any(map(one.cases.fullmatch, CASES))] == []


def test_rules_that_hide_a_difference_name_their_row() -> None:
    named = {rule.row for rule in RULES if rule.row}
    assert named <= {row.id for row in rows() if row.status != "same"}


@pytest.mark.reference
@pytest.mark.slow
def test_no_sentence_of_the_references_prompt_stands_in_this_repository(recorder: Recorder) -> None:
    _, theirs = recorder.runs(CASES["tools-read-only"])
    body = theirs.requests[0]["body"]
    sentences = {
        sentence
        for text in [json.dumps(body["messages"][0]), json.dumps(body["tools"])]
        for sentence in re.split(r'\\n|"|\. ', text)
        if len(sentence) > 40 and sentence.count(" ") > 5
    }
    assert len(sentences) > 10
    found = [
        f"{path.relative_to(ROOT)}: {sentence}"
        for path in own_files()
        for text in [path.read_bytes().decode("latin-1")]
        for sentence in sentences
        if sentence in text
    ]
    assert found == []
