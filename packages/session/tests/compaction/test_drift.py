"""The measure of drift: that it counts, and what compaction loses when the model that sums up loses nothing."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from cantle_ai.context import Context
from cantle_ai.messages import UserMessage
from cantle_ai.testing import ScriptedModel
from cantle_session.compaction import SummaryFailed
from cantle_session.compaction.drift import copied_notes, measure_drift
from cantle_session.compaction.drift_fixture import pieces

TOOL = Path(__file__).parents[4] / "tools" / "drift.py"


def measured(notes, **fields):
    scripted = ScriptedModel(notes)
    report = asyncio.run(measure_drift(scripted.stream, scripted.model, **fields))
    return {row.compactions: row for row in report.rows}, report


def without_previous(context):
    """The notes of a model that does not look at the earlier ones."""
    message = context.messages[0].text
    conversation = message.partition("</conversation>")[0]
    return copied_notes(Context(messages=[UserMessage(conversation)]))


def test_what_a_model_copies_survives_ten_compactions():
    rows, report = measured(copied_notes)
    assert list(rows) == [1, 3, 10]
    for number, row in rows.items():
        assert row.planted == {"file": 2 * number, "decision": number, "open step": number}
        assert row.found == row.planted
        assert row.lost == ()
        assert row.summary_tokens > 0
    assert report.usage.input > 0


def test_a_model_that_ignores_the_earlier_summary_loses_all_but_the_files():
    rows, _ = measured(without_previous)
    assert rows[1].lost == ()
    for number in (3, 10):
        row = rows[number]
        assert row.found["file"] == 2 * number, "they are carried beside the notes"
        assert row.found["decision"] == row.found["open step"] == 1, "only those of the latest piece"
        assert {fact.kind for fact in row.lost} == {"decision", "open step"}
        assert len(row.lost) == 2 * (number - 1)


def test_a_model_that_says_it_in_other_words_has_kept_it():
    def rephrased(context):
        return copied_notes(context).replace("65536", "65,536").replace("blake2b", "BLAKE2b").upper()

    rows, _ = measured(
        lambda context: rephrased(context).replace("DECISION:", "Decision:").replace("OPEN:", "Open:")
    )
    assert rows[10].lost == ()


def test_a_model_that_says_nothing_keeps_nothing_but_files():
    rows, _ = measured(lambda context: "Work was done.", rounds=[2])
    assert rows[2].found == {"file": 4, "decision": 0, "open step": 0}


def test_no_fact_is_known_by_a_mark_of_another_piece():
    work = pieces()
    texts = ["\n".join([*map(str, (message.to_json() for message in piece.messages))]) for piece in work]
    for number, piece in enumerate(work):
        for fact in piece.facts:
            having = [place for place, text in enumerate(texts) if all(mark in text for mark in fact.marks)]
            assert having == [number], fact


@pytest.mark.parametrize("rounds", [[], [0], [11]])
def test_only_as_many_compactions_as_there_is_work(rounds):
    with pytest.raises(ValueError, match="from 1 to 10"):
        measured(copied_notes, rounds=rounds)


def test_a_model_without_a_summary_is_no_measure():
    with pytest.raises(SummaryFailed):
        measured(lambda context: {"content": "half", "stopReason": "length"})


def test_the_tool_prints_the_table():
    run = subprocess.run(
        [sys.executable, TOOL, "--rounds", "1"], capture_output=True, encoding="utf-8", check=True, timeout=50
    )
    assert run.stdout.splitlines()[2].startswith("| 1 | 2 of 2 | 1 of 1 | 1 of 1 | ")
    wrong = subprocess.run(
        [sys.executable, TOOL, "--rounds", "99"],
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=50,
    )
    assert (wrong.returncode, wrong.stderr) == (1, "drift: Give numbers of compactions from 1 to 10.\n")
