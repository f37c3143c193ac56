"""What a small model is told: its tools in the system message, and a conversation of two."""

import json

import pytest

from cantle_ai.apis.llama_cpp_messages import chat_messages
from cantle_ai.codec import JsonObject
from cantle_ai.content import ImageContent, TextContent, ThinkingContent, ToolCall
from cantle_ai.context import Context, ToolDefinition
from cantle_ai.messages import AssistantMessage, Message, ToolResultMessage, UserMessage

READ = ToolDefinition(
    "read",
    "Read a file.  It may be\nlong. More about it.",
    {"type": "object", "properties": {"path": {}, "limit": {}}, "required": ["path"]},
)


def told(*messages: Message, system: str = "", tools: tuple[ToolDefinition, ...] = ()) -> list[JsonObject]:
    return chat_messages(Context(system, messages, tools), "(no image)")


def answer(*blocks: TextContent | ThinkingContent | ToolCall) -> AssistantMessage:
    return AssistantMessage(list(blocks), "a", "p", "m")


def test_without_tools_it_is_a_plain_conversation() -> None:
    assert told(UserMessage("hi"), answer(TextContent("yes")), UserMessage("go"), system="Be brief.") == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "yes"},
        {"role": "user", "content": "go"},
    ]


def test_tools_are_named_with_the_json_that_calls_them() -> None:
    other = ToolDefinition("look", "x" * 500, {"type": "object", "properties": {"at": {}, "for": {}}})
    (system,) = told(system="Be brief.", tools=(READ, other))
    lines = str(system["content"]).splitlines()
    assert lines[0] == "Be brief."
    assert 'read: Read a file. {"tool": "read", "arguments": {"path": "<path>"}}' in lines
    assert f'look: {"x" * 120}… {{"tool": "look", "arguments": {{"at": "<at>", "for": "<for>"}}}}' in lines


def test_of_many_arguments_the_first_are_shown() -> None:
    many = ToolDefinition("t", "", {"properties": {f"p{number}": {} for number in range(300)}})
    (system,) = told(tools=(many,))
    assert '"p7": "<p7>"}}' in str(system["content"]) and len(str(system["content"])) < 400


def test_with_tools_all_that_the_model_said_is_json_as_it_has_to_answer() -> None:
    call = ToolCall("1", "read", {"path": 'a"b'})
    messages = told(
        UserMessage("hi"),
        answer(ThinkingContent("hm"), TextContent("I'll look"), call),
        ToolResultMessage("1", "read", [TextContent("text")]),
        tools=(READ,),
    )
    said = str(messages[2]["content"]).splitlines()
    assert [json.loads(line) for line in said] == [
        {"answer": "I'll look"},
        {"tool": "read", "arguments": {"path": 'a"b'}},
    ]
    assert messages[3] == {"role": "user", "content": "Result of read:\ntext"}


def test_user_and_assistant_take_turns() -> None:
    calls = answer(ToolCall("1", "read", {}), ToolCall("2", "read", {}))
    failed = ToolResultMessage("2", "read", [TextContent("gone")], is_error=True)
    empty = ToolResultMessage("1", "read", [TextContent(" ")])
    messages = told(UserMessage("a"), UserMessage("b"), calls, empty, failed, UserMessage("c"), tools=(READ,))
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user"]
    assert messages[1]["content"] == "a\n\nb"
    assert messages[3]["content"] == "Result of read:\n(no output)\n\nError of read:\ngone\n\nc"


def test_an_image_is_a_note() -> None:
    image = ImageContent("aGk=", "image/png")
    assert told(UserMessage([TextContent("see"), image])) == [{"role": "user", "content": "see\n(no image)"}]
    result = ToolResultMessage("1", "read", [image])
    messages = told(UserMessage("a"), answer(ToolCall("1", "read", {})), result)
    assert messages[-1]["content"] == "Result of read:\n(no image)"


def test_answers_that_failed_and_empty_ones_are_left_out() -> None:
    failed = AssistantMessage([TextContent("half")], "a", "p", "m", stop_reason="error", error_message="x")
    messages = told(UserMessage("a"), failed, answer(TextContent(" ")), UserMessage("b"), UserMessage(""))
    assert messages == [{"role": "user", "content": "a\n\nb"}]


@pytest.mark.parametrize("parameters", [{}, {"required": [1, None]}, {"properties": [], "required": "x"}])
def test_odd_schemas_are_shown_as_far_as_they_go(parameters: JsonObject) -> None:
    (system,) = told(tools=(ToolDefinition("t", "", parameters),))
    assert '{"tool": "t", "arguments": {' in str(system["content"])
