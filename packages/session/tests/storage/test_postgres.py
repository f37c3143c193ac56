"""What is special about a PostgreSQL server."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest

from cantle_ai.messages import UserMessage
from cantle_session.errors import SessionFileError
from cantle_session.session import Session
from cantle_session.storage import postgres
from cantle_session.storage.store import open_store
from packages.session.tests.storage.backends import child, told
from packages.session.tests.support import texts
from tests.support.postgres import PostgresServer, needs_postgres

MISSING = """
import sys
sys.modules["psycopg"] = None
from cantle_session.errors import SessionFileError
try:
    open_store(location).sessions()
except SessionFileError as error:
    print(error)
"""


def test_without_its_package_it_says_what_to_install() -> None:
    process = child(MISSING, "postgresql://ann:secret@db.example/notes")
    shown = process.communicate()[0]
    assert "pip install 'cantle[postgres]'" in shown
    assert "secret" not in shown and "postgresql://ann@db.example/notes" in shown


def test_what_is_behind_a_hash_is_no_part_of_a_stores_address() -> None:
    with pytest.raises(SessionFileError, match="%23") as caught:
        open_store("postgresql://ann:s3cret@db.example/notes#abc")
    assert "s3cret" not in str(caught.value)
    with pytest.raises(SessionFileError, match="names a store and no session"):
        Session.open("postgresql://db.example/notes#")


pytestmark_server = needs_postgres()


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[PostgresServer]:
    found: PostgresServer = request.getfixturevalue("postgres_server")
    yield found
    found.start()  # if a test stopped it and failed


@pytest.fixture
def session(server: PostgresServer) -> Iterator[Session]:
    made = Session.create("/work", server.fresh())
    made.append_message(UserMessage("hi"))
    yield made
    made.close()


@pytestmark_server
def test_what_libpq_does_not_take_is_named() -> None:
    with pytest.raises(SessionFileError, match="no address of a PostgreSQL database"):
        open_store("postgresql://[/x?nonsense=1").sessions()


@pytestmark_server
def test_a_server_that_is_not_there_is_named() -> None:
    started = time.monotonic()
    with pytest.raises(SessionFileError, match="could not be reached") as caught:
        open_store("postgresql://ann:s3cret@127.0.0.1:1/notes").sessions()
    assert "s3cret" not in str(caught.value) and "\n" not in str(caught.value)
    assert time.monotonic() - started < 10


@pytestmark_server
def test_a_shown_location_opens_the_session_again_in_this_process(server: PostgresServer) -> None:
    address = server.fresh().replace("cantle@", "cantle:s3cret@")
    with Session.create("/work", address) as session:
        session.append_message(UserMessage("hi"))
    assert "s3cret" not in session.location
    with Session.open(session.location) as again:
        assert texts(again) == ["hi"]
    (info,) = open_store(address).sessions()
    assert info.location == session.location


@pytestmark_server
def test_a_server_that_starts_anew_is_connected_to_again(server: PostgresServer, session: Session) -> None:
    other = Session.open(session.location)
    assert list(other.follow(0.01)) == []
    server.stop()
    with pytest.raises(SessionFileError, match=r"could not be reached|PostgreSQL says"):
        session.append_message(UserMessage("lost"))
    server.start()
    on = session.append_message(UserMessage("on"))
    assert texts(session) == ["hi", "on"]
    assert next(other.follow(30)).id == on.id
    later = session.append_message(UserMessage("later"))
    assert next(other.follow(30)).id == later.id
    third = Session.open(session.location)
    assert "another process" in str(third.warnings)  # who is there is known again, too
    third.close()
    other.close()


@pytestmark_server
def test_who_closed_a_session_is_not_taken_for_one_who_has_it_open(server: PostgresServer) -> None:
    import psycopg

    session = Session.create("/work", server.fresh())
    session.append_message(UserMessage("hi"))
    session.close()
    with psycopg.connect(server.address, autocommit=True) as connection:
        # From a connection that is there already, so at once.
        for _ in range(20):
            Session.open(session.location).close()
            locks = connection.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'").fetchone()
            assert locks == (0,)


@pytestmark_server
def test_a_connection_that_the_server_ends_is_made_again(server: PostgresServer, session: Session) -> None:
    import psycopg

    with psycopg.connect(server.address, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'cantle'"
        )
    session.append_message(UserMessage("on"))
    assert texts(session) == ["hi", "on"]


@pytestmark_server
def test_a_server_that_does_not_answer_is_not_waited_for_without_end(
    server: PostgresServer, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    monkeypatch.setattr(postgres, "_PATIENCE", 0.3)
    with psycopg.connect(server.address, autocommit=True) as connection:
        (found,) = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE application_name = 'cantle'"
        ).fetchall()
    process = int(found[0])
    os.kill(process, signal.SIGSTOP)
    try:
        assert texts(session) == ["hi"]  # by a new connection
        with Session.open(session.location) as other:
            assert list(other.follow(1)) == []  # who follows waits as long as he likes
    finally:
        os.kill(process, signal.SIGCONT)
    session.append_message(UserMessage("on"))
    assert texts(session) == ["hi", "on"]


@pytestmark_server
def test_an_append_that_is_not_answered_may_be_kept(
    server: PostgresServer, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    monkeypatch.setattr(postgres, "_PATIENCE", 0.3)
    with psycopg.connect(server.address, autocommit=True) as connection:
        with session._kept.storage.locked():
            (found,) = connection.execute(
                "SELECT pid FROM pg_stat_activity WHERE state = 'idle in transaction'"
            ).fetchall()
            process = int(found[0])
            os.kill(process, signal.SIGSTOP)
            try:
                with pytest.raises(SessionFileError, match=r"may be kept or not: nothing for 0\.3 seconds"):
                    session._kept.storage.append([b'{"type":"custom","id":"aa","parentId":null}'])
            finally:
                os.kill(process, signal.SIGCONT)
        while connection.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", (process,)).fetchall():
            pass  # it does what it was told, and notices that nobody is there any more
    session.append_message(UserMessage("on"))
    assert texts(session) == ["hi", "on"]
    with Session.open(session.location) as again:
        assert "aa" in [entry.id for entry in again.entries()]


HALF = """
storage = open_storage(location)
with storage.locked():
    print(flush=True)
    sys.stdin.readline()
    try:
        storage.append([b"half"])
    except Exception as problem:
        print(type(problem).__name__, flush=True)
"""


@pytestmark_server
def test_a_connection_that_ends_in_a_transaction_keeps_nothing(
    server: PostgresServer, session: Session
) -> None:
    import psycopg

    process = child(HALF, session.location)
    told(process)
    with psycopg.connect(server.address, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle in transaction'"
        )
    assert told(process, "go") == "SessionFileError"
    process.communicate()
    session.append_message(UserMessage("on"))
    with Session.open(session.location) as again:
        assert texts(again) == ["hi", "on"]
        assert all("session entry" not in str(warning) for warning in again.warnings)


@pytestmark_server
def test_schemas_of_one_database_know_nothing_of_each_other(server: PostgresServer) -> None:
    places = [server.fresh(), server.fresh()]
    sessions = [Session.create("/work", place, session_id="abc") for place in places]
    for number, session in enumerate(sessions):
        session.append_message(UserMessage(f"place {number}"))
    again = [Session.open(session.location) for session in sessions]
    assert [texts(session) for session in again] == [["place 0"], ["place 1"]]
    again[0].close()
    sessions[0].close()
    with Session.open(sessions[0].location) as alone:
        assert alone.warnings == []  # those of the other schema are others
    for session in (again[1], sessions[1]):
        session.close()


@pytestmark_server
@pytest.mark.parametrize("comment", ["Cantle sessions, format 2", "theirs"])
def test_tables_of_another_format_are_left_alone(server: PostgresServer, comment: str) -> None:
    import psycopg

    address = server.fresh()
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("CREATE TABLE cantle_sessions (a INTEGER)")
        connection.execute(f"COMMENT ON TABLE cantle_sessions IS '{comment}'")
    with pytest.raises(SessionFileError, match="newer version"):
        open_store(address).sessions()


@pytestmark_server
def test_tables_of_another_program_are_left_alone(server: PostgresServer) -> None:
    import psycopg

    address = server.fresh()
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("CREATE TABLE cantle_sessions (a INTEGER)")
    with pytest.raises(SessionFileError, match="already exists"):
        open_store(address).sessions()


@pytestmark_server
def test_who_may_not_make_tables_is_told(server: PostgresServer) -> None:
    import psycopg

    address = server.fresh()
    with psycopg.connect(server.address, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS guest")
        connection.execute("CREATE ROLE guest LOGIN")
    with pytest.raises(SessionFileError, match=r"no tables for sessions yet.*a role that may make them"):
        open_store(address.replace("cantle@", "guest@")).sessions()


@pytestmark_server
def test_who_may_only_read_lists_reads_and_searches(server: PostgresServer) -> None:
    address = server.fresh()
    for text in ("one plum", "two plums"):
        with Session.create("/work", address) as session:
            session.append_message(UserMessage(text))
    reading = open_store(
        address.replace("csearch_path", "cdefault_transaction_read_only%3Don%20-csearch_path")
    )
    assert len(reading.sessions()) == len(reading.search("plum")) == 2
    location = reading.sessions()[0].location
    with Session.open(location) as session:
        assert texts(session) == ["two plums"]
        with pytest.raises(SessionFileError, match="read-only"):
            session.append_message(UserMessage("lost"))
    assert len(open_store(address).search("plum")) == len(reading.search("plum")) == 2  # now with an index


@pytestmark_server
def test_a_session_that_is_forgotten_is_closed_without_a_word(server: PostgresServer) -> None:
    import gc

    address = server.fresh()
    session = Session.create("/work", address)
    session.append_message(UserMessage("hi"))
    location = session.location
    del session
    gc.collect()
    with Session.open(location) as again:
        assert (texts(again), again.warnings) == (["hi"], [])


def test_many_lines_are_sent_in_few_statements_of_limited_size() -> None:
    from cantle_session.storage.database import Head
    from cantle_session.storage.database_storage import _writing

    head = Head(5, 0, 0, b"{}")
    lines = [b"%d " % number + b"x" * (2_000_000 if number % 100 == 50 else 100) for number in range(1000)]
    *adding, _ = _writing(1, head, lines)
    assert len(adding) < 50
    written = [value for _, values in adding for value in values]
    assert written[::2] == [1 << 32 | number for number in range(5, 1005)]
    assert written[1::2] == lines
    for statement, values in adding:
        assert statement.count("?") == len(values)
        assert len(values) == 2 or sum(map(len, values[1::2])) <= 1 << 20  # type: ignore[arg-type]
