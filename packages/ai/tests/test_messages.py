"""Messages keep what they are given, are encoded once, and do not change."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cantle_ai.codec import Json, JsonObject, decode_object, encode_json
from cantle_ai.content import TextContent, ToolCall, UnknownContent, UserContent
from cantle_ai.errors import ErrorDetails, ProviderError
from cantle_ai.messages import (
    AssistantMessage,
    EncodableMessage,
    StopReason,
    ToolResultMessage,
    UnknownMessage,
    UserMessage,
    encode_message,
    message_from_json,
    replace,
)
from cantle_ai.usage import Usage
from packages.ai.tests.json_values import normal, objects, values
from tests.support.samples import samples

MANY = settings(max_examples=samples(2000, 60), deadline=None)

ZERO: JsonObject = {
    "input": 0,
    "output": 0,
    "cacheRead": 0,
    "cacheWrite": 0,
    "totalTokens": 0,
    "cost": {"input": 0.0, "output": 0.0, "cacheRead": 0.0, "cacheWrite": 0.0, "total": 0.0},
}

MESSAGES: list[tuple[JsonObject, type]] = [
    ({"role": "user", "content": "hello", "timestamp": 1}, UserMessage),
    (
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "later"}], "timestamp": 1},
        UserMessage,
    ),
    (
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "a"},
                {"type": "toolCall", "id": "1", "name": "n", "arguments": {}},
            ],
            "api": "openai-completions",
            "provider": "openai",
            "model": "m",
            "usage": ZERO,
            "stopReason": "toolUse",
            "timestamp": 2,
            "errorMessage": "e",
            "responseId": "r",
            "responseModel": "m2",
            "rawStopReason": "tool_calls",
            "durationMs": 5,
            "thinkingLevel": "high",
            "deferred": {"id": "d"},
        },
        AssistantMessage,
    ),
    (
        {
            "role": "toolResult",
            "toolCallId": "1",
            "toolName": "read",
            "content": [{"type": "image", "data": "AA==", "mimeType": "image/png"}],
            "details": {"n": [1]},
            "usage": ZERO,
            "isError": True,
            "durationMs": 7,
            "timestamp": 3,
        },
        ToolResultMessage,
    ),
]


@pytest.mark.parity("messages.roles")
@pytest.mark.parametrize(("raw", "kind"), MESSAGES)
def test_each_role_comes_back_as_it_was(raw: JsonObject, kind: type) -> None:
    message = message_from_json(raw)
    assert type(message) is kind
    assert encode_message(message) == encode_json(raw)


@MANY
@given(st.sampled_from([raw for raw, _ in MESSAGES]), objects)
def test_unknown_fields_survive(raw: JsonObject, more: JsonObject) -> None:
    changed = {**more, **raw}
    assert normal(message_from_json(changed).to_json()) == normal(changed)


@MANY
@given(st.sampled_from([raw for raw, _ in MESSAGES]), st.data(), values)
def test_an_odd_value_anywhere_costs_neither_the_message_nor_the_value(
    raw: JsonObject, data: st.DataObject, odd: Json
) -> None:
    key = data.draw(st.sampled_from(sorted(raw)))
    changed: JsonObject = {**raw, key: odd}
    written = decode_object(encode_message(message_from_json(changed)))
    expected = normal(changed)
    assert isinstance(expected, dict)
    if key == "content" and isinstance(odd, str) and raw["role"] != "user":
        expected["content"] = [{"type": "text", "text": normal(odd)}]
    if key == "content" and odd is None:
        expected["content"] = []
    if key == "usage" and isinstance(odd, dict):
        expected["usage"] = written["usage"]
    if key == "timestamp" and isinstance(odd, float):
        expected["timestamp"] = written["timestamp"]
    if key == "details" and odd is None:
        del expected["details"]
    assert written == expected


@pytest.mark.parametrize("timestamp", [0, -1, 10**18, 2**53 + 1, 2**70])
@pytest.mark.parametrize("raw", [raw for raw, _ in MESSAGES], ids=lambda raw: raw["role"])
def test_whole_numbers_of_any_size_are_times(raw: JsonObject, timestamp: int) -> None:
    changed: JsonObject = {**raw, "timestamp": timestamp}
    assert encode_message(message_from_json(changed)) == encode_json(changed)


@MANY
@given(objects)
def test_any_object_at_all_is_a_message(raw: JsonObject) -> None:
    message = message_from_json(raw)
    assert type(message) is UnknownMessage
    assert normal(message.to_json()) == normal(raw)
    assert isinstance(message.timestamp, int)


@pytest.mark.parametrize(
    "raw",
    [
        {"role": "system", "content": "x"},
        {"role": "bashExecution", "command": "ls"},
        {"role": []},
        {"role": "user", "content": 5},
        {"role": "assistant", "content": [], "model": 5},
        {"role": "toolResult", "toolCallId": 1, "toolName": "x", "content": []},
    ],
)
def test_other_roles_and_shapes_are_kept_and_are_not_for_a_model(raw: JsonObject) -> None:
    message = message_from_json(raw)
    assert isinstance(message, UnknownMessage)
    assert encode_message(message) == encode_json(raw)


@pytest.mark.parametrize("stop", ["refusal", None, [], 5])
def test_an_unknown_stop_reason_does_not_cost_the_answer(stop: Json) -> None:
    message = message_from_json({**MESSAGES[2][0], "stopReason": stop})
    assert isinstance(message, AssistantMessage)
    assert message.stop_reason == "stop" and [call.id for call in message.tool_calls] == ["1"]
    assert message.to_json()["stopReason"] == stop


def test_a05_null_content_is_no_content() -> None:
    for raw, _ in MESSAGES[1:]:
        message = message_from_json({**raw, "content": None})
        assert not isinstance(message, UnknownMessage) and list(message.content) == []


def test_older_shapes_are_read() -> None:
    """Content as one string, missing usage, no timestamp."""
    answer = message_from_json({"role": "assistant", "content": "hi"})
    result = message_from_json({"role": "toolResult", "toolCallId": "1", "toolName": "x", "content": "out"})
    assert isinstance(answer, AssistantMessage) and answer.text == "hi" and answer.usage == Usage()
    assert isinstance(result, ToolResultMessage) and result.text == "out" and not result.is_error


def test_text_is_that_of_the_text_blocks() -> None:
    blocks: list[UserContent] = [TextContent("a"), UnknownContent({"type": "x"}), TextContent("b")]
    assert UserMessage(blocks).text == "a\nb"
    assert UserMessage("c").text == "c"
    assert ToolResultMessage("1", "t", blocks).text == "a\nb"
    assert AssistantMessage([TextContent("a"), ToolCall("1", "t"), TextContent("b")], "", "", "").text == "ab"


@pytest.mark.parametrize("stop", ["stop", "length", "toolUse", "deferred", "pending", "error", "aborted"])
def test_an_answer_that_failed_or_was_given_up_is_none(stop: StopReason) -> None:
    assert AssistantMessage([], "", "", "", stop_reason=stop).failed == (stop in ("error", "aborted"))


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (
            {"status": 429, "code": "rate_limit", "retryAfterMs": 1500, "kind": "http"},
            ErrorDetails(status=429, code="rate_limit", retry_after_ms=1500, kind="http"),
        ),
        ({"retryAfterMs": 12.7, "more": 1}, ErrorDetails(retry_after_ms=12)),
        ({}, ErrorDetails()),
        ({"status": True, "code": 5, "retryAfterMs": "1", "kind": []}, ErrorDetails()),
        ({"status": "503", "retryAfterMs": float("inf")}, ErrorDetails()),
        ({"status": None, "code": None, "retryAfterMs": None, "kind": None}, ErrorDetails()),
        (None, None),
        ("x", None),
        ([1], None),
    ],
)
def test_the_facts_of_a_failure_are_read_as_far_as_they_make_sense(
    raw: Json, expected: ErrorDetails | None
) -> None:
    message = AssistantMessage([], "", "", "", stop_reason="error", extra={"errorDetails": raw})
    assert message.error_details == expected


def test_an_answer_without_facts_has_none() -> None:
    assert AssistantMessage([], "", "", "", stop_reason="error").error_details is None
    assert AssistantMessage([], "", "", "", extra={"x": 1}).error_details is None


def test_what_a_provider_error_says_comes_back() -> None:
    error = ProviderError("busy", status=503, code="x", retry_after=1.5, kind="http")
    details = ErrorDetails.from_json(error.details())
    assert details == ErrorDetails(status=503, code="x", retry_after_ms=1500, kind="http")


class Counted:
    """A message that counts how often its JSON is made."""

    role = "counted"

    def __init__(self) -> None:
        self.wire: dict[object, bytes] = {}
        self.made = 0

    def to_json(self) -> JsonObject:
        self.made += 1
        return {"role": self.role}


def test_a_message_is_encoded_once() -> None:
    message = Counted()
    encodable: EncodableMessage = message
    first = encode_message(encodable)
    assert encode_message(encodable) is first
    assert message.made == 1


def test_a_copy_is_encoded_anew() -> None:
    message = UserMessage("a", 1)
    assert encode_message(message) == b'{"role":"user","content":"a","timestamp":1}'
    copy = replace(message, content="b")
    assert encode_message(copy) == b'{"role":"user","content":"b","timestamp":1}'
    assert encode_message(message) == b'{"role":"user","content":"a","timestamp":1}'


def test_a_growing_message_is_not_remembered_half() -> None:
    text = TextContent("a")
    message = AssistantMessage([text], "api", "p", "m", stop_reason="pending")
    assert b'"a"' in encode_message(message)
    text.append("b")
    assert b'"ab"' in encode_message(message)
    message.stop_reason = "stop"
    assert encode_message(message) is encode_message(message)


@pytest.mark.parametrize("message", [UserMessage("a"), ToolResultMessage("1", "t", ()), UnknownMessage({})])
def test_what_people_and_tools_said_does_not_change(message: EncodableMessage) -> None:
    for name in ("content", "timestamp", "raw", "extra"):
        if hasattr(message, name):
            with pytest.raises(AttributeError):
                setattr(message, name, None)


def test_messages_are_equal_when_their_json_is() -> None:
    one, other = UserMessage("a", 1), UserMessage("a", 1)
    encode_message(one)
    assert one == other and one != UserMessage("b", 1) and one != "a"
    assert UserMessage("a", 1) != UnknownMessage(UserMessage("a", 1).to_json())


def test_details_without_json_are_a_type_error() -> None:
    message = ToolResultMessage("1", "t", (), details=object())  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        encode_message(message)


def test_a_message_is_shown_without_its_encoded_form() -> None:
    message = UserMessage("hi", timestamp=1)
    encode_message(message)
    assert repr(message) == "UserMessage(content='hi', timestamp=1)"


def test_every_message_has_its_text() -> None:
    blocks: Json = [{"type": "text", "text": "a"}, {"type": "other"}, {"type": "text", "text": "b"}]
    assert UnknownMessage({"role": "note", "content": blocks}).text == "a\nb"
    assert UnknownMessage({"role": "note", "content": "plain"}).text == "plain"
    assert UnknownMessage({"role": "note"}).text == ""
