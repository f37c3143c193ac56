"""The fuzz itself: each mutation changes an answer, and the values it puts in are the ones it has."""

import pytest

from packages.ai.tests.fuzz.mutations import FRAGMENTS, sse_wire

EVENTS = [b'data: {"id":"a","n":[1,{"text":"x"}]}\n\n', b'data: {"id":"b"}\n\n', b"data: [DONE]\n\n"]


@pytest.mark.parametrize(
    ("mutation", "expected"),
    [
        (("drop", 1, 0), [EVENTS[0], EVENTS[2]]),
        (("repeat", 0, 2), [EVENTS[0], EVENTS[1], EVENTS[0], EVENTS[2]]),
        (("move", 2, 0), [EVENTS[2], EVENTS[0], EVENTS[1]]),
        (("swap", 0, 1), [EVENTS[1], EVENTS[0], EVENTS[2]]),
        (("end", 0, 0), EVENTS[:1]),
        (("cut", 1, 7), [EVENTS[0], b"data: {"]),
        (("lose", 1, 0), [EVENTS[0], b"data: {}\n\n", EVENTS[2]]),
        (("copy", 1, 0), [EVENTS[0], b'data: {"id": "a"}\n\n', EVENTS[2]]),
        (("whole", 2, 0), [EVENTS[0], EVENTS[1], b"data: null\n\n"]),
        (("value", 1, 5), [EVENTS[0], b'data: {"id": NaN}\n\n', EVENTS[2]]),
        (("value", 2, 5), EVENTS),
    ],
)
def test_mutations(mutation, expected):
    assert sse_wire.apply(EVENTS, mutation) == expected


def test_each_fragment_comes_to_each_place():
    seen = {sse_wire.apply(EVENTS, ("value", 0, number))[0] for number in range(5 * len(FRAGMENTS))}
    assert len(seen) == 5 * len(FRAGMENTS)
