"""How large messages and contexts are taken to be. The figures of plain messages are the reference's."""

import pytest

from cantle_ai.content import ImageContent, TextContent, ThinkingContent, ToolCall, UnknownContent
from cantle_ai.messages import AssistantMessage, ToolResultMessage, UnknownMessage, UserMessage
from cantle_ai.usage import Usage
from cantle_session.messages import BashExecutionMessage, CompactionSummaryMessage, ExtensionMessage
from cantle_session.tokens import ContextSize, context_size, estimate_tokens, sent_messages, usage_tokens
from packages.session.tests.compaction.talk import add, calls, gives, says, session_of, user, words

IMAGE = ImageContent("A" * 9999, "image/png")


def assistant(*blocks):
    return AssistantMessage(list(blocks), "a", "p", "m")


@pytest.mark.parametrize(
    ("message", "tokens"),
    [
        (UserMessage(""), 0),
        (UserMessage("a"), 1),
        (UserMessage("abcd"), 1),
        (UserMessage("abcde"), 2),
        (UserMessage([TextContent("abcde"), TextContent("abcde")]), 3),
        (UserMessage([IMAGE]), 1200),
        (UserMessage([IMAGE, IMAGE, TextContent("abcd")]), 2401),
        (UserMessage([UnknownContent({"type": "new"})]), 0),
        (assistant(TextContent("abcdefgh")), 2),
        (assistant(ThinkingContent("abcdefgh", signature="x" * 4000)), 2),
        (assistant(ToolCall("idididid", "read", {"path": "abc"})), 5),
        (assistant(ToolCall("id", "read", invalid_arguments="x" * 32)), 10),
        (ToolResultMessage("x", "read", [TextContent("abcdefgh")]), 2),
        (ToolResultMessage("x", "read", [IMAGE]), 1200),
        (UnknownMessage({"role": "system", "content": "abcdefgh"}), 0),
        (BashExecutionMessage(command="a", output="x" * 999, exclude_from_context=True), 0),
        (ExtensionMessage(custom_type="x", content="abcdefgh"), 2),
    ],
)
@pytest.mark.parity("compaction.estimates")
def test_a_token_is_four_characters_and_an_image_1200(message, tokens):
    assert estimate_tokens(message) == tokens


def test_scripts_whose_letters_take_more_bytes_count_for_more():
    assert estimate_tokens(UserMessage("漢" * 8)) == 6
    assert estimate_tokens(UserMessage("ж" * 8)) == 4
    assert estimate_tokens(UserMessage("\ud800")) == 1


def test_what_is_sent_of_a_summary_or_a_shell_record_counts_with_the_words_around_it():
    for message in (CompactionSummaryMessage(summary="s"), BashExecutionMessage(command="c", output="o")):
        shown = message.to_llm()
        assert shown is not None
        assert estimate_tokens(message) == estimate_tokens(shown) > 5


def test_the_size_after_an_answer_is_what_its_usage_adds_up_to():
    assert usage_tokens(Usage(input=1, output=2, cache_read=4, cache_write=8)) == 15
    assert usage_tokens(Usage(input=1, output=2, cache_read=4, cache_write=8, total_tokens=100)) == 100


def size_of(session) -> ContextSize:
    return context_size(session.projected())


def test_a_report_counts_for_all_up_to_it_and_what_follows_is_estimated():
    session = session_of([user(words(10))])
    _, answer, _ = add(session, says("early", tokens=50), says("yes", tokens=500), user(words(10)))
    assert size_of(session) == ContextSize(510, 500, 10, answer)


@pytest.mark.fault("G06")
def test_g06_without_any_report_all_is_estimated():
    session = session_of([user(words(10)), says(words(20)), user(words(30))])
    assert size_of(session) == ContextSize(60, 0, 60)
    assert context_size(session.projected(), prompt_tokens=1000) == ContextSize(1060, 0, 1060)
    assert context_size([]) == ContextSize(0)


@pytest.mark.fault("G06")
def test_g06_an_answer_without_figures_does_not_hide_the_report_before_it():
    session = session_of([user("q"), says("first", tokens=500), user(words(10)), says(words(20))])
    assert size_of(session).tokens == 530


@pytest.mark.parametrize("stop", ["error", "aborted"])
def test_a_failed_answer_reports_nothing_and_takes_nothing(stop):
    session = session_of([user("q"), says("yes", tokens=500), user(words(10))])
    add(session, says(words(50), tokens=900, stop=stop))
    assert size_of(session).tokens == 510


def test_the_results_of_a_failed_answers_calls_take_nothing():
    session = session_of([user(words(10))])
    failed = calls("a")
    failed.stop_reason = "error"
    add(session, failed, gives("a", words(1000)))
    assert size_of(session).tokens == 10
    assert [place.message.role for place in sent_messages(session.projected())] == ["user"]


def test_a_report_from_before_a_compaction_is_stale_though_its_answer_was_kept():
    session = session_of([user(words(100))])
    kept, _ = add(session, user(words(10)), says(words(20), tokens=500))
    session.append_compaction("", kept, 500)
    summary = estimate_tokens(CompactionSummaryMessage(summary=""))
    assert size_of(session) == ContextSize(30 + summary, 0, 30 + summary)
    (answer,) = add(session, says("new", tokens=77))
    assert size_of(session) == ContextSize(77, 77, 0, answer)


def test_an_edit_makes_reports_stale_that_were_about_what_it_changed():
    session = session_of([])
    first, answer, _ = add(session, user(words(10)), says("yes", tokens=500), user(words(20)))
    session.append_context_edit(first)
    assert size_of(session) == ContextSize(21, 0, 21)
    session.branch(answer)
    assert size_of(session).reported == 500


def test_an_edit_of_what_came_after_a_report_leaves_it_true():
    session = session_of([])
    _, answer, later = add(session, user("q"), says("yes", tokens=500), user(words(20)))
    session.append_context_edit(later, {"content": words(5)})
    assert size_of(session) == ContextSize(505, 500, 5, answer)
    session.append_context_edit(later)
    assert size_of(session) == ContextSize(500, 500, 0, answer)


def test_a_report_from_after_an_edit_is_fresh():
    session = session_of([])
    first, *_ = add(session, user(words(10)), says("yes", tokens=500))
    session.append_context_edit(first)
    (answer,) = add(session, says("again", tokens=300))
    assert size_of(session) == ContextSize(300, 300, 0, answer)
    session.append_context_edit(answer, {"content": words(9)})
    assert size_of(session).reported == 0
