"""Files that were torn, glued, mixed up or written by others: read as far as they are sound, never changed."""

import json

import pytest

from cantle_ai.messages import UserMessage
from cantle_session.errors import SessionFileError
from cantle_session.session import Session
from packages.session.tests.support import (
    HEADER,
    answer,
    chain,
    encoded,
    entries_on_disk,
    file_of,
    opened,
    said,
    texts,
    user,
    write,
)


def lines_with_warnings(session):
    return [warning.line for warning in session.warnings]


def go_on(session):
    """Add a message, and see that it is there for the next one, with all that was there before."""
    path = session.file
    before, known = path.read_bytes(), texts(session)
    session.append_message(UserMessage("on"))
    assert path.read_bytes().startswith(before)
    again = Session.open(path)
    assert texts(again) == [*known, "on"]
    assert again.leaf_id == session.leaf_id
    session.close()


def test_a_tail_torn_at_any_byte_costs_only_itself(tmp_path):
    sound = encoded(HEADER, *chain(said(user("1")), said(answer("2"))))
    last = encoded(chain(said(user("1")), said(answer("2")), said(user("three \u2028 日本")))[-1])
    for cut in range(len(last) + 1):
        path = tmp_path / f"{cut}.jsonl"
        path.write_bytes(sound + last[:cut])
        session = Session.open(path)
        whole = cut >= len(last) - 1  # all but the line end
        assert texts(session) == ["1", "2", "three \u2028 日本"][: 3 if whole else 2]
        assert lines_with_warnings(session) == ([] if whole or cut == 0 else [4])
        assert path.read_bytes() == sound + last[:cut]
        go_on(session)


def test_a_line_behind_a_missing_line_end_starts_on_a_line_of_its_own(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_bytes(encoded(HEADER, *chain(said(user("1")))).rstrip(b"\n"))
    go_on(Session.open(path))
    assert len(entries_on_disk(path)) == 2


def test_a_torn_header_line_end_is_no_obstacle(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_bytes(encoded(HEADER).rstrip(b"\n"))
    go_on(Session.open(path))


@pytest.mark.parametrize(
    "foreign", ["hello", "[1]", "null", "7", '{"a":1}', b"\xff\xfe\0", b"\0" * 4096, "{" * 50_000]
)
def test_a_foreign_line_is_named_kept_and_left_out(tmp_path, foreign):
    one, two = chain(said(user("1")), said(user("2")))
    session = opened(tmp_path / "s.jsonl", HEADER, one, foreign, two)
    assert texts(session) == ["1", "2"]
    assert lines_with_warnings(session) == [3]
    assert "left as it was" in str(session.warnings[0])
    assert str(session.warnings[0]).startswith("line 3: ")
    go_on(session)


def test_blank_lines_are_nothing_special(tmp_path):
    one, two = chain(said(user("1")), said(user("2")))
    session = opened(tmp_path / "s.jsonl", "", HEADER, "", one, "  ", "\r", two, "")
    assert (texts(session), session.warnings) == (["1", "2"], [])
    go_on(session)


def test_line_ends_of_windows_and_a_byte_order_mark_are_read(tmp_path):
    path = tmp_path / "s.jsonl"
    content = encoded(HEADER, *chain(said(user("1")), said(answer("2")))).replace(b"\n", b"\r\n")
    path.write_bytes(b"\xef\xbb\xbf" + content)
    session = Session.open(path)
    assert (texts(session), session.warnings) == (["1", "2"], [])
    go_on(session)


@pytest.mark.fault("F01")
def test_f01_only_lf_ends_a_line(tmp_path):
    text = "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg"
    raw = chain({"type": "custom", "customType": text, "data": text}, said(user(text)))
    line = json.dumps(raw[1], ensure_ascii=False, separators=(",", ":"))
    session = opened(tmp_path / "s.jsonl", HEADER, raw[0], line)
    assert (texts(session), session.warnings) == ([text], [])
    go_on(session)


def test_a_block_of_nuls_after_a_power_cut(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_bytes(encoded(HEADER, *chain(said(user("1")))) + b"\0" * 5000)
    session = Session.open(path)
    assert (texts(session), lines_with_warnings(session)) == (["1"], [3])
    go_on(session)


def test_an_entry_glued_to_what_was_torn_is_still_read(tmp_path):
    one, two, three = (
        encoded(entry).strip() for entry in chain(said(user("1")), said(user("2")), said(user("3")))
    )
    torn = encoded(*chain(said(answer("lost")))).strip()[:-20]
    session = opened(tmp_path / "s.jsonl", HEADER, one, torn + two, b"\0" * 100 + three)
    assert (texts(session), lines_with_warnings(session)) == (["1", "2", "3"], [3, 4])
    go_on(session)


@pytest.mark.timeout(20)
def test_a_file_that_lost_its_line_ends_is_read_in_reasonable_time(tmp_path):
    entries = b" ".join(encoded(entry).strip() for entry in chain(*[said(user("x" * 100))] * 20_000))
    session = opened(tmp_path / "s.jsonl", HEADER, entries)
    assert (len(session.entries()), lines_with_warnings(session)) == (1, [2, 2])


@pytest.mark.fault("F04")
def test_f04_a_second_header_is_passed_over(tmp_path):
    one, two = chain(said(user("1")), said(user("2")))
    session = opened(tmp_path / "s.jsonl", HEADER, one, {**HEADER, "id": "second"}, two)
    assert (texts(session), session.id, lines_with_warnings(session)) == (["1", "2"], HEADER["id"], [3])
    go_on(session)


def test_a_file_written_twice_into_one_is_read(tmp_path):
    entries = chain(said(user("1")), said(answer("2")))
    session = opened(tmp_path / "s.jsonl", HEADER, *entries, HEADER, *entries)
    assert texts(session) == ["1", "2"]
    assert lines_with_warnings(session) == [4, 5, 6]
    go_on(session)


def test_a_missing_parent_makes_a_second_root(tmp_path):
    session = opened(
        tmp_path / "s.jsonl", HEADER, *chain(said(user("1")), said(user("2"), parentId="deadbeef"))
    )
    assert (texts(session), lines_with_warnings(session)) == (["2"], [3])
    assert "deadbeef" in str(session.warnings[0])
    go_on(session)


def test_entries_in_a_circle_are_cut_apart(tmp_path):
    session = opened(
        tmp_path / "s.jsonl",
        HEADER,
        *chain(
            said(user("1"), id="aaaaaaaa", parentId="bbbbbbbb"),
            said(user("2"), id="bbbbbbbb", parentId="aaaaaaaa"),
        ),
    )
    assert (texts(session), lines_with_warnings(session)) == (["1", "2"], [2])
    go_on(session)


def test_an_entry_that_is_its_own_parent_is_a_root(tmp_path):
    session = opened(
        tmp_path / "s.jsonl", HEADER, *chain(said(user("1"), id="aaaaaaaa", parentId="aaaaaaaa"))
    )
    assert (texts(session), lines_with_warnings(session)) == (["1"], [2])
    go_on(session)


def test_duplicate_ids_are_both_kept(tmp_path):
    session = opened(
        tmp_path / "s.jsonl",
        HEADER,
        *chain(
            said(user("1"), id="aaaaaaaa"), said(user("2"), id="aaaaaaaa", parentId=None), said(user("3"))
        ),
    )
    assert (texts(session), lines_with_warnings(session)) == (["2", "3"], [3])
    assert len(session.entries()) == 3
    go_on(session)


def test_entries_without_a_timestamp_count(tmp_path):
    entry = chain(said(user("1")))[0]
    del entry["timestamp"]
    session = opened(tmp_path / "s.jsonl", HEADER, entry)
    assert texts(session) == ["1"]
    go_on(session)


def test_a_newer_version_is_read_as_far_as_it_is_understood(tmp_path):
    session = opened(
        tmp_path / "s.jsonl",
        {**HEADER, "version": 4, "new": True},
        *chain(said(user("1")), {"type": "new_type", "x": 1}, said(user("2"))),
    )
    assert texts(session) == ["1", "2"]
    assert "version 4" in str(session.warnings[0])
    go_on(session)


def test_unknown_types_and_fields_stay_on_disk_byte_for_byte(tmp_path):
    lines = [
        b'{ "type" : "new_type", "id":"aaaaaaaa","parentId":null, "n": 1.50, "n": 2, "s":"\\u00e9\\ud800" }',
        b'{"type":"message","id":"bbbbbbbb","parentId":"aaaaaaaa","timestamp":"t","new":1e2,"message":{"role":"new"}}',
    ]
    path = write(tmp_path / "s.jsonl", HEADER, *lines)
    session = Session.open(path)
    assert [entry.type for entry in session.entries()] == ["new_type", "message"]
    go_on(session)
    assert path.read_bytes().split(b"\n")[1:3] == lines


@pytest.mark.parametrize("depth", [100, *range(850, 1010, 10), 100_000])
def test_json_nested_more_or_less_too_deeply_costs_only_its_line(tmp_path, depth):
    deep = b'{"type":"custom","id":"0a0b0c0d","parentId":"00000000","timestamp":"t","customType":"c","data":%b%b}'
    one, two = chain(said(user("1")), said(user("2")))
    session = opened(tmp_path / "s.jsonl", HEADER, one, deep % (b"[" * depth, b"]" * depth), two)
    assert len(session.entries()) in {2, 3}
    assert texts(session) == ["1", "2"]
    go_on(session)


def test_a_line_that_is_overwritten_in_place_is_left_out_and_named(tmp_path):
    session = opened(tmp_path / "s.jsonl", HEADER, *chain(said(user("1")), said(user("2"))))
    content = file_of(session).read_bytes()
    file_of(session).write_bytes(content.replace(b'"content":"1"', b"xxxxxxxxxxxxx"))
    assert texts(session) == ["2"]
    assert lines_with_warnings(session) == [2]
    assert [entry.id for entry in session.entries()] == ["00000000", "00000001"]


@pytest.mark.timeout(30)
def test_a_huge_line_is_read(tmp_path):
    text = "x" * 30_000_000
    session = opened(tmp_path / "s.jsonl", HEADER, *chain(said(user(text)), said(user("2"))))
    assert [len(each) for each in texts(session)] == [len(text), 1]
    session.append_message(UserMessage("on"))


def test_warnings_are_bounded(tmp_path):
    session = opened(tmp_path / "s.jsonl", HEADER, *["x"] * 5000, *chain(said(user("1"))))
    assert texts(session) == ["1"]
    assert len(session.warnings) == 101
    assert "more warnings" in str(session.warnings[-1])


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n\n",
        b"not a session\n",
        b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 10,
        b'{"name":"package"}\n',
        b"[]",
        b'{"type":"message","id":"aaaaaaaa","parentId":null}\n',
        b'{"type":"session"}\n',
        b"\0" * 100,
        b'{"type":"session","id":"a"',
    ],
)
def test_a_file_that_is_no_session_is_refused_and_left_as_it_is(tmp_path, content):
    path = tmp_path / "foreign.jsonl"
    path.write_bytes(content)
    with pytest.raises(SessionFileError) as caught:
        Session.open(path)
    assert str(path) in str(caught.value)
    assert "left as it is" in caught.value.text
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_no_file_is_refused(tmp_path):
    with pytest.raises(SessionFileError, match="not a file"):
        Session.open(tmp_path)
    with pytest.raises(SessionFileError, match="no such file"):
        Session.open(tmp_path / "none.jsonl")
