"""The roles that a coding agent adds."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cantle_agent.messages import convert_to_llm
from cantle_ai.codec import JsonObject
from cantle_ai.messages import UnknownMessage, encode_message
from cantle_session.messages import (
    BashExecutionMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    ExtensionMessage,
    agent_message_from_json,
)
from packages.session.tests.support import answer, user
from tests.support.samples import samples

BASH: JsonObject = {
    "role": "bashExecution",
    "command": "ls",
    "output": "a\nb\n",
    "exitCode": 0,
    "cancelled": False,
    "truncated": False,
    "timestamp": 5,
}
NOTE: JsonObject = {
    "role": "custom",
    "customType": "note",
    "content": "look",
    "display": True,
    "timestamp": 5,
}
BRANCH: JsonObject = {"role": "branchSummary", "summary": "tried A", "fromId": "0a0b0c0d", "timestamp": 5}
COMPACTION: JsonObject = {"role": "compactionSummary", "summary": "did B", "tokensBefore": 9, "timestamp": 5}


@pytest.mark.parity("sessions.coding-agent-roles")
@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (BASH, BashExecutionMessage),
        ({**BASH, "fullOutputPath": "/tmp/x", "excludeFromContext": True}, BashExecutionMessage),
        ({k: v for k, v in BASH.items() if k != "exitCode"}, BashExecutionMessage),
        (NOTE, ExtensionMessage),
        ({**NOTE, "content": [{"type": "text", "text": "look"}], "details": {"a": [1]}}, ExtensionMessage),
        (BRANCH, BranchSummaryMessage),
        ({**BRANCH, "fromId": None}, BranchSummaryMessage),
        (COMPACTION, CompactionSummaryMessage),
    ],
)
@pytest.mark.parametrize("extra", [{}, {"fromTheFuture": {"x": 1}}])
def test_a_message_comes_back_as_it_was(raw, kind, extra):
    message = agent_message_from_json({**raw, **extra})
    assert type(message) is kind
    assert message.to_json() == {**raw, **extra}
    assert message == agent_message_from_json({**raw, **extra})


@pytest.mark.parametrize(
    "raw",
    [
        {"role": "system", "content": "prompt", "sections": {"a": None}, "timestamp": 1},
        {"role": "bashExecution", "command": 5, "timestamp": 1},
        {"role": "custom", "customType": "x", "content": None, "timestamp": 1},
        {"role": "compactionSummary", "summary": ["x"]},
        {"role": "branchSummary", "summary": "x", "fromId": 5},
        {"role": ["user"]},
        {},
    ],
)
def test_what_does_not_fit_is_kept_and_never_sent(raw):
    message = agent_message_from_json(raw)
    assert isinstance(message, UnknownMessage)
    assert message.to_json() == raw
    assert convert_to_llm([message]) == []


@given(
    st.dictionaries(
        st.sampled_from([*BASH, *NOTE, *BRANCH, *COMPACTION]),
        st.sampled_from(
            [*BASH.values(), "custom", "branchSummary", "compactionSummary", None, [], {}, 1e300]
        ),
    )
)
@settings(max_examples=samples(2000, 300))
def test_no_message_is_too_odd_to_be_read_and_written(raw):
    message = agent_message_from_json(raw)
    again = agent_message_from_json(message.to_json())
    assert again == message
    convert_to_llm([message])


def test_a_shell_record_is_told_to_the_model_as_something_the_user_did():
    raw = {**BASH, "command": "make", "output": "boom\n", "exitCode": 2}
    (shown,) = convert_to_llm([agent_message_from_json(raw)])
    assert shown.role == "user"
    assert shown.timestamp == 5
    assert "make" in shown.content
    assert "boom" in shown.content
    assert "exit status was 2" in shown.content


@pytest.mark.parametrize(
    ("fields", "part"),
    [
        ({"output": ""}, "printed nothing"),
        ({"cancelled": True, "exitCode": None}, "stopped it"),
        ({"truncated": True, "fullOutputPath": "/tmp/all"}, "/tmp/all"),
        ({"truncated": True}, "is cut"),
    ],
)
def test_a_shell_record_says_what_is_special_about_it(fields, part):
    (shown,) = convert_to_llm([agent_message_from_json({**BASH, **fields})])
    assert part in shown.content


def test_a_successful_command_is_not_said_to_have_a_status():
    (shown,) = convert_to_llm([agent_message_from_json(BASH)])
    assert "status" not in shown.content


@pytest.mark.parity("sessions.excluded-shell-record")
def test_a_shell_record_that_is_excluded_stays_out():
    assert convert_to_llm([agent_message_from_json({**BASH, "excludeFromContext": True})]) == []


def test_a_note_is_sent_as_it_is_and_its_details_are_not():
    raw: JsonObject = {**NOTE, "content": [{"type": "text", "text": "look"}], "details": "secret"}
    (shown,) = convert_to_llm([agent_message_from_json(raw)])
    assert shown.text == "look"
    assert b"secret" not in encode_message(shown)


def test_a_summary_names_which_of_the_two_it_is():
    branch, compaction = convert_to_llm(
        [agent_message_from_json(BRANCH), agent_message_from_json(COMPACTION)]
    )
    assert "tried A" in branch.content
    assert "another way" in branch.content
    assert "did B" in compaction.content
    assert "earlier part" in compaction.content


@pytest.mark.parametrize("raw", [BASH, NOTE, BRANCH, COMPACTION])
def test_a_model_is_shown_the_same_object_each_time_so_that_it_is_encoded_once(raw):
    message = agent_message_from_json(raw)
    assert convert_to_llm([message])[0] is convert_to_llm([message])[0]


@pytest.mark.parametrize("raw", [user("hi"), answer("yo")])
def test_the_roles_of_a_model_are_read_as_ever(raw):
    assert agent_message_from_json(raw).to_json() == raw
