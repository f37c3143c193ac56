"""OpenRouter's `reasoning_details`: put together, kept, and sent back whole."""

import json

import pytest

from cantle_ai.apis.openai_completions_compat import compat_of
from cantle_ai.apis.openai_completions_details import ReasoningDetails
from cantle_ai.apis.openai_completions_payload import request_body
from cantle_ai.content import TextContent, ThinkingContent, ToolCall
from cantle_ai.context import Context
from cantle_ai.messages import AssistantMessage, ToolResultMessage, UserMessage
from cantle_ai.model import StreamOptions
from packages.ai.tests.apis.completions import DONE, ask, call, delta, model

SUMMARY = {
    "type": "reasoning.summary",
    "summary": "hm",
    "id": "rs_1",
    "format": "openai-responses-v1",
    "index": 0,
}
SECRET = {
    "type": "reasoning.encrypted",
    "data": "xyz",
    "id": "rs_1",
    "format": "openai-responses-v1",
    "index": 0,
}
OF_CALL = {"type": "reasoning.encrypted", "data": "abc", "id": "c", "format": "google-gemini-v1", "index": 1}
CALLS = delta("tool_calls", tool_calls=[call("{}", index=0, id="c", name="go")])


def details_of(thought):
    return json.loads(thought.signature)


def replayed(message):
    """The answer as it goes out in the next request."""
    asked = model()
    history = [
        UserMessage("u", timestamp=1),
        message,
        *(
            ToolResultMessage(each.id, each.name, [TextContent("r")], is_error=False, timestamp=3)
            for each in message.tool_calls
        ),
    ]
    sent = json.loads(request_body(asked, Context("", history), StreamOptions(), compat_of(asked)))
    return sent["messages"][1]


@pytest.mark.fault("A14")
@pytest.mark.parity("completions.reasoning-details")
async def test_a14_reasoning_ahead_of_its_call_is_kept_whole_and_goes_back():
    asked = await ask(
        [
            delta(reasoning="hm", reasoning_details=[SUMMARY]),
            delta(reasoning_details=[SECRET, OF_CALL]),
            CALLS,
            DONE,
        ]
    )
    thought, made = asked.message.content
    assert isinstance(thought, ThinkingContent)
    assert isinstance(made, ToolCall)
    assert thought.thinking == "hm"
    assert details_of(thought) == [SUMMARY, SECRET, OF_CALL]
    sent = replayed(asked.message)
    assert sent["reasoning_details"] == [SUMMARY, SECRET, OF_CALL]
    assert "reasoning" not in sent


@pytest.mark.fault("A14")
async def test_a14_reasoning_that_cannot_be_read_has_a_block_of_its_own():
    asked = await ask([delta(reasoning_details=[OF_CALL]), CALLS, DONE])
    thought, _ = asked.message.content
    assert isinstance(thought, ThinkingContent)
    assert thought.thinking == ""
    assert details_of(thought) == [OF_CALL]
    assert replayed(asked.message)["reasoning_details"] == [OF_CALL]


@pytest.mark.fault("A14")
async def test_a14_reasoning_after_its_call_is_kept_too():
    asked = await ask([CALLS, delta(reasoning_details=[OF_CALL]), DONE])
    made, thought = asked.message.content
    assert isinstance(made, ToolCall)
    assert isinstance(thought, ThinkingContent)
    assert details_of(thought) == [OF_CALL]
    assert replayed(asked.message)["reasoning_details"] == [OF_CALL]


def text(piece, **more):
    return {"type": "reasoning.text", "text": piece, **more}


async def test_pieces_of_a_detail_are_put_together_with_the_signature_that_comes_last():
    asked = await ask(
        [
            delta(reasoning="a", reasoning_details=[text("a", signature=None, index=0)]),
            delta(reasoning="b", reasoning_details=[text("b", index=0)]),
            delta(reasoning_details=[text("", signature="sig", index=0)]),
            delta(reasoning="c", reasoning_details=[text("c", index=1)]),
            delta("stop", content="ok"),
            DONE,
        ]
    )
    thought = asked.message.content[0]
    assert isinstance(thought, ThinkingContent)
    assert thought.thinking == "abc"
    assert details_of(thought) == [text("ab", signature="sig", index=0), text("c", index=1)]


async def test_thoughts_that_come_as_details_alone_are_shown():
    asked = await ask(
        [
            delta(reasoning_details=[text("a")]),
            delta(reasoning_details=text("b")),
            delta("stop", content="ok"),
            DONE,
        ]
    )
    assert asked.message.content[0] == ThinkingContent(
        "ab", signature=json.dumps([text("ab")], separators=(",", ":"))
    )
    assert asked.types.count("thinking_delta") == 2


@pytest.mark.parametrize("odd", [[], [None], ["x"], {}, {"type": 1}, "text", 1, [[]]])
async def test_details_of_other_shapes_do_no_harm(odd):
    asked = await ask([delta(reasoning_details=odd), delta("stop", content="ok"), DONE])
    assert asked.message.content == [TextContent("ok")]


async def test_kinds_that_are_not_known_are_kept():
    odd = {"type": "reasoning.of-tomorrow", "text": 7}
    asked = await ask([delta(reasoning_details=[odd, odd]), delta("stop", content="ok"), DONE])
    thought = asked.message.content[0]
    assert isinstance(thought, ThinkingContent)
    assert details_of(thought) == [odd, odd]


@pytest.mark.fault("A08")
def test_a08_many_pieces_cost_their_length():
    details = ReasoningDetails()
    for _ in range(100_000):
        details.add([text("x" * 20)])
    assert len(details.signature() or "") > 2_000_000


def test_details_of_another_model_do_not_go_out():
    thought = ThinkingContent("hm", signature=json.dumps([SUMMARY, SECRET]))
    message = AssistantMessage(
        [thought, TextContent("t")], "openai-completions", "other", "m", stop_reason="stop", timestamp=2
    )
    assert replayed(message) == {"role": "assistant", "content": "hm\n\nt"}
