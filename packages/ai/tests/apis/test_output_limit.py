"""How much output is asked for as a conversation fills its window; each case goes wrong in its own way if not."""

import pytest

from cantle_ai.apis.output_limit import output_limit, room_for_output
from cantle_ai.content import ImageContent, TextContent, ToolCall
from cantle_ai.messages import AssistantMessage, ToolResultMessage, UserMessage
from cantle_ai.model import Model, StreamOptions
from cantle_ai.usage import Usage

MODEL = Model(
    id="m", provider="p", api="anthropic-messages", base_url="", context_window=200_000, max_tokens=64_000
)
MILLION_BYTES = 10**6
"""Of ordinary English some 220,000 tokens, of other text less."""
ASKED = UserMessage("hello", timestamp=1)


def answer(counted: int, *, model="m", stop_reason="toolUse"):
    return AssistantMessage(
        [ToolCall("c", "read", {})], "anthropic-messages", "p", model, stop_reason=stop_reason, timestamp=1,
        usage=Usage(input=counted - 1000, cache_read=500, cache_write=300, output=200, total_tokens=counted),
    )  # fmt: skip


def result(*content):
    return ToolResultMessage("c", "read", content, timestamp=1)


def room(*messages, size=MILLION_BYTES, images=0):
    return room_for_output(MODEL, messages, size, images)


@pytest.mark.fault("B08")
def test_b08_what_the_model_has_counted_is_nearer_than_the_size():
    assert room(ASKED, answer(150_000), result(TextContent("x" * 3500))) == 200_000 - 150_000 - 1150


@pytest.mark.fault("B08")
def test_b08_a_history_that_was_cut_since_is_as_small_as_its_size():
    assert room(ASKED, answer(190_000), UserMessage("go on", timestamp=1), size=35_000) == 188_500


def test_images_and_bytes_after_the_count_are_added():
    image = ImageContent("iVBORw0KGgoAAAAN" * 9999, "image/png")
    assert room(ASKED, answer(150_000), result(TextContent("é" * 1750), image)) == 50_000 - 1150 - 1200


UNCOUNTED = AssistantMessage([], "anthropic-messages", "p", "m", timestamp=1)


@pytest.mark.parametrize("last", [answer(150_000, model="other"), UNCOUNTED])
def test_an_answer_of_another_model_or_without_a_count_says_nothing(last):
    assert room(ASKED, last, ASKED, size=350_000) == 85_000


def test_an_answer_that_failed_is_not_sent_and_does_not_count():
    assert room(ASKED, answer(150_000), result(), answer(9_000, stop_reason="aborted")) == 50_000


@pytest.mark.fault("B08")
@pytest.mark.parametrize(("window", "least"), [(200_000, 4096), (16_000, 1000), (8, 1)])
def test_b08_there_is_always_enough_asked_for_to_answer_with(window, least):
    model = Model(id="m", provider="p", api="a", base_url="", context_window=window, max_tokens=64_000)
    assert output_limit(model, StreamOptions(), [ASKED], MILLION_BYTES, 0) == least
    assert output_limit(model, StreamOptions(max_tokens=1), [ASKED], MILLION_BYTES, 0) == 1
