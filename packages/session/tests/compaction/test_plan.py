"""What is summed up and what is kept. `tests/interop/test_drawn_sessions.py` asks the reference the same."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cantle_agent.messages import AgentMessage, convert_to_llm
from cantle_ai.history import replayable
from cantle_ai.messages import ToolResultMessage
from cantle_session.compaction import CompactionSettings, NothingToCompact, Summary, plan_compaction, record
from cantle_session.compaction.cuts import possible_cuts
from cantle_session.errors import SessionError
from cantle_session.messages import BashExecutionMessage, CompactionSummaryMessage
from cantle_session.tokens import context_size, estimate_tokens, sent_messages
from packages.session.tests.compaction.talk import (
    add,
    calls,
    gives,
    said,
    says,
    session_of,
    standing,
    user,
    words,
)
from tests.support.samples import samples


def plan(session, keep=100, **fields):
    return plan_compaction(session, CompactionSettings(keep_recent_tokens=keep), **fields)


def kept(session, planned):
    """What the model sees beside the summary once the plan is carried out."""
    record(session, planned, Summary("S"))
    context = session.context().messages
    assert isinstance(context[0], CompactionSummaryMessage)
    return said(context[1:])


@pytest.mark.parity("compaction.cut-points")
def test_about_the_recent_tokens_stay_and_the_rest_is_summed_up():
    session = session_of([user("one"), says(words(90, "a")), user(words(40, "two")), says(words(60, "b"))])
    planned = plan(session)
    assert (said(planned.messages), said(planned.turn)) == (["one", "a"], [])
    assert (planned.tokens_before, planned.tokens_kept) == (191, 100)
    assert kept(session, planned) == ["two", "b"]


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [user("a")],
        [user("a"), says(words(50))],
        [user(words(500))],
        [says(words(500))],
        [calls("a"), gives("a", words(500))],
    ],
    ids=["nothing", "a word", "a short talk", "one long message", "one long answer", "one long result"],
)
@pytest.mark.fault("G09")
def test_g09_where_there_is_nothing_to_sum_up_compaction_is_refused(messages):
    with pytest.raises(NothingToCompact, match="nothing to compact"):
        plan(session_of(messages))


def test_right_after_a_compaction_there_is_nothing_to_compact():
    session = session_of([user("one"), says(words(90)), user("two"), says(words(100))])
    kept(session, plan(session))
    with pytest.raises(NothingToCompact):
        plan(session)


@pytest.mark.parity("compaction.cut-points")
def test_a_turn_that_is_too_long_is_cut_and_its_beginning_summed_up_apart():
    session = session_of([user("old"), says("done"), user("long"), calls("a"), gives("a", words(30))])
    add(session, calls("b"), gives("b", words(200)), says("end"))
    planned = plan(session, 150)
    assert (said(planned.messages), len(planned.turn)) == (["old", "done"], 5)
    assert kept(session, planned) == ["end"]


def test_the_rest_of_a_turn_that_was_cut_before_is_plain_history():
    session = session_of([user("long"), calls("a"), gives("a", words(200)), says("b"), says(words(90, "c"))])
    planned = plan(session)
    assert (said(planned.messages), len(planned.turn)) == ([], 3)
    assert kept(session, planned) == ["b", "c"]
    add(session, says(words(95, "d")), says(words(20, "e")))
    planned = plan(session)
    assert (said(planned.messages), said(planned.turn), planned.previous_summary) == (["b", "c"], [], "S")


def test_a_result_stays_with_its_call():
    session = session_of([user("q"), says("a"), user("go"), calls("x", "y"), gives("x", words(150))])
    add(session, gives("y", "small"))
    assert kept(session, plan(session)) == ["assistant", "toolResult", "small"]


def test_nothing_said_between_a_call_and_its_result_is_a_cut():
    messages: list[AgentMessage] = [
        user("q"),
        calls("x", "y"),
        gives("x", "1"),
        user("steer"),
        gives("y", "2"),
        says("end"),
    ]
    assert possible_cuts(messages) == [0, 1, 5]
    assert possible_cuts([CompactionSummaryMessage(summary="s"), gives("z", "orphan"), user("q")]) == [2]


@pytest.mark.parity("compaction.repeated")
def test_what_an_earlier_compaction_kept_is_summed_up_again_and_its_summary_carried_on():
    session = session_of([user("one"), says(words(90, "a")), user("two"), says(words(100, "b"))])
    assert kept(session, plan(session)) == ["b"]
    add(session, user("three"), says(words(120, "c")))
    planned = plan(session)
    assert planned.previous_summary == "S"
    assert said(planned.messages) == ["b"]
    assert said(planned.turn) == ["three"]
    assert kept(session, planned) == ["c"]


@pytest.mark.fault("G01")
def test_g01_what_is_on_other_branches_is_not_summed_up():
    session = session_of([user("one"), says("a")])
    fork = standing(session)
    add(session, user("other way"), says(words(500)))
    session.branch(fork)
    add(session, user("two"), says(words(150, "b")))
    planned = plan(session)
    assert (said(planned.messages), said(planned.turn)) == (["one", "a"], ["two"])


def test_what_edits_took_out_counts_for_nothing():
    session = session_of([user("one"), says("a")])
    gone, changed, *_ = add(session, user(words(500, "gone")), user(words(500, "long")), says(words(99, "b")))
    session.append_context_edit(gone)
    session.append_context_edit(changed, {"content": "short"})
    planned = plan(session)
    assert said(planned.messages) == ["one", "a"]
    assert kept(session, planned) == ["short", "b"]


def test_failed_answers_and_shell_records_that_are_excluded_are_not_summed_up():
    session = session_of([user("one"), says("half", stop="aborted")])
    add(session, BashExecutionMessage(command="secret", output="x", exclude_from_context=True))
    add(session, BashExecutionMessage(command="make", output="ok"), user("two"), says(words(100, "b")))
    planned = plan(session)
    assert [message.role for message in (*planned.messages, *planned.turn)] == [
        "user",
        "bashExecution",
        "user",
    ]


def test_the_files_that_were_read_and_changed_are_known():
    session = session_of(
        [user("one"), calls("a.py"), gives("a.py", "text"), calls("b.py"), gives("b.py", "t")]
    )
    add(session, calls("e", name="edit", path="a.py", edits=[]), gives("e", "ok", name="edit"))
    add(session, calls("w", name="write", path="new.py"), gives("w", "no", name="write", is_error=True))
    add(session, calls("gone.py"), gives("gone.py", "no such file", is_error=True))
    add(session, user("two"), says(words(100)))
    files = plan(session).files
    assert (files.read, files.changed) == (("b.py",), ("a.py",))


@pytest.mark.parity("compaction.files")
def test_files_are_carried_from_summary_to_summary():
    session = session_of([user("one"), calls("a.py"), gives("a.py", "text"), user("two"), says(words(100))])
    planned = plan(session)
    record(session, planned, Summary(f"S{planned.files.text()}", details=planned.files.to_json()))
    add(session, calls("e", name="edit", path="a.py"), gives("e", "ok"), calls("c.py"), gives("c.py", "t"))
    add(session, user("three"), says(words(100)))
    planned = plan(session)
    assert (planned.files.read, planned.files.changed) == (("c.py",), ("a.py",))
    assert planned.previous_summary == "S"


def test_the_details_of_a_hooks_summary_are_its_own():
    session = session_of([user("one"), says("a"), user("two"), says(words(100))])
    text = "mine\n\n<read-files>\nkept.py\n</read-files>"
    summary = Summary(text, details={"readFiles": ["x.py"], "modifiedFiles": []})
    assert record(session, plan(session), summary, from_hook=True).from_hook is True
    add(session, user("three"), says(words(100)))
    planned = plan(session)
    assert (planned.files.read, planned.previous_summary) == ((), text)


@pytest.mark.fault("G04")
def test_g04_a_result_that_fills_the_window_is_summed_up_with_its_turn():
    session = session_of([user("one"), says("a"), user("read it"), calls("big"), gives("big", words(900))])
    assert plan(session).tokens_kept > 900
    planned = plan(session, window=1000)
    assert planned.first_kept_entry_id is None
    assert (said(planned.messages), len(planned.turn)) == (["one", "a"], 3)
    assert kept(session, planned) == []
    assert session.path()[-1].to_json()["firstKeptEntryId"] == session.leaf_id


def test_a_message_that_fills_the_window_alone_is_summed_up_too():
    session = session_of([user(words(900, "all"))])
    planned = plan(session, window=1000)
    assert (said(planned.messages), planned.turn, planned.first_kept_entry_id) == (["all"], [], None)


def test_a_question_that_is_still_to_be_answered_stays_however_long_it_is():
    long = user(words(900, "all"))
    with pytest.raises(NothingToCompact):
        plan(session_of([long]), window=1000, question_stays=True)
    session = session_of([user("one"), says("a"), long])
    planned = plan(session, window=1000, question_stays=True)
    assert (said(planned.messages), planned.first_kept_entry_id) == (["one", "a"], session.leaf_id)
    # An older one, which was never answered, does not.
    session = session_of([long, user("short")])
    planned = plan(session, window=1000, question_stays=True)
    assert (said(planned.messages), planned.first_kept_entry_id) == (["all"], session.leaf_id)


def test_in_a_small_window_less_is_kept():
    session = session_of([user("one"), says(words(900, "a")), user("two"), says(words(900, "b"))])
    with pytest.raises(NothingToCompact):
        plan_compaction(session, CompactionSettings())
    planned = plan_compaction(session, CompactionSettings(), window=4096)
    assert (said(planned.messages), said(planned.turn)) == ([], ["one"])


def test_what_was_added_meanwhile_stays():
    session = session_of([user("one"), says("a"), user("two"), says(words(100, "b"))])
    planned = plan(session)
    add(session, user("typed meanwhile"))
    assert kept(session, planned)[-1] == "typed me"


def test_a_plan_for_another_branch_is_refused():
    session = session_of([user("one")])
    fork = standing(session)
    add(session, says("a"), user("two"), says(words(100)))
    planned = plan(session)
    session.branch(fork)
    before = len(session.entries())
    with pytest.raises(SessionError, match="another branch"):
        record(session, planned, Summary("S"))
    assert len(session.entries()) == before


# --- whatever is said


def turns():
    size = st.integers(0, 60)
    talk = st.builds(lambda n: [user(words(n, "u"))], size) | st.builds(lambda n: [says(words(n, "a"))], size)
    failed = st.builds(lambda n: [says(words(n, "f"), stop="error")], size)
    steered = st.booleans()
    batch = st.builds(_batch, st.lists(size, min_size=1, max_size=3), steered, st.booleans())
    return st.lists(talk | failed | batch, max_size=12).map(
        lambda parts: [message for part in parts for message in part]
    )


def _batch(sizes, steered, answered):
    ids = [f"c{index}" for index in range(len(sizes))]
    results = [gives(call_id, words(size, "r")) for call_id, size in zip(ids, sizes, strict=True)]
    return [calls(*ids), *results[: 1 if steered else 0], *([user("s")] if steered else []),
            *(results[1:] if steered else results if answered else [])]  # fmt: skip


@settings(max_examples=samples(2000, 150), deadline=None)
@given(turns(), turns(), st.integers(0, 200), st.sampled_from([None, 300, 1000, 100_000]))
def test_every_message_is_either_summed_up_or_kept_and_no_result_loses_its_call(first, then, keep, window):
    session = session_of(first)
    for more in (first[:0], then):
        add(session, *more)
        before = [place.message for place in sent_messages(session.projected())]
        history = before[1:] if before and isinstance(before[0], CompactionSummaryMessage) else before
        try:
            planned = plan(session, keep, window=window)
        except NothingToCompact:
            continue
        assert planned.tokens_before == context_size(session.projected()).tokens
        record(session, planned, Summary("S"))
        after = session.context().messages
        sent = [place.message for place in sent_messages(session.projected())][1:]
        assert [*planned.messages, *planned.turn, *sent] == history
        assert planned.messages or planned.turn
        assert planned.tokens_kept == sum(map(estimate_tokens, sent))
        assert not _orphans(convert_to_llm(after))


def _orphans(messages):
    """The results that a request would have to leave out though their calls did not fail."""
    failed = {call.id for message in messages if message.role == "assistant" and message.failed
              for call in message.tool_calls}  # fmt: skip
    included = {id(message) for message in replayable(messages)}
    return [message for message in messages if isinstance(message, ToolResultMessage)
            and id(message) not in included and message.tool_call_id not in failed]  # fmt: skip
