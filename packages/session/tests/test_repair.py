"""Every kind of bad input: opened as far as it is sound, with a warning that names the line; repaired into a copy."""

import json
import os
import subprocess
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cantle_ai.messages import UserMessage
from cantle_session.errors import SessionFileError
from cantle_session.listing import find_session, list_sessions
from cantle_session.repair import repair_session
from cantle_session.session import Session
from packages.session.tests.support import (
    HEADER,
    answer,
    chain,
    encoded,
    said,
    texts,
    user,
    write,
)
from packages.session.tests.test_legacy import V1, V2
from tests.support.samples import samples

ONE, TWO, THREE, FOUR = chain(said(user("1")), said(answer("2")), said(user("3")), said(answer("4")))
L1, L2, L3, L4 = (encoded(entry).strip() for entry in (ONE, TWO, THREE, FOUR))
ODD = b'{ "type":"new_type","id":"ffffffff" , "parentId":"00000003","n":1.50,"n":2,"s":"\\ud800" }'

# What is wrong; the lines; what opening them shows, and the lines that it names; what the copy shows.
CASES = {
    "a torn tail": ([HEADER, L1, L2, L3[:-20]], "12", [4], "12"),
    "a NUL block at the end": ([HEADER, L1, L2, b"\0" * 5000], "12", [4], "12"),
    "a NUL block in place of a line": ([HEADER, L1, b"\0" * len(L2), L3, L4], "34", [3, 4], "134"),
    "a NUL block in front of an entry": ([HEADER, L1, L2, b"\0" * 100 + L3, L4], "1234", [4], "1234"),
    "an entry glued to a torn one": ([HEADER, L1, L2[:-30] + L3, L4], "34", [3, 3], "134"),
    "two headers": ([HEADER, L1, L2, {**HEADER, "id": "other"}, L3], "123", [4], "123"),
    "two headers in front": ([HEADER, {**HEADER, "id": "other"}, L1, L2], "12", [2], "12"),
    "a missing parent": ([HEADER, L1, {**TWO, "parentId": "deadbeef"}, L3], "23", [3], "23"),
    "a foreign line": ([HEADER, L1, "hello", L2], "12", [3], "12"),
    "a foreign line in place of an entry": ([HEADER, L1, L2, "<xml/>", L4], "4", [4, 5], "124"),
    "a spoilt line that held nothing": ([HEADER, L1, "[]", L2], "12", [3], "12"),
    "a circle": (
        [HEADER, {**ONE, "parentId": TWO["id"]}, {**TWO, "parentId": ONE["id"]}, L3],
        "123",
        [2],
        "123",
    ),
    "its own parent": ([HEADER, {**ONE, "parentId": ONE["id"]}, L2], "12", [2], "12"),
    "an id twice": ([HEADER, L1, L2, {**THREE, "id": TWO["id"], "parentId": TWO["id"]}], "123", [4], "123"),
    "everything twice": ([HEADER, L1, L2, L1, L2], "12", [4, 5], "12"),
    "a version that is none": ([{**HEADER, "version": "three"}, L1, L2], "12", [1], "12"),
    "no version but null": ([{**HEADER, "version": None}, L1, L2], "12", [1], "12"),
}


def lines_with_problems(problems):
    return [problem.line for problem in problems]


@pytest.mark.parametrize(("lines", "shown", "named", "mended"), CASES.values(), ids=CASES.keys())
def test_it_opens_as_far_as_it_is_sound_and_a_sound_copy_is_made(tmp_path, lines, shown, named, mended):
    path = write(tmp_path / "s.jsonl", *lines)
    before = path.read_bytes()
    with Session.open(path) as session:
        assert "".join(texts(session)) == shown
        assert lines_with_problems(session.warnings) == named
        count = len(session.entries())
    repair = repair_session(path)
    assert lines_with_problems(repair.problems) == named
    assert repair.copy is not None and repair.copy.parent == tmp_path
    assert path.read_bytes() == before
    with Session.open(repair.copy) as copy:
        assert ("".join(texts(copy)), copy.warnings) == (mended, [])
        assert (copy.id, copy.header.parent_session) == (repair.id, str(path))
        assert len(copy.entries()) == repair.entries == count
        copy.append_message(UserMessage("on"))
    assert repair_session(repair.copy).copy is None
    assert path.read_bytes() == before
    with Session.open(path) as session:
        session.append_message(UserMessage("on"))
    assert path.read_bytes().startswith(before)


def test_a_sound_file_is_not_copied(tmp_path):
    path = write(tmp_path / "s.jsonl", HEADER, L1, L2, L3, L4, ODD)
    repair = repair_session(path)
    assert (repair.problems, repair.copy, repair.id, repair.entries) == ([], None, HEADER["id"], 5)
    assert list(tmp_path.iterdir()) == [path]


def test_sound_lines_are_copied_byte_for_byte(tmp_path):
    path = write(tmp_path / "s.jsonl", HEADER, L1, L2, "hello", L3, L4, ODD)
    repair = repair_session(path)
    assert repair.copy is not None
    assert repair.copy.read_bytes().split(b"\n")[1:] == [L1, L2, L3, L4, ODD, b""]


def test_both_are_listed_and_the_copy_is_found_by_its_id(tmp_path):
    path = write(tmp_path / f"2026-01-01T00-00-00-000Z_{HEADER['id']}.jsonl", HEADER, L1, L2, "hello")
    repair = repair_session(path)
    assert {info.path for info in list_sessions(tmp_path)} == {path, repair.copy}
    assert find_session(repair.id, tmp_path) == repair.copy
    assert find_session(str(HEADER["id"]), tmp_path) == path


def test_an_id_that_is_given_anew_is_also_named_anew(tmp_path):
    again = {**THREE, "id": TWO["id"], "parentId": TWO["id"]}
    edit, label, compaction = chain(
        {"type": "context_edit", "id": "e", "targetId": TWO["id"], "replacement": None},
        {"type": "label", "id": "l", "targetId": TWO["id"], "label": "x"},
        {"type": "compaction", "id": "c", "summary": "s", "firstKeptEntryId": TWO["id"], "tokensBefore": 1},
    )
    path = write(
        tmp_path / "s.jsonl", HEADER, L1, L2, again, {**edit, "parentId": TWO["id"]}, label, compaction
    )
    with Session.open(path) as session:
        before = texts(session)
    repair = repair_session(path)
    assert repair.copy is not None
    with Session.open(repair.copy) as copy:
        one, two, three, edit, label, compaction = (entry.to_json() for entry in copy.entries())
        assert (one["id"], two["id"], three["parentId"]) == (ONE["id"], TWO["id"], TWO["id"])
        assert three["id"] not in {one["id"], two["id"]}
        assert edit["parentId"] == edit["targetId"] == label["targetId"] == three["id"]
        assert compaction["firstKeptEntryId"] == three["id"]
        assert texts(copy) == before


@pytest.mark.parametrize(("lines", "version"), [(V1, 1), (V2, 2), ([{**HEADER, "version": 0}, L1, L2], 0)])
def test_an_old_version_becomes_the_current_one(tmp_path, lines, version):
    path = write(tmp_path / "s.jsonl", lines[0], *lines[1:], "foreign")
    with Session.open(path) as session:
        before = texts(session)
    repair = repair_session(path)
    assert [problem.line for problem in repair.problems] == [1, len(lines) + 1]
    assert f"version {version}" in repair.problems[0].text
    assert repair.copy is not None
    assert json.loads(repair.copy.read_bytes().split(b"\n")[0])["version"] == 3
    with Session.open(repair.copy) as copy:
        assert (texts(copy), copy.warnings) == (before, [])


def test_a_newer_version_stays_one(tmp_path):
    path = write(tmp_path / "s.jsonl", {**HEADER, "version": 9, "new": 1}, L1, "foreign")
    repair = repair_session(path)
    assert repair.copy is not None
    header = json.loads(repair.copy.read_bytes().split(b"\n")[0])
    assert (header["version"], header["new"]) == (9, 1)
    with Session.open(repair.copy) as copy:
        assert [str(warning) for warning in copy.warnings] == [
            "version 9 is newer than 3, the one that is known here"
        ]


def test_a_header_that_is_not_first_is_put_first(tmp_path):
    path = write(tmp_path / "s.jsonl", "hello", L1, HEADER, L2)
    with pytest.raises(SessionFileError, match="left as it is"):
        Session.open(path)
    repair = repair_session(path)
    assert [str(problem)[:6] for problem in repair.problems] == ["line 1", "line 3"]
    assert repair.copy is not None
    assert texts(Session.open(repair.copy)) == ["1", "2"]


def test_a_file_without_a_header_gets_one_if_the_directory_is_known(tmp_path):
    path = write(tmp_path / "s.jsonl", b"\0" * 200, L1, L2)
    with pytest.raises(SessionFileError, match="which working directory"):
        repair_session(path)
    assert list(tmp_path.iterdir()) == [path]
    repair = repair_session(path, cwd="/home/ann")
    assert repair.copy is not None
    with Session.open(repair.copy) as copy:
        assert (texts(copy), copy.header.cwd) == (["1", "2"], "/home/ann")
        assert copy.header.timestamp == ONE["timestamp"]


@pytest.mark.parametrize("content", [b"", b"hello\n", b"\0" * 5000, b"[]\n", os.urandom(5000)])
def test_a_file_with_nothing_of_a_session_is_refused(tmp_path, content):
    (tmp_path / "s.jsonl").write_bytes(content)
    with pytest.raises(SessionFileError, match="no line in it is a session's"):
        repair_session(tmp_path / "s.jsonl", cwd="/work")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [content]


def test_what_is_no_file_is_refused(tmp_path):
    with pytest.raises(SessionFileError, match="no such file"):
        repair_session(tmp_path / "none")
    with pytest.raises(SessionFileError, match="not a file"):
        repair_session(tmp_path)


def test_problems_are_bounded_and_their_lines_right(tmp_path):
    path = write(tmp_path / "s.jsonl", HEADER, "", L1, *["x" * 3000] * 5000, L2)
    started = time.process_time()
    repair = repair_session(path)
    assert time.process_time() - started < 5
    assert len(repair.problems) == 1001
    assert [problem.line for problem in repair.problems[:1000]] == list(range(4, 1004))
    assert str(repair.problems[-1]) == "there are 4000 more problems"


@pytest.mark.timeout(60)
def test_one_very_long_line_is_no_obstacle(tmp_path):
    size = samples(200_000_000, 20_000_000)
    for number, line in enumerate((b"x" * size, b"\0" * size, b'{"type":"message","id":"' + b"y" * size)):
        path = write(tmp_path / f"{number}.jsonl", HEADER, L1, line, L2)
        with Session.open(path) as session:
            assert (texts(session), lines_with_problems(session.warnings)) == (["1", "2"], [3])
        repair = repair_session(path)
        assert repair.copy is not None
        assert (lines_with_problems(repair.problems), repair.copy.stat().st_size < 5000) == ([3], True)
        path.unlink()
    path = write(tmp_path / "long.jsonl", HEADER, said(user("z" * size), id="a", parentId=None), "hello")
    repair = repair_session(path)
    assert repair.copy is not None
    assert repair.copy.stat().st_size > size
    assert [len(text) for text in texts(Session.open(repair.copy))] == [size]


LONG = chain(
    *[said(user("x" * 20_000))] * 60,
    {"type": "compaction", "summary": "sum", "firstKeptEntryId": f"{59:08x}", "tokensBefore": 5},
    said(user("behind")),
    said(answer("it")),
)


def last_line(entry_id, parent_id):
    place = {"type": "message", "id": entry_id, "parentId": parent_id}
    return encoded({**place, "message": user("last")}).strip()


LAST = last_line("last", LONG[-1]["id"])


@pytest.mark.parametrize(
    ("spoilt", "last"),
    [
        ([LAST[:-9]], "it"),
        ([b"\0" * 9000], "it"),
        ([b"hello", LAST], "last"),
        ([b"\0" * 9000 + LAST], "last"),
        ([HEADER, LAST], "last"),
        ([b"hello", last_line("last", "lost")], "last"),
        ([last_line(LONG[-1]["id"], LONG[-1]["id"])], "last"),
    ],
)
def test_a_session_that_opens_from_its_end_is_no_less_careful(tmp_path, spoilt, last):
    path = write(tmp_path / "s.jsonl", HEADER, *LONG, *spoilt)
    assert path.stat().st_size > 1 << 20
    with Session.open(path) as session:
        shown, told = texts(session), lines_with_problems(session.warnings)
        assert (shown[-1], len(LONG) + 2 in told or len(LONG) + 3 in told) == (last, True)
        session.entries()
        assert (texts(session), lines_with_problems(session.warnings)) == (shown, told)
        session.append_message(UserMessage("on"))
        assert texts(session) == [*shown, "on"]
    repair = repair_session(path)
    assert repair.copy is not None
    with Session.open(repair.copy) as copy:
        assert copy.warnings == []
        assert texts(copy)[-1] == "on"


UNREADABLE = """
import sys
from cantle_session.errors import SessionFileError
from cantle_session.imports import import_session
from cantle_session.listing import list_sessions
from cantle_session.repair import repair_session
from cantle_session.session import Session
path, folder = sys.argv[1:]
for do in (Session.open, repair_session, lambda path: import_session(path, folder)):
    try:
        do(path)
    except SessionFileError as problem:
        print(problem)
print(list_sessions(path.rpartition("/")[0]))
"""


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX systems")
def test_a_file_that_may_not_be_read_is_named_with_the_reason(open_folder):
    path = write(open_folder / "s.jsonl", HEADER, L1)
    path.chmod(0)
    somebody = 65534 if os.geteuid() == 0 else None  # the super-user may read everything
    done = subprocess.run(
        [sys.executable, "-c", UNREADABLE, path, open_folder / "place"],
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=50,
        user=somebody,
        group=somebody,
        extra_groups=None if somebody is None else [],
    )
    if "No module named" in done.stderr or "ermission denied: '/root" in done.stderr:
        pytest.skip("another user cannot read this checkout")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{path}: could not be opened: permission denied\n" * 3 + "[]\n"


SOUND = [encoded(entry).strip() for entry in chain(*[said(user(str(n))) for n in range(8)])]
PIECES = st.one_of(
    st.sampled_from(SOUND),
    st.sampled_from([L3[:-9], b"\0" * 9, b"hello", b"", encoded(HEADER).strip(), b"\0" + L3, L1 + L2, b"{}"]),
    st.builds(
        lambda number, parent: encoded(said(user("x"), id=f"{number:08x}", parentId=f"{parent:08x}")).strip(),
        st.integers(0, 8),
        st.integers(0, 9),
    ),
)


@settings(max_examples=samples(2000, 60), deadline=None)
@given(pieces=st.lists(PIECES, max_size=12), torn=st.integers(0, 30))
def test_whatever_a_file_is_made_of_its_copy_is_sound(tmp_path_factory, pieces, torn):
    folder = tmp_path_factory.mktemp("r")
    path = write(folder / "s.jsonl", HEADER, *pieces)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) - torn] if torn < len(content) - 300 else content)
    content = path.read_bytes()
    with Session.open(path, reading=True) as session:
        told, ids = len(session.warnings), [entry.id for entry in session.entries()]
    repair = repair_session(path)
    assert path.read_bytes() == content
    assert bool(repair.problems) == bool(told)
    assert repair.entries == len(ids)
    if repair.copy is not None:
        with Session.open(repair.copy, reading=True) as copy:
            assert copy.warnings == []
            made = [entry.id for entry in copy.entries()]
        assert [now for now, then in zip(made, ids, strict=True) if now != then and then not in made] == []
        assert repair_session(repair.copy).copy is None
