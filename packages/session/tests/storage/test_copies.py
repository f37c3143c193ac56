"""Sessions that go from one kind of place to another, and are copied within one: the same lines everywhere."""

import pytest

from cantle_ai.messages import UserMessage
from cantle_session.errors import SessionFileError
from cantle_session.forks import clone_session, copy_session, fork_session
from cantle_session.imports import import_session
from cantle_session.moves import move_session
from cantle_session.session import Session
from cantle_session.storage.store import open_storage
from packages.session.tests.storage.backends import Place
from packages.session.tests.support import HEADER, answer, chain, encoded, said, texts, user, write
from packages.session.tests.test_entries import ENTRIES

ODD = b'{ "type":"new_type" ,"id":"ffffffff","parentId":null,"n":1.50,"n":2,"s":"\\ud800\\u0000" }'
LINES = [*chain(*[fields for fields, _ in ENTRIES]), ODD, "foreign \x00", b"\xff\xfe", b'{"type":"mess']


def lines_at(location: str) -> list[bytes]:
    storage = open_storage(location)
    try:
        return [line for _, line in storage.lines()]
    finally:
        storage.close()


def test_what_is_taken_in_and_out_is_the_same_byte_for_byte(place: Place, tmp_path) -> None:
    source = write(tmp_path / "s.jsonl", HEADER, *LINES)
    imported = import_session(source, place.location)
    assert lines_at(imported.location) == encoded(HEADER, *LINES).split(b"\n")[:-1]
    back = import_session(imported.location, tmp_path / "back")
    assert (tmp_path / "back" / back.location).read_bytes() == source.read_bytes()
    again = import_session(imported.location, place.location, new_id=True)
    assert lines_at(again.location)[1:] == lines_at(imported.location)[1:]
    assert {info.id for info in place.store.sessions()} == {imported.id, again.id}


@pytest.mark.fault("F03")
def test_f03_no_session_is_replaced_by_one_that_is_taken_in(place: Place, tmp_path) -> None:
    source = write(tmp_path / "s.jsonl", HEADER, *LINES)
    imported = import_session(source, place.location)
    with Session.open(imported.location) as session:
        session.append_message(UserMessage("mine"))
    before = lines_at(imported.location)
    for do in (import_session, move_session):
        with pytest.raises(SessionFileError, match="is there already"):
            do(source, place.location)
    assert lines_at(imported.location) == before
    assert source.exists()


def test_what_is_no_session_leaves_nothing(place: Place, tmp_path) -> None:
    source = write(tmp_path / "s.jsonl", "hello")
    for do in (import_session, move_session):
        with pytest.raises(SessionFileError, match="not the header"):
            do(source, place.location)
    assert place.store.sessions() == []


def test_a_session_moves_in_within_and_out_again(place: Place, tmp_path) -> None:
    source = write(tmp_path / "s.jsonl", HEADER, *LINES)
    content = source.read_bytes()
    there = move_session(source, place.location)
    assert not source.exists()
    there = move_session(there, place.location, cwd="/elsewhere")
    assert [info.cwd for info in place.store.sessions()] == ["/elsewhere"]
    assert lines_at(there)[1:] == content.split(b"\n")[1:-1]
    with Session.open(there) as session:
        session.append_message(UserMessage("on"))
        if place.name != "folder":
            with pytest.raises(SessionFileError, match="is open, here or in another process"):
                move_session(there, tmp_path / "back")
    back = move_session(there, tmp_path / "back", cwd="/work")
    assert place.store.sessions() == []
    assert (tmp_path / "back" / back).read_bytes().startswith(content)


def test_forks_clones_and_copies_come_from_everywhere_and_go_everywhere(place: Place, tmp_path) -> None:
    entries = chain(said(user("1")), said(answer("2")), said(user("3")), said(user("x"), parentId="00000000"))
    there = import_session(write(tmp_path / "s.jsonl", HEADER, *entries), place.location).location
    with Session.open(there) as session:
        for target in (place.location, str(tmp_path / "files")):
            with fork_session(session, "00000002", target).session as fork:
                assert (texts(fork), fork.header.parent_session) == (["1", "2"], there)
            with clone_session(session, target) as clone:
                assert texts(clone) == ["1", "x"]
                clone.append_message(UserMessage("on"))
            with copy_session(session, target, cwd="/elsewhere") as copy:
                assert [entry.to_json() for entry in copy.entries()] == entries
            with fork_session(session, "00000000", target).session as fork:
                assert not fork.saved
                fork.append_message(UserMessage("anew"))
                with Session.open(fork.location, reading=True) as again:
                    assert texts(again) == ["anew"]
    assert len(place.store.sessions()) == 5
