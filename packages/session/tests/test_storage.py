"""What every storage promises: one table, run by each of them."""

import pytest

from cantle_session.lines import decode_header
from cantle_session.storage.jsonl import JsonlStorage
from cantle_session.storage.legacy import LegacyStorage
from cantle_session.storage.memory import MemoryStorage
from packages.session.tests.support import HEADER, encoded, write

HEADER_LINE = encoded(HEADER).strip()


def memory(tmp_path):
    return MemoryStorage([HEADER_LINE, b"one", b"two"])


def file(tmp_path):
    return JsonlStorage.open(write(tmp_path / "s.jsonl", HEADER_LINE, "one", "two"))


def new_file(tmp_path):
    storage = JsonlStorage.create(tmp_path / "a" / "s.jsonl")
    with storage.locked():
        storage.append([HEADER_LINE, b"one", b"two"])
    storage.close()
    return JsonlStorage.open(tmp_path / "a" / "s.jsonl")


def old_file(tmp_path):
    path = write(tmp_path / "s.jsonl", {**HEADER, "version": 2}, "one", "two")
    storage = JsonlStorage.open(path)
    lines = storage.pull()
    header = decode_header(next(lines)[1])
    assert header is not None
    return LegacyStorage(storage, header, lines)


@pytest.fixture(params=[memory, file, new_file, old_file])
def storage(request, tmp_path):
    made = request.param(tmp_path)
    yield made
    made.close()


def test_what_is_there_is_pulled_once(storage):
    assert list(storage.pull()) == [(0, HEADER_LINE), (1, b"one"), (2, b"two")]
    assert list(storage.pull()) == []


def test_what_is_kept_is_read_again_in_any_order(storage):
    list(storage.pull())
    with storage.locked():
        assert storage.append([b"three", b"four"]) == 3
    with storage.locked():
        assert storage.append([b"five" * 300_000]) == 5
    assert list(storage.read([4, 0, 3, 1, 2])) == [b"four", HEADER_LINE, b"three", b"one", b"two"]
    assert list(storage.read(range(1, 6))) == [b"one", b"two", b"three", b"four", b"five" * 300_000]
    assert list(storage.read([])) == []


def test_ones_own_lines_are_not_pulled(storage):
    list(storage.pull())
    with storage.locked():
        storage.append([b"three"])
    assert list(storage.pull()) == []


def test_it_can_be_closed_twice(storage):
    storage.close()
    storage.close()


def test_lines_of_another_are_pulled(tmp_path):
    one = file(tmp_path)
    list(one.pull())
    two = JsonlStorage.open(one.path)
    list(two.pull())
    with one.locked():
        one.append([b"three", b"", b"four"])
    assert list(two.pull()) == [(3, b"three"), (5, b"four")]
    assert list(two.read([5, 3, 1])) == [b"four", b"three", b"one"]
    assert two.shared()


@pytest.mark.parametrize("size", [1, 1 << 20, (1 << 20) - 1, (1 << 20) + 1, 3 << 20])
def test_lines_of_any_length_are_split_right(tmp_path, size):
    lines = [b"a" * size, b"b", b"c" * size]
    storage = JsonlStorage.open(write(tmp_path / "s.jsonl", *lines))
    assert [line for _, line in storage.pull()] == lines
    assert list(storage.read([2, 1, 0])) == lines[::-1]
