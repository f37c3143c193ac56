"""AWS's binary framing: cut anywhere it gives the same, and what is damaged is told."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from cantle_ai.apis.bedrock_event_stream import ERROR, EventStreamParser
from cantle_ai.sse import ServerSentEvent, SseError
from cantle_ai.testing.server.dialects.bedrock_converse_stream_frames import event, exception, frame, resealed

MESSAGES = [
    event("messageStart", {"role": "assistant"}),
    event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "ä😀"}}),
    exception("throttlingException", {"message": "slow down"}),
]
EVENTS = [
    ServerSentEvent("messageStart", b'{"role":"assistant"}'),
    ServerSentEvent("contentBlockDelta", b'{"contentBlockIndex":0,"delta":{"text":"\\u00e4\\ud83d\\ude00"}}'),
    ServerSentEvent("throttlingException", b'{"message":"slow down"}'),
]


def read(data: bytes, *cuts: int) -> list[ServerSentEvent]:
    parser = EventStreamParser()
    events: list[ServerSentEvent] = []
    places = [0, *cuts, len(data)]
    for start, end in pairwise(places):
        events += parser.feed(data[start:end])
    return [*events, *parser.finish()]


def test_the_stream_may_be_cut_between_any_two_bytes():
    data = b"".join(MESSAGES)
    assert read(data) == EVENTS
    for place in range(len(data)):
        assert read(data, place) == EVENTS
    assert read(data, *range(len(data))) == EVENTS


def test_half_a_message_is_none():
    data = b"".join(MESSAGES)
    assert read(data[:-1]) == EVENTS[:-1]
    assert read(data[:5]) == []


def test_every_damaged_byte_is_noticed():
    random = Random("damage")
    data = MESSAGES[1]
    for place in range(len(data)):
        damaged = data[:place] + bytes([data[place] ^ (1 << random.randrange(8))]) + data[place + 1 :]
        with pytest.raises(SseError):
            read(damaged)


def test_what_stands_before_the_damage_is_handed_on_wherever_the_stream_is_cut():
    data = b"".join(MESSAGES[:2])
    damaged = data + MESSAGES[2][:-1] + b"\x00"
    for place in range(len(damaged)):
        parser = EventStreamParser()
        events = [*parser.feed(damaged[:place])]
        with pytest.raises(SseError, match="checksum"):
            for block in (damaged[place:], b"more"):
                events += parser.feed(block)
        assert events == EVENTS[:2]
    parser = EventStreamParser()
    parser.feed(damaged)
    with pytest.raises(SseError, match="checksum"):
        parser.finish()


def test_an_error_message_is_an_event_of_its_own():
    headers = {":message-type": "error", ":error-code": "InternalError", ":error-message": "Oh no"}
    assert read(frame(headers, b"")) == [
        ServerSentEvent(ERROR, b'{"code":"InternalError","message":"Oh no"}')
    ]


@pytest.mark.parametrize(
    "headers",
    [b"\x05short", b"\x01a\x0b", b"\x01a\x07\x00\x09short", b"\x01\xff\x07\x00\x01a", b"\x01a\x04\x00"],
)
def test_headers_that_cannot_be_read_are_told(headers):
    with pytest.raises(SseError, match="header"):
        read(resealed(headers, b"{}"))


def test_other_bodies_are_refused_at_their_first_bytes():
    with pytest.raises(SseError, match="no event stream of AWS"):
        read(b"<html><title>Bad gateway</title>")


def test_a_message_of_impossible_size_is_refused_before_it_is_waited_for():
    from binascii import crc32

    for total, headers in ((25 * 1024 * 1024, 0), (20, 10), (1 << 20, 200_000)):
        prelude = total.to_bytes(4, "big") + headers.to_bytes(4, "big")
        with pytest.raises(SseError, match="not possible"):
            read(prelude + crc32(prelude).to_bytes(4, "big") + b"rest")


def test_the_cost_of_a_large_message_is_in_step_with_its_size():
    """What has come of a message that is not whole is looked at once more, when it is."""
    data = event("contentBlockDelta", {"delta": {"text": "x" * 400_000}})
    parser, looked = EventStreamParser(), 0
    for place in range(0, len(data), 1000):
        looked += bool(parser.feed(data[place : place + 1000]))
    assert looked == 1
