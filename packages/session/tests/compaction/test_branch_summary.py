"""What a branch that is left leaves behind."""

import pytest

from cantle_ai.abort import AbortController, AbortError
from cantle_ai.testing import ScriptedModel
from cantle_session.branch_summary import plan_branch_summary, record_branch_summary, summarize_branch
from cantle_session.compaction import Summary, SummaryFailed
from cantle_session.compaction.transcript import MOST_OF_A_RESULT
from cantle_session.messages import BranchSummaryMessage
from packages.session.tests.compaction.talk import add, calls, gives, said, says, session_of, user, words


def forked():
    """A session that has two branches and stands on the first; the entries of both by what they say."""
    session = session_of([])
    a, b = add(session, user("a"), says("b"))
    left = add(session, user("c"), says("d"))
    session.branch(b)
    other = add(session, user("e"), says("f"))
    session.branch(left[-1])
    return session, {"a": a, "b": b, "c": left[0], "d": left[1], "e": other[0], "f": other[1]}


@pytest.mark.parity("sessions.branch-summary-placement")
def test_it_covers_the_way_from_the_common_ancestor_to_the_old_leaf():
    session, ids = forked()
    plan = plan_branch_summary(session, ids["f"])
    assert (plan.from_id, plan.target_id, plan.common_ancestor_id) == (ids["d"], ids["f"], ids["b"])
    assert said(plan.messages) == ["c", "d"]
    assert [entry.id for entry in plan.entries] == [ids["c"], ids["d"]]
    assert session.leaf_id == ids["d"], "a plan moves nothing"


@pytest.mark.fault("F12")
def test_f12_it_is_attached_where_the_new_branch_begins_and_names_the_leaf_that_was_left():
    session, ids = forked()
    plan = plan_branch_summary(session, ids["f"])
    session.branch(ids["f"])
    entry = record_branch_summary(session, plan, Summary("NOTES", details={"x": 1}), from_hook=True)
    assert (entry.parent_id, entry.from_id, entry.from_hook) == (ids["f"], ids["d"], True)
    context = session.context().messages
    assert said(context[:4]) == ["a", "b", "e", "f"]
    assert isinstance(context[4], BranchSummaryMessage)
    assert "NOTES" in context[4].text


def test_back_on_the_same_line_it_covers_what_came_after():
    session, ids = forked()
    assert said(plan_branch_summary(session, ids["a"]).messages) == ["b", "c", "d"]
    assert said(plan_branch_summary(session, None).messages) == ["a", "b", "c", "d"]
    assert plan_branch_summary(session, ids["d"]).messages == []
    session.reset_leaf()
    empty = plan_branch_summary(session, ids["d"])
    assert (empty.from_id, empty.messages, empty.entries) == (None, [], [])
    with pytest.raises(KeyError):
        plan_branch_summary(session, "deadbeef")


def test_forward_on_the_same_line_nothing_is_left():
    session, ids = forked()
    session.branch(ids["b"])
    assert plan_branch_summary(session, ids["d"]).messages == []


@pytest.mark.parity("sessions.branch-summary-budget")
def test_within_a_budget_the_newest_come_first():
    session = session_of([user("root")])
    root = session.leaf_id
    add(session, *(user(words(100, f"{number}.")) for number in range(10)))
    plan = plan_branch_summary(session, root, 350)
    assert said(plan.messages) == ["7.", "8.", "9."]
    assert plan.left_out == 7
    assert said(plan_branch_summary(session, root, 1).messages) == ["9."], "one at least"
    assert plan_branch_summary(session, root).left_out == 0


def test_the_budget_counts_what_is_shown_of_long_results():
    session = session_of([user("root")])
    root = session.leaf_id
    add(session, user("q"), calls("a"), gives("a", "x" * 100 * MOST_OF_A_RESULT))
    assert plan_branch_summary(session, root, MOST_OF_A_RESULT).left_out == 0


def test_a_compaction_on_the_branch_stands_for_what_it_summed_up():
    session = session_of([user("root")])
    root = session.leaf_id
    add(session, user("old"), says("old too"))
    (kept,) = add(session, user("kept"))
    session.append_compaction("COMPACTED", kept, 5)
    add(session, says("after"))
    plan = plan_branch_summary(session, root)
    assert [message.role for message in plan.messages] == ["compactionSummary", "user", "assistant"]


def test_a_compaction_before_the_fork_is_not_part_of_the_branch():
    session = session_of([user("old")])
    (kept,) = add(session, user("kept"))
    session.append_compaction("COMPACTED", kept, 5)
    (fork,) = add(session, says("fork"))
    add(session, user("left"))
    assert said(plan_branch_summary(session, fork).messages) == ["left"]


def test_edits_and_failed_answers_count_as_for_a_model():
    session = session_of([user("root")])
    root = session.leaf_id
    gone, *_ = add(session, user("gone"), says("half", stop="aborted"), user("kept"))
    session.append_context_edit(gone)
    assert said(plan_branch_summary(session, root).messages) == ["kept"]


async def test_the_request_has_the_headings_but_no_critical_context_and_files_are_carried():
    session = session_of([user("root")])
    root = session.leaf_id
    add(session, user("try it"), calls("a.py"), gives("a.py", "text"))
    session.append_branch_summary(None, "inner", details={"readFiles": [], "modifiedFiles": ["b.py"]})
    session.append_branch_summary(
        None, "hook", details={"readFiles": ["c"], "modifiedFiles": []}, from_hook=True
    )
    plan = plan_branch_summary(session, root)
    scripted = ScriptedModel(["NOTES"])
    summary = await summarize_branch(plan, scripted.stream, scripted.model, instructions="mind the gap")
    text = scripted.requests[0].messages[0].text
    assert "[User]: try it" in text
    assert "## Next Steps" in text
    assert "Critical Context" not in text
    assert text.endswith("\nmind the gap")
    assert summary.details == {"readFiles": ["a.py"], "modifiedFiles": ["b.py"]}
    assert summary.text.startswith("NOTES\n\n<read-files>\na.py\n")
    assert summary.usage is not None
    assert summary.usage.input > 0


async def test_instructions_may_replace_the_usual_ones():
    session, ids = forked()
    scripted = ScriptedModel(["NOTES"])
    await summarize_branch(
        plan_branch_summary(session, ids["f"]),
        scripted.stream,
        scripted.model,
        instructions="Say it in one line.",
        replace_instructions=True,
    )
    text = scripted.requests[0].messages[0].text
    assert text == "<conversation>\n[User]: c\n\n[Assistant]: d\n</conversation>\n\nSay it in one line."


async def test_failures_abort_and_nothing_to_sum_up():
    session, ids = forked()
    plan = plan_branch_summary(session, ids["f"])
    scripted = ScriptedModel([{"content": "half", "stopReason": "length"}])
    with pytest.raises(SummaryFailed):
        await summarize_branch(plan, scripted.stream, scripted.model)
    controller = AbortController()
    controller.abort()
    with pytest.raises(AbortError):
        await summarize_branch(plan, scripted.stream, scripted.model, signal=controller.signal)
    with pytest.raises(ValueError, match="no messages"):
        await summarize_branch(plan_branch_summary(session, ids["d"]), scripted.stream, scripted.model)
