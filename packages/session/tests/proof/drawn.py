"""What hypothesis puts into a session: messages of every role, the inconsistent ones among them."""

from __future__ import annotations

from hypothesis import strategies as st

from cantle_agent.messages import AgentMessage
from cantle_ai.codec import JsonObject
from cantle_ai.content import AssistantContent, TextContent, ThinkingContent, ToolCall, UserContent
from cantle_ai.messages import AssistantMessage, StopReason, ToolResultMessage, UnknownMessage, UserMessage
from cantle_ai.usage import Usage
from cantle_session.messages import BashExecutionMessage
from packages.ai.tests.conformance.lab import PIXEL

__all__ = ["blocks", "messages", "payloads", "replacements", "texts"]

texts = st.one_of(
    st.sampled_from(["", " ", "Go on.", "a\nb\r\nc", "\u2028\u2029\x85\x00", "👩‍👩‍👧 größe"]),
    st.text(max_size=30),
)
payloads: st.SearchStrategy[JsonObject] = st.dictionaries(
    st.text(max_size=5), st.one_of(st.none(), st.booleans(), st.integers(-(2**53), 2**53), texts), max_size=3
)

_call_ids = st.sampled_from(["call_1", "call_2", "call_3", "toolu_9|fc_" + "x" * 70, "a:b/c"])
_tools = st.sampled_from(["read", "edit"])
_authors = st.sampled_from(
    [
        ("openai-completions", "p", "m-1"),
        ("openai-completions", "q", "m-2"),
        ("anthropic-messages", "p", "m-1"),
        ("openai-responses", "r", "m-3"),
    ]
)

blocks: st.SearchStrategy[list[UserContent]] = st.lists(
    st.one_of(st.builds(TextContent, texts), st.just(PIXEL)), max_size=3
)
_said: st.SearchStrategy[list[AssistantContent]] = st.lists(
    st.one_of(
        st.builds(TextContent, texts),
        st.builds(ThinkingContent, texts, signature=st.sampled_from([None, "c2ln"])),
        st.builds(ToolCall, _call_ids, _tools, payloads),
    ),
    max_size=4,
)
_stop_reasons: list[StopReason] = ["stop", "stop", "stop", "length", "toolUse", "error", "aborted"]
_stops = st.sampled_from(_stop_reasons)


@st.composite
def _answers(draw: st.DrawFn) -> AssistantMessage:
    content, stop = draw(_said), draw(_stops)
    usage = Usage(input=draw(st.integers(0, 10**6)), output=draw(st.integers(0, 10**4)))
    failed = "it failed" if stop in ("error", "aborted") else None
    return AssistantMessage(
        content, *draw(_authors), usage=usage, stop_reason=stop, timestamp=2, error_message=failed
    )


messages: st.SearchStrategy[AgentMessage] = st.one_of(
    st.builds(UserMessage, st.one_of(texts, blocks), st.just(1)),
    _answers(),
    st.builds(ToolResultMessage, _call_ids, _tools, blocks, is_error=st.booleans(), timestamp=st.just(3)),
    st.builds(
        BashExecutionMessage,
        command=texts,
        output=texts,
        exit_code=st.sampled_from([None, 0, 1]),
        exclude_from_context=st.booleans(),
        timestamp=st.just(4),
    ),
    st.builds(
        lambda content: UnknownMessage(
            {"role": "system", "content": content, "sections": {}, "timestamp": 5}
        ),
        texts,
    ),
)
"""Messages of every role; calls and results that need not fit together."""

replacements: st.SearchStrategy[JsonObject | None] = st.one_of(
    st.none(),
    texts.map(lambda text: {"content": text}),
    texts.map(lambda text: {"content": [{"type": "text", "text": text}]}),
)
"""What a context edit may put in a message's place."""
