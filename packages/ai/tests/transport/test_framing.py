"""The body's framing, cut at every place."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cantle_ai.transport.framing import Chunked, Counted, FramingError, ToTheEnd
from tests.support.samples import samples


def fed(framing, pieces):
    return b"".join(framing.feed(piece) for piece in pieces)


def cut(data, places):
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[a:b] for a, b in pairwise(edges)]


@settings(max_examples=samples(2000, 150), deadline=None)
@given(
    st.lists(st.binary(min_size=1, max_size=40)),
    st.lists(st.integers(0, 10_000), max_size=30),
    st.sampled_from([b"", b";name=value"]),
    st.lists(st.sampled_from([b"x-trailer: 1\r\n", b"digest: abc\r\n"]), max_size=2),
    st.booleans(),
)
def test_chunks_come_out_wherever_the_bytes_are_cut(chunks, places, extension, trailers, upper):
    size = b"%X" if upper else b"%x"
    wire = b"".join(size % len(c) + extension + b"\r\n" + c + b"\r\n" for c in chunks)
    wire += b"0" + extension + b"\r\n" + b"".join(trailers) + b"\r\n"
    framing = Chunked()
    assert fed(framing, cut(wire, places)) == b"".join(chunks)
    assert framing.done
    assert framing.clean
    assert framing.finish()


def test_a_byte_at_a_time():
    framing = Chunked()
    wire = b"3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n"
    assert fed(framing, [wire[i : i + 1] for i in range(len(wire))]) == b"abcd"
    assert framing.done


def test_a_part_of_a_chunk_is_not_held_back():
    framing = Chunked()
    assert framing.feed(b"a\r\n01234") == b"01234"
    assert framing.feed(b"56789\r") == b"56789"
    assert framing.feed(b"\n0\r\n\r\n") == b""
    assert framing.done


def test_what_follows_the_end_makes_the_connection_unclean():
    framing = Chunked()
    assert framing.feed(b"1\r\nx\r\n0\r\n\r\nHTTP/1.1 200 OK") == b"x"
    assert framing.done
    assert not framing.clean


@pytest.mark.parametrize("wire", [b"xyz\r\n", b"\r\n", b"-5\r\nabc", b"3\r\nabcdef", b"1" * 20_000])
def test_nonsense_is_refused(wire):
    with pytest.raises(FramingError):
        Chunked().feed(wire)


@pytest.mark.parametrize("wire", [b"", b"5\r\nab", b"2\r\nab\r\n", b"0\r\n"])
def test_an_unfinished_body_says_so(wire):
    framing = Chunked()
    framing.feed(wire)
    assert not framing.finish()


def test_a_counted_body():
    framing = Counted(5)
    assert framing.feed(b"abc") == b"abc"
    assert not framing.done
    assert not framing.finish()
    assert framing.feed(b"defg") == b"de"
    assert framing.done
    assert not framing.clean
    assert Counted(0).done


def test_a_body_to_the_end():
    framing = ToTheEnd()
    assert framing.feed(b"abc") == b"abc"
    assert not framing.done
    assert framing.finish()
    assert not framing.clean
