"""Several processes and one session: following, taking turns, dying. Run by every store."""

from __future__ import annotations

import json
import random
import statistics
import time

import pytest

from cantle_ai.messages import UserMessage
from cantle_session.errors import SessionFileError
from cantle_session.lines import link_of
from cantle_session.session import Session
from packages.session.tests.storage.backends import Place, child, told
from packages.session.tests.support import texts
from tests.support.samples import samples

WRITER = """
import time
from cantle_ai.messages import UserMessage
from cantle_session.session import Session
with Session.open(location) as session:
    print("ready", flush=True)
    for text in map(str.strip, sys.stdin):
        entry = session.append_message(UserMessage(text))
        print(entry.id, time.monotonic(), flush=True)
"""


def started(place: Place) -> Session:
    session = Session.create("/work", place.store)
    session.append_message(UserMessage("hi"))
    return session


def test_an_entry_of_another_process_is_seen_within_100_ms(place: Place) -> None:
    session = started(place)
    writer = child(WRITER, session.location)
    assert told(writer) == "ready"
    assert writer.stdin is not None
    delays, seen = [], []
    for number in range(samples(50, 10)):
        writer.stdin.write(f"entry {number}\n")
        writer.stdin.flush()
        entry = next(session.follow(30))
        arrived = time.monotonic()
        written_id, written_at = told(writer).split()
        assert entry.id == written_id
        delays.append(arrived - float(written_at))
        seen.append(entry.id)
    # The median: one that a busy machine held up says nothing about the way that it goes.
    assert statistics.median(delays) < 0.1
    writer.communicate()
    assert [entry.id for entry in session.entries()][1:] == seen
    session.close()


def test_who_follows_sees_every_entry_once(place: Place) -> None:
    session = started(place)
    writer = child(WRITER, session.location)
    assert told(writer) == "ready"
    count = samples(500, 50)
    assert writer.stdin is not None
    writer.stdin.write("".join(f"{number}\n" for number in range(count)))
    writer.stdin.flush()
    seen = []
    for entry in session.follow(30):
        seen.append(entry.to_json()["message"]["content"])  # type: ignore[call-overload,index]
        if len(seen) == count:
            break
    assert seen == [str(number) for number in range(count)]
    writer.communicate()
    session.close()


def test_nothing_comes_when_nobody_writes(place: Place) -> None:
    session = started(place)
    assert list(session.follow(0.05)) == []
    other = started(place)  # another session of the store is none of ours
    other.append_message(UserMessage("elsewhere"))
    assert list(session.follow(0.05)) == []
    session.close()
    other.close()


CROWD = """
from cantle_ai.messages import UserMessage
from cantle_session.session import Session
name, count = sys.argv[2], int(sys.argv[3])
with Session.open(location) as session:
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(count):
        print(session.append_message(UserMessage(f"{name} {number}")).id, flush=True)
"""


@pytest.mark.parametrize("writers", range(2, samples(6, 3)))
def test_writers_of_one_session_lose_nothing(place: Place, writers: int) -> None:
    session = started(place)
    root, count = session.leaf_id, samples(200, 25)
    processes = [child(CROWD, session.location, f"w{number}", str(count)) for number in range(writers)]
    for process in processes:
        assert told(process) == "ready"
    ids = [process.communicate("go\n")[0].split() for process in processes]
    mine = [session.append_message(UserMessage(f"mine {number}")).id for number in range(3)]
    session.close()
    with Session.open(session.location) as again:
        links = {link.id: link.parent_id for link in again.links()}
        assert again.warnings == []
    assert len(links) == 1 + writers * count + len(mine)
    for chain in [*ids, mine]:
        assert [links[entry_id] for entry_id in chain] == [root, *chain[:-1]]


def test_writers_of_sessions_beside_one_another_lose_nothing(place: Place) -> None:
    sessions = [started(place) for _ in range(samples(3, 2))]
    count = samples(200, 25)
    processes = [child(CROWD, session.location, "w", str(count)) for session in sessions]
    for process in processes:
        assert told(process) == "ready"
    for session, process in zip(sessions, processes, strict=True):
        ids = process.communicate("go\n")[0].split()
        assert [entry.id for entry in session.pull()] == ids
        session.close()
    assert len(place.store.sessions()) == len(sessions)


MAKER = """
from cantle_ai.messages import UserMessage
from cantle_session.session import Session
print("ready", flush=True)
sys.stdin.readline()
with Session.create("/work", location) as session:
    session.append_message(UserMessage("made"))
    print(session.location)
"""


def test_processes_that_make_the_first_sessions_at_once_all_do(place: Place) -> None:
    processes = [child(MAKER, place.location) for _ in range(samples(4, 3))]
    for process in processes:
        assert told(process) == "ready"
    for process in processes:  # let them go before any of them is waited for
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    locations = {process.communicate()[0].strip() for process in processes}
    assert {info.location for info in place.store.sessions()} == locations
    assert len(locations) == len(processes)


SEARCHER = """
store = open_store(location)
print("ready", flush=True)
sys.stdin.readline()
print(len(store.search("word", limit=10_000)))
"""


def test_processes_that_search_at_once_all_find_everything(place: Place) -> None:
    count = 0
    for number in range(samples(40, 12)):
        with Session.create("/work", place.store) as session:
            for text in range(1 + 50 * (number % 3)):
                session.append_message(UserMessage(f"word {text}"))
                count += 1
    processes = [child(SEARCHER, place.location) for _ in range(samples(3, 2))]
    for process in processes:
        assert told(process) == "ready"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    assert [process.communicate()[0].strip() for process in processes] == [str(count)] * len(processes)


HOLDER = """
storage = open_storage(location)
with storage.locked():
    print("held", flush=True)
    sys.stdin.readline()
"""


def test_a_turn_that_is_not_given_back_is_waited_for_and_then_named(place: Place) -> None:
    session = started(place)
    session.close()
    place.shorten_wait()
    session = Session.open(session.location)
    leaf = session.leaf_id
    holder = child(HOLDER, session.location)
    assert told(holder) == "held"
    for _ in range(2):
        with pytest.raises(SessionFileError, match="locked; nothing was written, try again"):
            session.append_message(UserMessage("lost"))
    assert session.leaf_id == leaf
    with Session.open(session.location, reading=True) as reader:
        assert texts(reader) == ["hi"]
    holder.communicate("\n")
    session.append_message(UserMessage("on"))
    assert texts(session) == ["hi", "on"]
    session.close()


def test_the_death_of_who_has_the_turn_gives_it_back(place: Place) -> None:
    session = started(place)
    holder = child(HOLDER, session.location)
    assert told(holder) == "held"
    holder.kill()
    holder.communicate()
    session.append_message(UserMessage("on"))
    session.close()
    with Session.open(session.location) as again:
        assert (texts(again), again.warnings) == (["hi", "on"], [])


DOOMED = """
from cantle_ai.messages import UserMessage
from cantle_session.session import Session
with Session.open(location) as session:
    number = 0
    while True:
        number += 1
        session.append_message(UserMessage(f"{number} " + "x" * (number * 7919 % 30_000)))
        print(number, session.leaf_id, flush=True)
"""


@pytest.mark.parametrize("seed", range(samples(40, 1)))
def test_a_writer_that_is_killed_loses_nothing_that_was_kept(place: Place, seed: int) -> None:
    session = started(place)
    session.close()
    choice = random.Random(seed)
    process = child(DOOMED, session.location)
    wanted = choice.randint(1, 40)
    acknowledged = [told(process).split()[1] for _ in range(wanted)]
    process.kill()
    assert process.stdout is not None
    rest = process.stdout.read().splitlines(keepends=True)
    process.communicate()
    acknowledged += [line.split()[1] for line in rest if line.endswith("\n") and line.strip()]
    with Session.open(session.location) as again:
        ids = [entry.id for entry in again.entries()]
        assert ids[1 : 1 + len(acknowledged)] == acknowledged
        assert len(ids) <= len(acknowledged) + 2  # one may have been kept and not told
        if place.name != "postgres":  # a server notices a moment later that somebody is gone
            assert not [warning for warning in again.warnings if "another process" in str(warning)]
        on = again.append_message(UserMessage("on"))
        assert on.parent_id == ids[-1]
    with Session.open(session.location) as again:
        assert [entry.id for entry in again.entries()] == [*ids, on.id]
    assert place.store.search("on")[0].entry_id == on.id


def test_two_objects_and_a_process_agree_at_the_end(place: Place) -> None:
    session = started(place)
    other = Session.open(session.location)
    process = child(CROWD, session.location, "w", "20")
    assert told(process) == "ready"
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()
    choice = random.Random(1)
    rounds = samples(60, 20)
    for number in range(rounds):
        choice.choice([session, other]).append_message(UserMessage(f"{number}"))
    process.communicate()
    for each in (session, other):
        each.pull()
    everything = sorted(json.dumps(entry.to_json()) for entry in session.entries())
    assert everything == sorted(json.dumps(entry.to_json()) for entry in other.entries())
    assert len(everything) == rounds + 21
    storage = place.store.open(session.location, reading=True)
    links = [link_of(line) for _, line in storage.lines()]
    assert len({link.id for link in links if link is not None}) == rounds + 22  # with the header
    storage.close()
    session.close()
    other.close()
