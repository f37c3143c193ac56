"""The bytes of one request's messages begin those of the next, and no message is encoded twice."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cantle_ai.apis.openai_completions_compat import compat_of
from cantle_ai.apis.openai_completions_payload import request_body
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
from packages.ai.tests.apis.completions import model
from tests.support.samples import samples

TOOLS = [ToolDefinition("read", "Reads.", {"type": "object"})]
OPTIONS = StreamOptions(session_id="s")


def parts(history, asked):
    """What stands before the messages, the messages without their closing bracket, and the tools."""
    body = request_body(asked, Context("System.", history, TOOLS), OPTIONS, compat_of(asked))
    head, _, rest = body.partition(b'"messages":[')
    messages, _, tail = rest.partition(b'],"tools":')
    return head, messages, tail.partition(b',"stream"')[0]


TEXT = st.text(max_size=8)
RESULT = st.tuples(TEXT, st.booleans())
TURN = st.fixed_dictionaries(
    {
        "user": st.none() | TEXT,
        "text": TEXT,
        "thought": TEXT,
        "results": st.lists(RESULT, max_size=3),
        "lost": st.integers(0, 3),
        "steering": st.booleans(),
        "stop": st.sampled_from(["toolUse", "toolUse", "toolUse", "error", "aborted"]),
    }
)
QUIRKS = [
    {},
    {"requiresAssistantAfterToolResult": True, "requiresToolResultName": True},
    {"requiresReasoningContentOnAssistantMessages": True, "requiresNonNullAssistantContent": True},
    {"requiresThinkingAsText": True},
]


@settings(max_examples=samples(2000, 100), deadline=None)
@given(st.lists(TURN, min_size=1, max_size=8), st.sampled_from(QUIRKS), st.booleans())
def test_each_request_extends_the_one_before(turns, compat, sees):
    asked = model(compat=compat, reasoning=True, input=("text", "image") if sees else ("text",))
    history: list[Message] = [UserMessage("begin", timestamp=0)]
    before = parts(history, asked)
    for number, turn in enumerate(turns):
        names = [f"c{number}_{place}" for place in range(len(turn["results"]))]
        content: list[AssistantContent] = [
            ThinkingContent(turn["thought"], signature="reasoning"),
            TextContent(turn["text"]),
        ]
        content += [ToolCall(name, "read", {"n": number}) for name in names]
        history.append(
            AssistantMessage(
                content, asked.api, asked.provider, asked.id, stop_reason=turn["stop"], timestamp=0
            )
        )
        # Some results are missing, as after a crash: then a user message goes on.
        kept = len(names) - min(turn["lost"], len(names))
        for name, (text, image) in list(zip(names, turn["results"], strict=True))[:kept]:
            blocks: list[UserContent] = [
                TextContent(text),
                *(
                    [ImageContent("iVBORw0KGgoAAAAN" if len(text) % 3 else "***", "image/png")]
                    if image
                    else []
                ),
            ]
            history.append(ToolResultMessage(name, "read", blocks, timestamp=0))
        if kept < len(names) or turn["steering"] or not names or turn["stop"] != "toolUse":
            history.append(UserMessage("go on", timestamp=0))
        now = parts(history, asked)
        assert now[1].startswith(before[1])
        assert now[1] != before[1]
        assert (now[0], now[2]) == (before[0], before[2])
        before = now


def conversation():
    image = ImageContent("iVBORw0KGgoAAAAN", "image/png")
    call = ToolCall("c", "read", {})
    return [
        UserMessage([TextContent("u"), image], timestamp=0),
        AssistantMessage([call], "openai-completions", "p", "m", stop_reason="toolUse", timestamp=0),
        ToolResultMessage("c", "read", [TextContent("r"), image], timestamp=0),
    ]


@pytest.mark.parametrize("sees", [False, True])
def test_a_message_is_encoded_once(sees):
    """A second request uses the bytes that the first one kept: put others there, and those go out."""
    asked = model(input=("text", "image") if sees else ("text",))
    history = conversation()
    parts(history, asked)
    for number, message in enumerate(history):
        for key in message.wire:
            message.wire[key] = b'"kept %d"' % number
    assert parts(history, asked)[1].count(b'"kept ') == (4 if sees else 3)


@pytest.mark.parametrize(
    "change",
    [
        {"id": "n"},
        {"provider": "q"},
        {"input": ("text",)},
        {"reasoning": True, "compat": {"requiresReasoningContentOnAssistantMessages": True}},
        {"compat": {"requiresToolResultName": True}},
        {"compat": {"requiresNonNullAssistantContent": True}},
        {"compat": {"requiresThinkingAsText": True}},
    ],
)
def test_what_changes_the_bytes_is_part_of_the_key(change):
    """The bytes kept for one model are not those of another."""
    thought = ThinkingContent("why", signature="reasoning")
    history = [
        *conversation(),
        AssistantMessage([thought, TextContent("t")], "openai-completions", "p", "m", timestamp=0),
    ]
    plain = model(input=("text", "image"))
    first = parts(history, plain)
    other = parts(history, model(**{"input": ("text", "image"), **change}))
    for message in history:
        message.wire.clear()
    assert parts(history, model(**{"input": ("text", "image"), **change})) == other
    assert parts(history, plain) == first
    assert other != first
