"""Conversations of every kind against a server that refuses what the strictest vendor would."""

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cantle_ai.apis.openai_completions import source
from cantle_ai.auth.request_auth import RequestAuth
from cantle_ai.builder import AnswerBuilder
from cantle_ai.content import (
    AssistantContent,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    UserContent,
)
from cantle_ai.context import Context, ToolDefinition
from cantle_ai.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from cantle_ai.model import StreamOptions
from cantle_ai.stream import AssistantMessageStream
from cantle_ai.testing.checker import checked
from cantle_ai.testing.server.server import StrictServer
from cantle_ai.transport.urllib3_thread import Urllib3Transport
from packages.ai.tests.apis.completions import model
from tests.support.samples import samples

PIXEL = ImageContent("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
                     "image/png")  # fmt: skip
TOOLS = [ToolDefinition("read", "Reads.", {"type": "object", "properties": {"path": {"type": "string"}}})]


async def answers(server, transport, histories, **fields):
    """Asks once for each history; the final messages."""
    asked = model(base_url=server.base_url, input=("text", "image"), **fields)
    messages = []
    for history in histories:
        context = Context("Be brief.", history, TOOLS)
        made = source(
            asked, context, StreamOptions(session_id="s"), transport=transport, auth=RequestAuth(api_key="k")
        )
        builder = AnswerBuilder(api=asked.api, provider=asked.provider, model=asked.id)
        messages.append(await checked(AssistantMessageStream(made, builder)).result())
    return messages


async def test_a_task_of_several_turns_is_accepted_and_extends_its_bytes():
    call = {"content": [{"type": "toolCall", "name": "read", "arguments": {"path": "ä/😀"}}]}
    turns = 6
    transport = Urllib3Transport(environ={})
    with StrictServer([*[call] * turns, "Done."], newline="\r\n") as server:
        history: list[Message] = [UserMessage([TextContent("look"), PIXEL], timestamp=0)]
        for turn in range(turns + 1):
            (message,) = await answers(
                server, transport, [list(history)], compat={"promptCacheKeyMode": "enabled"}
            )
            history.append(message)
            for made in message.tool_calls:
                content: list[UserContent] = (
                    [TextContent(f"line {turn}"), PIXEL] if turn % 2 else [TextContent("")]
                )
                history.append(ToolResultMessage(made.id, made.name, content, timestamp=0))
        server.assert_clean()
        assert len(server.requests) == turns + 1
    assert message.text == "Done."
    assert message.stop_reason == "stop"
    await transport.aclose()


BLOCKS: dict[str, Callable[[int], AssistantContent]] = {
    "text": lambda number: TextContent("text"),
    "empty": lambda number: TextContent(""),
    "thinking": lambda number: ThinkingContent("hm", signature="reasoning_content"),
    "broken": lambda number: ToolCall(f"broken{number}", "read", invalid_arguments='{"pa'),
    "a": lambda number: ToolCall(f"a{number}", "read", {"path": "a"}),
    "b": lambda number: ToolCall(f"b{number}", "read", {"path": "b"}),
    "c": lambda number: ToolCall(f"c{number}", "read", {"path": "c"}),
}
STEP = st.one_of(
    st.tuples(st.just("user"), st.lists(st.sampled_from([TextContent("hi"), PIXEL]), min_size=1, max_size=2)),
    st.tuples(
        st.just("answer"),
        st.lists(st.sampled_from(sorted(BLOCKS)), max_size=4, unique=True),
        st.sampled_from(["stop", "toolUse", "length", "error", "aborted"]),
    ),
    st.tuples(
        st.just("result"),
        st.sampled_from(["a", "b", "c", "broken"]),
        st.sampled_from([[TextContent(" ")], [PIXEL], []]),
    ),
)


@pytest.mark.parametrize(
    "call",
    [
        {"name": "functions.read"},
        {"name": ""},
        {"name": "read "},
        {"name": "\ud800"},
        {"name": "r" * 200},
        {"name": "read", "id": "x" * 300},
        {"name": "read", "id": "a|b é"},
        {"name": "read", "id": "\ud800"},
    ],
)
async def test_names_and_ids_that_no_endpoint_takes_back_do_not_end_a_conversation(call):
    transport = Urllib3Transport(environ={})
    made = {"content": [{"type": "toolCall", "arguments": {}, **call}]}
    with StrictServer([made, "Done."]) as server:
        (message,) = await answers(server, transport, [[UserMessage("go", timestamp=0)]])
        (asked,) = message.tool_calls
        history = [
            UserMessage("go", timestamp=0),
            message,
            ToolResultMessage(asked.id, asked.name, [TextContent("ok")]),
        ]
        (last,) = await answers(server, transport, [history])
    assert last.text == "Done.", last.error_message
    server.assert_clean()
    await transport.aclose()


async def test_ids_that_begin_anew_in_each_answer_are_made_different():
    transport = Urllib3Transport(environ={})
    made = {"content": [{"type": "toolCall", "name": "read", "arguments": {}, "id": "call_0"}]}
    with StrictServer([made, made, made, "Done."]) as server:
        history: list[Message] = [UserMessage("go", timestamp=0)]
        for _ in range(4):
            (message,) = await answers(server, transport, [list(history)])
            history.append(message)
            history.extend(
                ToolResultMessage(asked.id, "read", [TextContent("ok")]) for asked in message.tool_calls
            )
    assert message.text == "Done.", message.error_message
    server.assert_clean()
    await transport.aclose()


@settings(max_examples=samples(1000, 60), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(STEP, max_size=10))
async def test_any_history_makes_a_request_that_is_accepted(steps):
    """Torn by crashes, aborts and failures: orphans on either side, answers without anything, images anywhere."""
    history: list[Message] = [UserMessage("begin", timestamp=0)]
    answered, open_ids = False, set()
    number = 0  # ids are unique in a conversation, as endpoints make them
    for kind, *rest in steps:
        if kind == "user":
            history.append(UserMessage(rest[0], timestamp=0))
        elif kind == "answer":
            number += 1
            content = [BLOCKS[name](number) for name in rest[0]]
            if not answered:  # nothing asks for two answers in a row
                history.append(UserMessage("next", timestamp=0))
            answered = False
            open_ids = {block.id for block in content if isinstance(block, ToolCall)}
            history.append(
                AssistantMessage(content, "openai-completions", "p", "m", stop_reason=rest[1], timestamp=0)
            )
        else:
            answered = answered or f"{rest[0]}{number}" in open_ids
            history.append(ToolResultMessage(f"{rest[0]}{number}", "read", rest[1], timestamp=0))
    history.append(UserMessage("go on", timestamp=0))
    transport = Urllib3Transport(environ={})
    with StrictServer(["ok"]) as server:
        (message,) = await answers(server, transport, [history])
        server.assert_clean()
    await transport.aclose()
    assert message.text == "ok"


@pytest.mark.parametrize("slices", [(1, 3), (1, 2048)])
async def test_a_stream_in_small_slices(slices):
    text = "Grüße 😀\n" * 40
    transport = Urllib3Transport(environ={})
    with StrictServer([text], slices=slices, newline="\r") as server:
        (message,) = await answers(server, transport, [[UserMessage("hi", timestamp=0)]])
    await transport.aclose()
    assert message.text == text
