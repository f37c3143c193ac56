"""What every storage of lines promises: one table, run by each of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from cantle_session.errors import SessionFileError
from cantle_session.lines import decode_header, encode_header
from cantle_session.session import Session
from cantle_session.storage.jsonl import JsonlStorage
from cantle_session.storage.legacy import LegacyStorage
from cantle_session.storage.memory import MemoryStorage
from cantle_session.storage.port import Storage
from cantle_session.storage.store import open_storage
from packages.session.tests.storage.backends import HEADER_LINE, SERVER, Place, header
from packages.session.tests.support import HEADER, write

LINES = [b"one", b"two"]
Keyed: TypeAlias = list[tuple[int, bytes]]


def _legacy(path: Path) -> LegacyStorage:
    storage = JsonlStorage.open(write(path, {**HEADER, "version": 2}, *LINES))
    lines = storage.lines()
    old = decode_header(next(lines)[1])
    assert old is not None
    return LegacyStorage(storage, old, lines)


@pytest.fixture(params=["memory", "legacy", "folder", "sqlite", SERVER])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Storage]:
    """A session of three lines, the first of which is a header."""
    made: Storage
    if request.param == "memory":
        made = MemoryStorage([HEADER_LINE, *LINES])
    elif request.param == "legacy":
        made = _legacy(tmp_path / "s.jsonl")
    else:
        if request.param == "postgres":
            location = request.getfixturevalue("postgres_server").fresh()
        else:
            location = str(tmp_path / "s") if request.param == "folder" else f"sqlite:{tmp_path / 's.db'}"
        place = Place(request.param, location, lambda: None)
        made = place.session(*LINES)
        place.store.close()
    yield made
    made.close()


def added(storage: Storage, *lines: bytes) -> list[int]:
    with storage.locked():
        return list(storage.append(lines))


def texts(keyed: Iterator[tuple[int, bytes]]) -> list[bytes]:
    return [line for _, line in keyed]


def test_lines_come_in_order_with_keys_that_grow(storage: Storage) -> None:
    lines = list(storage.lines())
    assert decode_header(lines[0][1]) is not None
    assert texts(iter(lines[1:])) == LINES
    keys = [key for key, _ in lines]
    assert keys == sorted(set(keys))
    assert list(storage.backwards()) == lines[::-1]
    assert list(storage.lines()) == lines


def test_nothing_is_news_to_who_has_just_opened_it(storage: Storage) -> None:
    assert list(storage.pull()) == []


def test_what_is_kept_is_read_again_in_any_order(storage: Storage) -> None:
    three, four = added(storage, b"three", b"four")
    (five,) = added(storage, b"five" * 300_000)
    lines = list(storage.lines())
    assert texts(iter(lines[-3:])) == [b"three", b"four", b"five" * 300_000]
    keys = [key for key, _ in lines]
    assert keys[-3:] == [three, four, five]
    assert list(storage.read([four, keys[0], three, keys[1], five])) == [
        b"four",
        lines[0][1],
        b"three",
        b"one",
        b"five" * 300_000,
    ]
    assert list(storage.read(keys)) == texts(iter(lines))
    assert list(storage.read([])) == []
    assert list(storage.backwards()) == lines[::-1]


def test_a_key_is_the_number_of_a_line_for_people(storage: Storage) -> None:
    added(storage, b"three", b"", b"five")
    numbers = [storage.number(key) for key, _ in storage.lines()]
    assert numbers == [0, 1, 2, 3, 5]
    assert [storage.number(key) for key, _ in storage.backwards()] == numbers[::-1]


def test_blank_lines_are_left_out(storage: Storage) -> None:
    added(storage, b"", b"  ", b"three", b"")
    assert texts(storage.lines())[1:] == [*LINES, b"three"]
    assert texts(storage.backwards())[:-1] == [b"three", *LINES[::-1]]


def test_ones_own_lines_are_no_news(storage: Storage) -> None:
    added(storage, b"three")
    assert list(storage.pull()) == []
    added(storage, b"four")
    assert list(storage.pull()) == []
    assert texts(storage.lines())[1:] == [*LINES, b"three", b"four"]


def test_lines_that_hold_some_bytes_are_found_from_the_end(storage: Storage) -> None:
    added(storage, b'{"type":"label"}', b"x" * 3_000_000, b'a{"type":"label"}b', b"three")
    found = list(storage.containing(b'"label"'))
    assert texts(iter(found)) == [b'a{"type":"label"}b', b'{"type":"label"}']
    assert list(storage.read([key for key, _ in found])) == texts(iter(found))
    assert texts(storage.containing(b"o"))[:2] == [b"two", b"one"]  # then comes the header
    assert list(storage.containing(b"nowhere")) == []


@pytest.mark.parametrize(
    "line",
    [
        b"\0\0\0",
        b"\xff\xfe",
        "\u2028 \u2029 \x85 é 数".encode(),
        b"\r",
        b"'; DROP TABLE cantle_lines; -- %s ? $1",
        bytes(byte for byte in range(256) if byte != 10),
    ],
)
def test_a_line_is_bytes(storage: Storage, line: bytes) -> None:
    (key,) = added(storage, b"." + line + b".")
    assert list(storage.read([key])) == [b"." + line + b"."]
    assert texts(storage.lines())[-1] == b"." + line + b"."
    assert next(storage.containing(line))[0] == key


@pytest.mark.parametrize("size", [1, (1 << 18) - 1, 1 << 18, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3 << 20])
def test_lines_of_any_length_stay_apart(storage: Storage, size: int) -> None:
    lines = [b"a" * size, b"b", b"c" * size]
    keys = added(storage, *lines)
    assert texts(storage.lines())[-3:] == lines
    assert texts(storage.backwards())[:3] == lines[::-1]
    assert list(storage.read(keys[::-1])) == lines[::-1]


def test_many_lines_come_back_whole(storage: Storage) -> None:
    lines = [b"line %d " % number + b"x" * (number % 700) for number in range(5000)]
    added(storage, *lines)
    assert texts(storage.lines())[3:] == lines
    assert texts(storage.backwards())[:5000] == lines[::-1]
    assert storage.size() >= sum(map(len, lines))
    keys = [key for key, _ in storage.lines()]
    assert list(storage.read(keys[::7])) == texts(storage.lines())[::7]


def test_whoever_stops_early_harms_nothing(storage: Storage) -> None:
    added(storage, *[b"x" * 100] * 1000)
    for lines in (storage.lines(), storage.backwards(), storage.containing(b"x")):
        next(lines)
    added(storage, b"last")
    assert next(storage.backwards())[1] == b"last"


def test_nobody_is_waited_for_longer_than_asked(storage: Storage) -> None:
    added(storage, b"three")
    assert storage.wait(0) is False
    assert storage.wait(0.05) is False
    assert storage.shared() is False


def test_it_can_be_closed_twice(storage: Storage) -> None:
    storage.close()
    storage.close()


# --- what has to be kept somewhere for


def test_a_new_session_is_there_with_its_first_lines(place: Place) -> None:
    new = header(cwd="/work")
    storage = place.store.create(new)
    assert storage.location
    assert list(storage.lines()) == list(storage.backwards()) == list(storage.pull()) == []
    assert (storage.size(), storage.wait(0), place.store.sessions()) == (0, False, [])
    with storage.locked():
        keys = storage.append([encode_header(new), b"one"])
    assert texts(storage.lines()) == [encode_header(new), b"one"]
    assert list(storage.read(keys)) == [encode_header(new), b"one"]
    again = open_storage(storage.location)
    assert again.location == storage.location
    assert list(again.lines()) == list(storage.lines())
    assert [info.location for info in place.store.sessions()] == [storage.location]
    storage.close()
    again.close()


def test_a_session_that_was_never_written_leaves_nothing(place: Place, tmp_path: Path) -> None:
    storage = place.store.create(header())
    storage.close()
    assert place.store.sessions() == []
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(SessionFileError, match="closed"):
        storage.append([HEADER_LINE])


def test_no_session_is_written_over_another(place: Place) -> None:
    new = header()
    first, second = place.store.create(new), place.store.create(new)
    first.append([encode_header(new), b"first"])
    with pytest.raises(SessionFileError, match="already; it was left alone"):
        second.append([encode_header(new), b"second"])
    assert texts(place.store.open(first.location).lines()) == [encode_header(new), b"first"]
    first.close()
    second.close()


def test_what_others_add_is_pulled_once_and_between_ones_own(place: Place) -> None:
    one = place.session(*LINES)
    two = place.store.open(one.location)
    added(one, b"three", b"", b"four")
    assert two.wait(0)
    news = list(two.pull())
    assert texts(iter(news)) == [b"three", b"four"]
    assert list(two.read([key for key, _ in news])) == [b"three", b"four"]
    assert (list(two.pull()), list(one.pull()), two.wait(0)) == ([], [], False)
    added(one, b"five")
    with two.locked():
        assert texts(two.pull()) == [b"five"]
        two.append([b"six"])
    assert texts(one.pull()) == [b"six"]
    assert list(one.lines()) == list(two.lines())
    one.close()
    two.close()


def test_lines_that_were_not_pulled_before_ones_own_are_pulled_later(place: Place) -> None:
    one = place.session(*LINES)
    two = place.store.open(one.location)
    added(one, b"three")
    added(two, b"four")
    added(one, b"five")
    added(two, b"six")
    assert sorted(texts(two.lines())[1:]) in (
        sorted([*LINES, b"four", b"six"]),
        sorted([*LINES, b"three", b"four", b"five", b"six"]),
    )
    assert texts(two.pull()) == [b"three", b"five"]
    assert texts(one.pull()) == [b"four", b"six"]
    assert (list(one.pull()), list(two.pull())) == ([], [])
    assert texts(two.lines())[3:] == texts(one.lines())[3:] == [b"three", b"four", b"five", b"six"]
    one.close()
    two.close()


def test_who_comes_second_knows(place: Place) -> None:
    one = place.session()
    assert not one.shared()
    reader = place.store.open(one.location, reading=True)
    two = place.store.open(one.location)
    assert (reader.shared(), two.shared()) == (False, True)
    one.close()
    two.close()
    three = place.store.open(one.location)
    assert not three.shared()
    three.close()
    reader.close()


def test_a_closed_one_says_so(place: Place) -> None:
    storage = place.session(*LINES)
    added(storage, b"three")
    storage.close()
    with pytest.raises(SessionFileError, match="closed; open it again"):
        added(storage, b"lost")
    with pytest.raises(SessionFileError, match="closed; open it again"):
        list(storage.read([0]))
    assert texts(open_storage(storage.location).lines())[1:] == [*LINES, b"three"]


def test_a_failed_turn_leaves_no_lock(place: Place) -> None:
    one = place.session()
    two = place.store.open(one.location)
    place.shorten_wait()
    with pytest.raises(ZeroDivisionError), one.locked():
        raise ZeroDivisionError
    added(two, b"on")
    assert texts(one.pull()) == [b"on"]
    one.close()
    two.close()


def test_what_another_deleted_is_not_written_to(place: Place) -> None:
    kept = place.session(*LINES)
    kept.close()
    storage = place.store.open(kept.location, reading=True)  # who deletes is not told of it
    key = next(storage.lines())[0]
    place.store.delete(storage.location)
    for _ in range(2):
        with pytest.raises(SessionFileError, match=r"deleted|not there any more"):
            added(storage, b"lost")
    if place.is_database:
        with pytest.raises(SessionFileError, match="deleted"):
            list(storage.read([key]))
        with pytest.raises(SessionFileError, match="deleted"):
            storage.wait(0)
    assert place.store.sessions() == []
    storage.close()


@pytest.mark.parametrize("there", [True, False])
def test_what_is_not_there_is_named(place: Place, there: bool) -> None:
    if there:
        place.session().close()
    missing = f"{place.location}#none" if place.is_database else f"{place.location}/none.jsonl"
    with pytest.raises(SessionFileError, match="none"):
        place.store.open(missing)
    with pytest.raises(SessionFileError, match="none"):
        Session.open(missing)
