"""A local model's chunks become events: words without their escapes, calls with their arguments, wherever chunks end."""

import json
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cantle_ai.apis.llama_cpp_answer import Answer
from cantle_ai.apis.llama_cpp_grammar import call_head
from cantle_ai.builder import AnswerBuilder
from cantle_ai.content import ToolCall
from cantle_ai.context import ToolDefinition
from cantle_ai.errors import ProviderError
from cantle_ai.messages import AssistantMessage
from cantle_ai.overflow import is_overflow
from cantle_ai.retry import retryable
from cantle_ai.testing.checker import RuleChecker
from tests.support.samples import samples

READ = ToolDefinition("read", "Read a file.", {"type": "object"})
ODD = ToolDefinition('o"dd\n', "", {"type": "object"})
READER = ToolDefinition("reader", "", {"type": "object"})
TOOLS = (READ, ODD, READER)


def chunk(text: str | None = None, **fields: Any) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": None}
    return json.dumps({"choices": [choice], "object": "chat.completion.chunk", **fields}).encode()


def end(reason: str = "stop") -> bytes:
    return json.dumps({"choices": [{"delta": {}, "finish_reason": reason}]}).encode()


def answered(chunks: Iterable[bytes], tools: Sequence[ToolDefinition] = ()) -> AssistantMessage:
    """The message that the chunks make; its events keep the rules."""
    builder = AnswerBuilder(api="llama-cpp", provider="local", model="m")
    answer, checker = Answer(builder, tools), RuleChecker()
    for data in chunks:
        answer.add(data)
        for event in builder.take():
            checker.check(event)
    answer.finish()
    for event in builder.take():
        checker.check(event)
    return checker.finish()


def said(*texts: str, reason: str = "stop") -> AssistantMessage:
    return answered([*map(chunk, texts), end(reason)], TOOLS)


def call_of(message: AssistantMessage) -> ToolCall:
    (call,) = message.tool_calls
    return call


def test_without_tools_words_are_words() -> None:
    message = answered([chunk(None), chunk('{"answer'), chunk('": "x"}'), end()])
    assert (message.text, message.stop_reason) == ('{"answer": "x"}', "stop")
    assert answered([end()]).content == []
    assert answered([chunk("cut"), end("length")]).stop_reason == "length"


def test_words_lose_their_escapes() -> None:
    message = said('{"ans', 'wer": "a', "\\", 'n\\"', "\\u00", 'e9"}')
    assert (message.text, message.stop_reason, message.raw_stop_reason) == ('a\n"é', "stop", "stop")


def test_a_call_begins_with_its_name_and_ends_with_its_bracket() -> None:
    message = said('{"tool": "reader"', ', "arguments": {"p": "}{\\"', '", "o": {"k": []}}', "}")
    assert (call_of(message).name, call_of(message).arguments) == ("reader", {"p": '}{"', "o": {"k": []}})
    assert (message.stop_reason, message.raw_stop_reason) == ("toolUse", "stop")
    assert call_of(message).invalid_arguments is None and call_of(message).id.startswith("call_")
    assert call_of(said(call_head(ODD.name), "{}}")).name == ODD.name
    assert call_of(said(call_head("read"), "{}}")).id != call_of(said(call_head("read"), "{}}")).id


def test_a_call_may_be_cut_into_chunks_anywhere() -> None:
    arguments = {'k"': 'a\\" } \n {', "l": {"m": "\U0001f600"}}
    for text in (json.dumps(arguments), json.dumps(arguments, ensure_ascii=False)):
        for cut in range(len(text)):
            message = said(call_head("read") + text[:cut], text[cut : cut + 1], text[cut + 1 :] + "}")
            assert (call_of(message).arguments, message.stop_reason) == (arguments, "toolUse")


def test_a_call_cut_at_the_limit_is_marked_as_cut() -> None:
    message = said(call_head("read"), '{"path": "a', reason="length")
    assert (message.stop_reason, call_of(message).invalid_arguments) == ("length", '{"path": "a')


def test_what_is_cut_before_it_says_anything_says_nothing() -> None:
    message = said('{"tool": "re', reason="length")
    assert (message.content, message.stop_reason) == ([], "length")


def test_what_ends_too_early_for_another_reason_counts_as_cut() -> None:
    """A stop word of the options, for one, may stand anywhere."""
    assert said(call_head("read"), '{"path": "a').stop_reason == "length"
    assert said('{"answer": "half').stop_reason == "length"


def test_half_an_escape_at_the_end_is_not_told() -> None:
    assert said('{"answer": "a\\u00', reason="length").text == "a"


def test_thoughts_are_thinking() -> None:
    thought = json.dumps({"choices": [{"delta": {"reasoning_content": "hm"}}]}).encode()
    message = answered([thought, chunk("yes"), end()])
    assert [block.type for block in message.content] == ["thinking", "text"]


def test_tokens_are_counted_without_those_that_were_kept() -> None:
    usage = {"prompt_tokens": 30, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 24}}
    message = answered([chunk("x"), end(), json.dumps({"choices": [], "usage": usage}).encode()])
    counted = message.usage
    assert (counted.input, counted.output, counted.cache_read, counted.total_tokens) == (6, 4, 24, 34)


def failed(data: bytes) -> AssistantMessage:
    builder = AnswerBuilder(api="llama-cpp", provider="local", model="m")
    with pytest.raises(ProviderError) as caught:
        Answer(builder, ()).add(data)
    builder.fail(str(caught.value), details=caught.value.details())
    return builder.message


def test_a_prompt_that_is_too_long_is_an_overflow_and_not_retried() -> None:
    error = {"type": "exceed_context_size_error", "message": "…", "n_prompt_tokens": 9000, "n_ctx": 8192}
    message = failed(json.dumps({"error": {**error, "code": 400}}).encode())
    assert is_overflow(message, 8192) and not retryable(message)
    assert "9000 tokens, and its context window has 8192" in str(message.error_message)


def test_other_errors_are_said_and_not_retried() -> None:
    message = failed(
        b'{"error": {"code": 400, "message": "no such template", "type": "invalid_request_error"}}'
    )
    assert message.error_message == "llama.cpp: no such template"
    assert not retryable(message) and not is_overflow(message, 8192)


def test_an_answer_without_an_end_is_a_failure() -> None:
    with pytest.raises(ProviderError, match="before its answer was complete"):
        answered([chunk("x")])


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


def pieces(text: str, cuts: list[int]) -> list[str]:
    places = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    return [text[a:b] for a, b in pairwise(places)]


@given(st.dictionaries(st.text(max_size=4), values, max_size=4), st.lists(st.integers(0, 500), max_size=12))
@settings(max_examples=samples(2000, 150), deadline=None)
def test_arguments_arrive_whole_wherever_chunks_end(arguments: dict[str, Any], cuts: list[int]) -> None:
    text = f"{call_head('read')}{json.dumps(arguments)}}}"
    message = said(*pieces(text, cuts))
    assert call_of(message).arguments == arguments and message.stop_reason == "toolUse"


@given(st.text(), st.booleans(), st.lists(st.integers(0, 500), max_size=12))
@settings(max_examples=samples(2000, 150), deadline=None)
def test_words_arrive_whole_wherever_chunks_end(text: str, escaped: bool, cuts: list[int]) -> None:
    whole = f'{{"answer": {json.dumps(text, ensure_ascii=escaped)}}}'
    message = said(*pieces(whole, cuts))
    assert message.text == text and message.stop_reason == "stop"
