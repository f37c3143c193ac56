"""What becomes of each entry."""

from cantle_ai.messages import UnknownMessage
from cantle_session.fates import fates
from cantle_session.messages import BashExecutionMessage
from cantle_session.tokens import context_size
from packages.session.tests.compaction.talk import add, calls, gives, says, session_of, standing, user, words


def told(session):
    return [(fate.fate, fate.tokens) for fate in fates(session)]


def test_each_entry_has_its_fate_and_its_tokens():
    session = session_of([])
    session.append_model_change("p", "m")
    add(session, user(words(10)))
    old = session.append_compaction("older", None, 10).id
    add(session, says(words(20)))
    kept, gone, changed = add(session, user(words(30)), says(words(40)), user(words(50)))
    session.append_compaction("newer", kept, 10)
    session.append_context_edit(gone)
    session.append_context_edit(changed, {"content": words(5)})
    shell = BashExecutionMessage(command="x" * 40, output="y" * 40, exclude_from_context=True)
    add(session, shell, UnknownMessage({"role": "system", "content": "prompt"}), says("half", stop="error"))
    session.append_custom_message("note", words(6))
    session.append_custom("memory", {"a": 1})
    session.append_label(old, "mark")
    listed = told(session)
    assert [fate for fate, _ in listed] == [
        "not sent",  # model change
        "summed up",
        "summed up",  # the older compaction
        "summed up",
        "sent",
        "edited out",
        "replaced",
        "sent",  # the newer compaction
        "not sent",
        "not sent",
        "excluded",
        "not sent",  # a recorded system message
        "not sent",  # a failed answer
        "sent",
        "not sent",
        "not sent",
    ]
    tokens = [tokens for _, tokens in listed]
    assert (tokens[1], tokens[3], tokens[4], tokens[5], tokens[6]) == (10, 20, 30, 40, 5)
    assert tokens[2] > 1
    assert tokens[10] > 20
    assert tokens[0] == tokens[8] == tokens[11] == tokens[12] == tokens[14] == tokens[15] == 0
    sent = sum(count for fate, count in listed if fate in ("sent", "replaced"))
    assert sent == context_size(session.projected()).tokens


def test_results_that_no_call_asked_for_are_not_sent():
    session = session_of([user("q"), gives("orphan", "text"), calls("a"), gives("a", "text")])
    assert [fate for fate, _ in told(session)] == ["sent", "not sent", "sent", "sent"]


def test_only_the_path_counts():
    session = session_of([user("one")])
    fork = standing(session)
    add(session, says("other"))
    session.branch(fork)
    add(session, says("this"))
    assert [fate.entry.id for fate in fates(session)] == [entry.id for entry in session.path()]
    session.reset_leaf()
    assert list(fates(session)) == []


def test_behind_a_compaction_a_failed_answer_was_not_summed_up_and_an_edit_still_counts():
    session = session_of([user("one"), says("half", stop="aborted")])
    gone, changed, _ = add(session, user(words(9, "gone")), user(words(9)), says("end"))
    session.append_context_edit(gone)
    session.append_context_edit(changed, {"content": words(3)})
    session.append_compaction("S", None, 5)
    assert told(session)[:5] == [
        ("summed up", 1),
        ("not sent", 0),
        ("edited out", 9),
        ("summed up", 3),
        ("summed up", 1),
    ]
