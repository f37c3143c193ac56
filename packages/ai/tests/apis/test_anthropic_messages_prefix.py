"""The blocks of one Messages request begin those of the next, and no message is encoded twice."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cantle_ai.apis.anthropic_messages_compat import compat_of
from cantle_ai.apis.anthropic_messages_payload import payload_of
from cantle_ai.content import (
    AssistantContent,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    UserContent,
)
from cantle_ai.context import Context
from cantle_ai.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from cantle_ai.model import StreamOptions
from packages.ai.tests.apis.messages import READ, model
from tests.support.samples import samples

MARK = re.compile(rb',"cache_control":\{[^{}]*\}')


def parts(history, asked, **options):
    """What stands before the messages, and the messages without cache marks and without their last brackets."""
    context = Context("System.", history, [READ])
    body = MARK.sub(b"", payload_of(asked, context, StreamOptions(**options), compat_of(asked)).body)
    head, _, rest = body.partition(b'"messages":[')
    messages, _, _ = rest.partition(b'],"max_tokens"')
    return head, messages.removesuffix(b"]}")


TEXT = st.text(max_size=8)
TURN = st.fixed_dictionaries(
    {
        "text": TEXT,
        "thought": TEXT,
        "signature": st.sampled_from(["c2ln", "", None]),
        "redacted": st.booleans(),
        "results": st.lists(st.tuples(TEXT, st.booleans(), st.booleans()), max_size=3),
        "lost": st.integers(0, 3),
        "steering": st.booleans(),
        "stop": st.sampled_from(["toolUse", "toolUse", "toolUse", "error", "aborted"]),
    }
)


@settings(max_examples=samples(2000, 100), deadline=None)
@given(
    st.lists(TURN, min_size=1, max_size=8),
    st.sampled_from([{}, {"allowEmptySignature": True}]),
    st.booleans(),
    st.sampled_from(["none", "short", "long"]),
)
def test_each_request_extends_the_one_before(turns, compat, sees, retention):
    asked = model(compat=compat, reasoning=True, input=("text", "image") if sees else ("text",))
    history: list[Message] = [UserMessage("begin", timestamp=0)]
    before = parts(history, asked, cache_retention=retention)
    for number, turn in enumerate(turns):
        names = [f"c{number}_{place}" for place in range(len(turn["results"]))]
        content: list[AssistantContent] = [
            ThinkingContent(turn["thought"], signature=turn["signature"], redacted=turn["redacted"]),
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
        for name, (text, image, failed) in list(zip(names, turn["results"], strict=True))[:kept]:
            blocks: list[UserContent] = [TextContent(text)]
            if image:
                blocks.append(ImageContent("iVBORw0KGgoAAAAN" if len(text) % 3 else "***", "image/png"))
            history.append(ToolResultMessage(name, "read", blocks, is_error=failed, timestamp=0))
        if kept < len(names) or turn["steering"] or not names or turn["stop"] != "toolUse":
            history.append(UserMessage("go on", timestamp=0))
        now = parts(history, asked, cache_retention=retention)
        assert now[1].startswith(before[1])
        assert now[1] != before[1]
        assert now[0] == before[0]
        before = now


def conversation():
    image = ImageContent("iVBORw0KGgoAAAAN", "image/png")
    calls = [ToolCall("c", "read", {}), ToolCall("d", "read", {})]
    return [
        UserMessage([TextContent("u"), image], timestamp=0),
        AssistantMessage([*calls], "anthropic-messages", "p", "m", stop_reason="toolUse", timestamp=0),
        ToolResultMessage("c", "read", [TextContent("r"), image], timestamp=0),
        ToolResultMessage("d", "read", [TextContent("r"), image], is_error=True, timestamp=0),
    ]


@pytest.mark.parametrize("sees", [False, True])
def test_a_message_is_encoded_once(sees):
    """A second request uses the bytes that the first one kept: put others there, and those go out."""
    asked = model(input=("text", "image") if sees else ("text",))
    history = conversation()
    parts(history, asked)
    for number, message in enumerate(history):
        for key in message.wire:
            message.wire[key] = b'{"kept":%d}' % number
    assert parts(history, asked)[1].count(b'{"kept":') == (5 if sees else 4)


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"id": "n"}, False),
        ({"provider": "q"}, False),
        ({"input": ("text",)}, False),
        ({"compat": {"allowEmptySignature": True}}, False),
        ({"reasoning": True}, True),
        ({"max_tokens": 5000}, True),
    ],
)
def test_what_was_kept_for_one_model_is_not_sent_to_another_that_reads_otherwise(change, same):
    history = [
        UserMessage([TextContent("u"), ImageContent("iVBORw0KGgoAAAAN", "image/png")], timestamp=0),
        AssistantMessage(
            [ThinkingContent("hm"), ThinkingContent("so", signature="c2ln"), TextContent("x")],
            "anthropic-messages", "p", "m", timestamp=0,
        ),
        UserMessage("b", timestamp=0),
    ]  # fmt: skip
    first, other = model(input=("text", "image")), model(**{"input": ("text", "image"), **change})
    sent, again = parts(history, first)[1], parts(history, other)[1]
    fresh = [type(message)(*_fields(message)) for message in history]
    assert again == parts(fresh, other)[1]
    assert (sent == again) is same


def _fields(message):
    """A message's own fields, without what was kept beside them."""
    return [getattr(message, name) for name in message.__struct_fields__ if name != "wire"]


@pytest.mark.parametrize("thinking", ["off", "low", "high"])
def test_the_level_of_thinking_changes_nothing_before_it(thinking):
    asked = model(reasoning=True, input=("text", "image"))
    assert parts(conversation(), asked, thinking=thinking) == parts(conversation(), asked)
