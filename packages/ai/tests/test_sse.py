"""The framing of server-sent events, cut at every place, against a plain reading of the standard."""

from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cantle_ai.sse import ServerSentEvent, SseError, SseParser
from tests.support.samples import samples


def parsed(*pieces: bytes) -> list[tuple[str | None, bytes]]:
    parser = SseParser()
    events = [event for piece in pieces for event in parser.feed(piece)] + parser.finish()
    return [(event.event, event.data) for event in events]


def plainly(stream: bytes) -> list[tuple[str | None, bytes]]:
    """What the standard says, over the whole text at once; the last event needs no blank line."""
    text = stream.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    events: list[tuple[str | None, bytes]] = []
    data: list[bytes] = []
    name: str | None = None
    for line in [*text.split(b"\n"), b""]:
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if not line:
            if data:
                events.append((name, b"\n".join(data)))
            data, name = [], None
        elif field == b"data":
            data.append(value)
        elif field == b"event":
            name = value.decode("utf-8", "replace")
    return events


TOKENS = [
    b"\n", b"\r", b"\r\n", b"\n\n", b"data: {}\n\n", b"data: x", b"data:", b"data", b"event: e", b": comment",
    b"id: 1", b"retry: 5", b"\xef\xbb\xbf", "é✓😀".encode(), b"\xff", b" ", b":",
]  # fmt: skip


@settings(max_examples=samples(20_000, 400), deadline=None)
@given(st.lists(st.sampled_from(TOKENS), max_size=16), st.lists(st.integers(0, 200), max_size=12))
@example([b"\xef\xbb\xbf", b"data: x"], [1, 2])
@example([b"data: x", b"\r\n", b"\r\n", b"data: y"], [8, 9, 10, 11])
def test_where_the_bytes_are_cut_makes_no_difference(tokens, places):
    stream = b"".join(tokens)
    edges = [0, *sorted(min(place, len(stream)) for place in places), len(stream)]
    pieces = [stream[a:b] for a, b in pairwise(edges)]
    assert parsed(*pieces) == plainly(stream)


def test_an_event_comes_with_its_blank_line_not_later():
    parser = SseParser()
    assert parser.feed(b"data: a\n") == []
    assert parser.feed(b"\n") == [ServerSentEvent(None, b"a")]
    assert parser.feed(b"data: b\r\n\r") == [ServerSentEvent(None, b"b")]
    assert parser.feed(b"\ndata: c\n\ndata: d\n\nda") == [
        ServerSentEvent(None, b"c"),
        ServerSentEvent(None, b"d"),
    ]
    assert parser.feed(b"ta: e\r\r") == [ServerSentEvent(None, b"e")]


def test_a01_the_last_event_needs_no_blank_line():
    assert parsed(b"data: a\n\ndata: b") == [(None, b"a"), (None, b"b")]
    assert parsed(b"data: a\n\ndata: b\n") == [(None, b"a"), (None, b"b")]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_a02_every_line_end_is_one(end):
    stream = b"event: e" + end + b"data: a" + end + b"data: b" + end + end + b"data: c" + end + end
    expected = [("e", b"a\nb"), (None, b"c")]
    assert parsed(stream) == expected
    assert parsed(*[stream[i : i + 1] for i in range(len(stream))]) == expected


def test_several_data_lines_are_joined_and_one_space_is_taken():
    assert parsed(b"data: a\ndata:  b\ndata:c\ndata\n\n") == [(None, b"a\n b\nc\n")]


def test_comments_and_unknown_fields_say_nothing():
    assert parsed(b": ping\n\nid: 1\nretry: 2\nfoo: bar\n\n: x\ndata: a\n\n") == [(None, b"a")]


def test_an_endless_event_is_refused():
    parser = SseParser(limit=1000)
    with pytest.raises(SseError, match="1000 bytes"):
        for _ in range(20):
            parser.feed(b"x" * 100)
    parser = SseParser(limit=1000)
    with pytest.raises(SseError):
        for _ in range(20):
            parser.feed(b"data: " + b"x" * 100 + b"\nrest")


def test_the_limit_is_for_one_event_not_for_the_stream():
    parser = SseParser(limit=1000)
    for _ in range(50):
        assert len(parser.feed(b"data: " + b"x" * 100 + b"\n\nda")) == 1
        assert parser.feed(b"ta: y\n\n") == [ServerSentEvent(None, b"y")]


def test_a_long_line_in_small_pieces_costs_as_much_as_it_is_long():
    """Pieces of an unfinished line are not looked at again."""

    class Counting(SseParser):
        joined = 0

        def _line(self, line: bytes) -> None:
            Counting.joined += len(line)
            super()._line(line)

    parser = Counting()
    for _ in range(5000):
        assert parser.feed(b"x" * 10) == []
    assert Counting.joined == 0
    parser.feed(b"\n")
    assert Counting.joined == 50_000
