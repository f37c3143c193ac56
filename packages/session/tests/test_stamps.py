"""Ids and times."""

import re
import uuid

import pytest

from cantle_session.stamps import (
    check_session_id,
    file_stamp,
    iso_time,
    milliseconds,
    new_entry_id,
    new_session_id,
)


def test_a_session_id_is_a_uuid_of_version_7_that_holds_its_time():
    now = 1_796_071_073_008
    made = uuid.UUID(new_session_id(now))
    assert made.variant == uuid.RFC_4122
    assert made.version == 7
    assert made.int >> 80 == now


def test_session_ids_sort_by_age():
    ids = [new_session_id(now) for now in range(1_000, 1_100)]
    assert ids == sorted(ids)


def test_an_entry_id_is_eight_hexadecimal_digits():
    assert re.fullmatch(r"[0-9a-f]{8}", new_entry_id(set()))


def test_an_entry_id_that_is_taken_is_drawn_again():
    draws = [b"\0\0\0\1", b"\0\0\0\1", b"\0\0\0\2"]
    assert new_entry_id({"00000001"}, lambda size: draws.pop(0)) == "00000002"


def test_an_entry_id_is_a_whole_uuid_when_short_ones_keep_being_taken():
    made = new_entry_id({"07070707"}, lambda size: b"\7" * size)
    assert uuid.UUID(made).version == 4


@pytest.mark.parametrize("ms", [0, 999, 1_796_071_073_008, 1_767_225_600_000])
def test_a_time_is_read_as_it_was_written(ms):
    text = iso_time(ms)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", text)
    assert milliseconds(text) == ms


def test_other_writings_of_a_time_are_read_too():
    assert milliseconds("1970-01-01T01:00:00+01:00") == 0
    assert milliseconds("1970-01-01T00:00:01") == 1000
    assert milliseconds("yesterday") is None


def test_a_time_in_a_file_name_has_no_colon_and_no_dot():
    assert file_stamp("2026-01-31T23:59:59.123Z") == "2026-01-31T23-59-59-123Z"


@pytest.mark.parametrize("text", ["abc", "a.b", "a_b-c", "7", "x" * 200])
def test_an_id_of_ones_own_may_be_part_of_a_file_name(text):
    assert check_session_id(text) == text


@pytest.mark.parametrize("text", ["", ".", "..", "a/b", "a b", "-x", "x-", "ünï", "a\n", "x" * 201, "a\0"])
def test_an_id_that_could_leave_the_folder_is_refused(text):
    with pytest.raises(ValueError, match="cannot be a session id"):
        check_session_id(text)
