"""Which messages of a history a request carries."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cantle_ai.content import AssistantContent, TextContent, ToolCall
from cantle_ai.history import INTERRUPTED, replayable
from cantle_ai.messages import AssistantMessage, ToolResultMessage, UserMessage, encode_message
from tests.support.samples import samples


def user(text="u"):
    return UserMessage(text, timestamp=1)


def answer(*calls, stop="stop"):
    content: list[AssistantContent] = [TextContent("t"), *[ToolCall(call, f"tool_{call}") for call in calls]]
    return AssistantMessage(content, "a", "p", "m", stop_reason=stop, timestamp=2)


def result(call, text="r"):
    return ToolResultMessage(call, f"tool_{call}", [TextContent(text)], timestamp=3)


def test_a_consistent_history_passes_unchanged():
    messages = [user(), answer("a", "b"), result("b"), result("a"), user(), answer()]
    sent = list(replayable(messages))
    assert len(sent) == len(messages)
    assert all(one is other for one, other in zip(sent, messages, strict=True))


@pytest.mark.fault("C05")
def test_c05_failed_and_aborted_answers_are_left_out_with_their_results():
    for stop in ("error", "aborted", "pending"):
        messages = [user("1"), answer("a", stop=stop), result("a"), user("2")]
        assert list(replayable(messages)) == [messages[0], messages[3]]


@pytest.mark.fault("C07")
def test_c07_a_call_without_a_result_gets_one():
    messages = [user(), answer("a", "b"), result("b"), user("go on")]
    sent = list(replayable(messages))
    assert sent[:3] == messages[:3]
    made = sent[3]
    assert isinstance(made, ToolResultMessage)
    assert (made.tool_call_id, made.tool_name, made.text, made.is_error) == ("a", "tool_a", INTERRUPTED, True)
    assert sent[4:] == messages[3:]


def test_a_call_at_the_end_of_the_history_gets_one_too():
    assert [m.role for m in replayable([user(), answer("a")])] == ["user", "assistant", "toolResult"]


def test_results_that_nobody_asked_for_are_dropped():
    messages = [result("x"), user(), answer("a"), result("a"), result("a"), result("y"), answer()]
    assert list(replayable(messages)) == [messages[1], messages[2], messages[3], messages[6]]


@pytest.mark.fault("E04")
def test_e04_what_was_said_between_call_and_result_comes_after_the_result():
    messages = [user("1"), answer("a"), user("meanwhile"), result("a"), answer()]
    sent = list(replayable(messages))
    assert sent == [messages[0], messages[1], messages[3], messages[2], messages[4]]


MESSAGES = st.one_of(
    st.just("u"),
    st.tuples(st.just("r"), st.sampled_from("abc")),
    st.tuples(
        st.just("a"),
        st.lists(st.sampled_from("abc"), unique=True, max_size=3),
        st.sampled_from(["stop", "toolUse", "length", "error", "aborted"]),
    ),
)


@settings(max_examples=samples(5000, 200), deadline=None)
@given(st.lists(MESSAGES, max_size=12))
def test_every_call_is_followed_by_exactly_its_results(plan):
    made = {"u": lambda *_: user(), "r": result, "a": lambda calls, stop: answer(*calls, stop=stop)}
    messages = [made[step[0]](*step[1:]) for step in plan]
    before = [encode_message(message) for message in messages]
    open_calls: set[str] = set()
    for message in replayable(messages):
        if isinstance(message, ToolResultMessage):
            assert message.tool_call_id in open_calls
            open_calls.remove(message.tool_call_id)
            continue
        assert not open_calls
        if isinstance(message, AssistantMessage):
            assert message.stop_reason not in ("error", "aborted")
            open_calls = {call.id for call in message.tool_calls}
    assert not open_calls
    for message in messages:
        message.wire.clear()
    assert [encode_message(message) for message in messages] == before
