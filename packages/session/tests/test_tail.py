"""A long session opens from its end; nothing that it says differs from what the whole of it says."""

import json
import random

import pytest

from cantle_ai.messages import UserMessage
from cantle_session.entries import CompactionEntry
from cantle_session.messages import agent_message_from_json
from cantle_session.session import Session
from cantle_session.storage.jsonl import JsonlStorage
from cantle_session.tail import LARGE
from packages.session.tests.support import HEADER, answer, encoded

FILLER = "x" * 2_000


def message(number, parent, role="user"):
    content = f"{number} {FILLER}"
    body = {"role": role, "content": content, "timestamp": number}
    if role == "assistant":
        body |= {"content": [{"type": "text", "text": content}], "api": "a", "provider": "p", "model": "m"}
        body |= {"usage": {}, "stopReason": "stop"}
    return entry("message", number, parent, message=body)


def entry(kind, number, parent, **fields):
    return {
        "type": kind,
        "id": f"{number:08x}",
        "parentId": parent,
        "timestamp": "2026-01-01T00:00:00.000Z",
        **fields,
    }


def long_session(path, *, levels=("high",), compact_at=(300, 590), count=800):
    """A file with `levels` set before the first message, and where `compact_at` says a compaction that keeps ten."""
    lines, last = [HEADER], None
    for number, level in enumerate(levels, 900_000):
        lines.append(entry("thinking_level_change", number, last, thinkingLevel=level))
        last = lines[-1]["id"]
    for number in range(count):
        lines.append(message(number, last, "assistant" if number % 2 else "user"))
        last = lines[-1]["id"]
        if number in compact_at:
            kept = f"{number - 9:08x}"
            fields = {"summary": f"up to {number}", "firstKeptEntryId": kept, "tokensBefore": 9}
            lines.append(entry("compaction", 500_000 + number, last, **fields))
            last = lines[-1]["id"]
    path.write_bytes(b"".join(map(encoded, lines)))
    assert path.stat().st_size > LARGE
    return path


def read_whole(session):
    """The context as the whole tree gives it."""
    list(session.links())
    return session.context()


def same(first, second):
    assert [m.to_json() for m in first.messages] == [m.to_json() for m in second.messages]
    assert (first.model, first.thinking_level) == (second.model, second.thinking_level)


def test_what_a_compaction_hides_is_not_read_to_go_on(tmp_path, monkeypatch):
    path = long_session(tmp_path / "s.jsonl")
    read = []
    real = JsonlStorage._read_at
    monkeypatch.setattr(
        JsonlStorage, "_read_at", lambda self, at, size: read.append(size) or real(self, at, size)
    )
    with Session.open(path) as session:
        assert sum(read) < path.stat().st_size / 2
        assert "the last 220 entries" in repr(session)


def test_what_an_entry_at_the_end_follows_is_known_without_the_whole(tmp_path):
    with Session.open(long_session(tmp_path / "s.jsonl")) as session:
        leaf = session.leaf_id
        assert leaf is not None
        added = session.append_custom("note")
        way = [added.id, leaf, *(f"{number:08x}" for number in range(798, 581, -1))]
        assert "the last 221 entries" in repr(session)
        parents = [session.parent(entry_id) for entry_id in way[:200]]
        assert "the last 221 entries" in repr(session)
        whole = read_whole(session)
        assert whole.messages
        assert parents == [session.parent(entry_id) for entry_id in way[:200]]
        assert parents[0] == leaf
        with pytest.raises(KeyError):
            session.parent("deadbeef")


@pytest.mark.parametrize("levels", [(), ("high",), ("low", "high")])
def test_the_end_says_what_the_whole_says(tmp_path, levels):
    with Session.open(long_session(tmp_path / "s.jsonl", levels=levels)) as session:
        short = session.context()
        assert short.thinking_level == (levels[-1] if levels else None)
        assert len(short.messages) == 220
        same(short, read_whole(session))


def test_a_level_chosen_later_is_that_of_its_own_branch(tmp_path):
    path = long_session(tmp_path / "s.jsonl")
    lines = path.read_bytes().split(b"\n")
    middle = len(lines) // 8
    other = entry("thinking_level_change", 950_000, json.loads(lines[middle - 1])["id"], thinkingLevel="low")
    path.write_bytes(b"\n".join([*lines[:middle], encoded(other).strip(), *lines[middle:]]))
    with Session.open(path) as session:
        assert session.context().thinking_level == "high"


@pytest.mark.parametrize("before", [None, "000dbba0"], ids=["of another root", "of another branch"])
def test_a_level_chosen_at_the_start_counts_on_its_own_branches(tmp_path, before):
    path = long_session(tmp_path / "s.jsonl", levels=("high",))
    lines = path.read_bytes().split(b"\n")
    begins = [entry("model_change", 900_000, None, provider="p", modelId="m0")]
    left = entry("thinking_level_change", 950_000, before, thinkingLevel="low")
    first = {**json.loads(lines[2]), "parentId": begins[0]["id"]}
    path.write_bytes(b"\n".join([lines[0], *map(encoded_line, [*begins, left, first]), *lines[3:]]))
    with Session.open(path) as session:
        short = session.context()
        assert short.thinking_level is None
        same(short, read_whole(session))


def encoded_line(raw):
    return encoded(raw).strip()


def test_appending_goes_on_from_the_end_and_ids_stay_unique(tmp_path):
    path = long_session(tmp_path / "s.jsonl")
    before = path.read_bytes()
    with Session.open(path) as session:
        last = session.leaf_id
        first = session.append_message(UserMessage("and now?"))
        second = session.append_message(agent_message_from_json(answer("this")))
        kept = session.append_compaction("all of it", first.id, 10)
        assert (first.parent_id, second.parent_id, session.leaf_id) == (last, first.id, kept.id)
        assert len(first.id) == 36
        same(session.context(), read_whole(session))
        assert session.append_message(UserMessage("more")).parent_id == kept.id
    assert path.read_bytes().startswith(before)
    with Session.open(path) as again:
        first_message = again.context().messages[0].to_json()
        assert first_message["summary"] == "all of it"
        assert len(again.context().messages) == 4


def test_a_branch_elsewhere_in_the_end_is_left_out(tmp_path):
    path = long_session(tmp_path / "s.jsonl")
    lines = path.read_bytes().splitlines()
    parent = json.loads(lines[-40])["id"]
    branch = [message(970_000, parent), message(970_001, f"{970_000:08x}", "assistant")]
    with path.open("ab") as file:
        file.write(b"".join(map(encoded, branch)))
    with Session.open(path) as session:
        short = session.context()
        assert len(short.messages) == 220 - 39 + 2
        same(short, read_whole(session))


def test_a_compaction_on_a_branch_that_was_left_does_not_count(tmp_path):
    path = long_session(tmp_path / "s.jsonl")
    last = json.loads(path.read_bytes().splitlines()[-1])["id"]
    left = entry(
        "compaction", 980_000, last, summary="left", firstKeptEntryId=f"{980_000:08x}", tokensBefore=1
    )
    with path.open("ab") as file:
        file.write(encoded(left) + encoded(message(980_001, last)))
    with Session.open(path) as session:
        short = session.context()
        assert short.messages[0].to_json()["summary"] == "up to 590"
        same(short, read_whole(session))


def test_a_compaction_that_keeps_nothing_ends_the_reading(tmp_path):
    path = long_session(tmp_path / "s.jsonl")
    with Session.open(path) as session:
        session.append_compaction("nothing kept", None, 10)
        session.append_message(UserMessage("on"))
    with Session.open(path) as session:
        assert "the last 2 entries" in repr(session)
        short = session.context()
        assert [m.role for m in short.messages] == ["compactionSummary", "user"]
        # Who answered last lies before the end that was read.
        assert (short.model, short.thinking_level) == (("p", "m"), "high")


def test_a_spoilt_line_in_the_end_has_the_whole_read_and_is_named(tmp_path):
    path = long_session(tmp_path / "s.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    spoilt = len(lines) - 5
    lines[spoilt] = b'{"type":"mess\n'
    path.write_bytes(b"".join(lines))
    with Session.open(path) as session:
        assert str(session.warnings[0]) == f"line {spoilt + 1}: is not a session entry; it was left as it was"


def test_what_others_add_is_a_branch_also_of_a_long_session(tmp_path):
    path = long_session(tmp_path / "s.jsonl")
    with Session.open(path) as first, Session.open(path) as second:
        theirs = second.append_message(UserMessage("theirs"))
        assert [entry.id for entry in first.pull()] == [theirs.id]
        mine = first.append_message(UserMessage("mine"))
        assert mine.parent_id == theirs.parent_id
        assert set(first.children(mine.parent_id)) == {mine.id, theirs.id}
        same(first.context(), read_whole(first))


def test_moving_in_a_long_session(tmp_path):
    with Session.open(long_session(tmp_path / "s.jsonl")) as session:
        session.branch(f"{299:08x}")
        assert len(session.context().messages) == 300
        reply = session.append_message(UserMessage("another way"))
        assert reply.parent_id == f"{299:08x}"
        session.reset_leaf()
        assert (session.leaf_id, session.context().messages) == (None, [])
        assert session.append_message(UserMessage("anew")).parent_id is None
        assert len(session.roots()) == 2
        assert session.common_ancestor(reply.id, f"{700:08x}") == f"{299:08x}"
        assert session.common_ancestor(session.leaf_id, reply.id) is None


def test_lines_are_found_backwards_and_by_what_they_hold_wherever_blocks_end(tmp_path):
    choose = random.Random(5)
    lines = [b'{"n":%d,"x":"%s"}' % (n, b"y" * choose.randrange(0, 3_000)) for n in range(700)]
    lines[100] = b'{"needle":1,"x":"' + b"z" * 600_000 + b'"}'
    lines[500] = b'{"x":"' + b"z" * 300_000 + b'","needle":2}'
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"\n".join(lines) + b"\n\n \n")
    storage = JsonlStorage.open(path)
    forward = list(storage.lines())
    assert [line for _, line in forward] == lines
    assert list(storage.backwards()) == forward[::-1]
    assert list(storage.containing(b"needle")) == [forward[500], forward[100]]
    keys = [key for key, _ in choose.sample(forward, 300)]
    assert list(storage.read(keys)) == [dict(forward)[key] for key in keys]
    assert [storage.number(key) for key, _ in forward] == list(range(700))
    storage.close()


def test_a_compaction_entry_of_the_end_reads_like_any_other(tmp_path):
    with Session.open(long_session(tmp_path / "s.jsonl")) as session:
        kept = session.projected()[0].entry
        assert isinstance(kept, CompactionEntry)
        assert session.entry(kept.id) == kept


def test_the_latest_answer_tells_the_level_and_nothing_older_is_looked_at(tmp_path, monkeypatch):
    path = long_session(tmp_path / "s.jsonl")
    with Session.open(path) as session:
        session.append_message(UserMessage("think less"))
        session.append_message(agent_message_from_json(answer("so", thinkingLevel="low")))
    monkeypatch.setattr(JsonlStorage, "containing", None)
    with Session.open(path) as session:
        short = session.context()
        assert short.thinking_level == "low"
        same(short, read_whole(session))
