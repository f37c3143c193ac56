"""Searching: the same words find the same entries in every store."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from cantle_ai.content import TextContent, ThinkingContent, ToolCall
from cantle_ai.messages import AssistantMessage, ToolResultMessage, UserMessage
from cantle_session.entries import MessageEntry
from cantle_session.lines import encode_entry
from cantle_session.listing import SessionInfo
from cantle_session.session import Session
from cantle_session.storage.folder_store import FolderStore
from cantle_session.storage.search import Query, index_words, said_by
from packages.session.tests.storage.backends import Place
from tests.support.samples import samples

SAYINGS = [
    "Please fix the login, it fails for user_name=ann.",
    "See auth_test.py and src/auth/login.PY",
    "Straße, ÉCOLE und naïve Größen; cafe\u0301",
    "数据库的索引很慢。ひらがな and ภาษาไทย",
    "a -> b, x == y; C++ and #42",
    "Дом, ΣΊΣΥΦΟΣ, İstanbul",
    "xfix relogin mylogin",
    "longword" * 30,
    "\x1b[31mred\x1b[0m \0 zero \ud800 half",
]


def found(query: str) -> list[int]:
    """The sayings that a query finds, by the one who decides."""
    asked = Query(query)
    return [at for at, text in enumerate(SAYINGS) if asked.find(_said(text)) is not None]


def _said(text: str) -> str:
    line = encode_entry(MessageEntry(id="a", parent_id=None, timestamp="", message=UserMessage(text)))
    said = said_by(line)
    assert said is not None
    return said.text


@pytest.mark.parametrize(
    ("query", "where"),
    [
        ("fix login", [0]),
        ("LOGIN FIX", [0]),
        ("log", [0, 1]),
        ('"log"', []),
        ('"the login"', [0]),
        ('"login the"', []),
        ("login the", [0]),
        ("ogin", []),
        ("xfix", [6]),
        ("auth_test.py", [1]),
        ("auth.test", [1]),
        ("auth test", [1]),
        ("test_auth", []),
        ("name=ann", [0]),
        ("login.py", [1]),
        ("straße", [2]),
        ("école", [2]),
        ("ecole", []),
        ("caf\u00e9", [2]),
        ("cafe\u0301", [2]),
        ("größe", [2]),
        ("数据", [3]),
        ("库", [3]),
        ("据数", []),
        ("索引 慢", [3]),
        ("ひら", [3]),
        ("ภาษา", [3]),
        ("ไทย", [3]),
        ("->", [4]),
        ("== c++", [4]),
        ("#42", [4]),
        ("дом", [5]),
        ("σίσυφο", [5]),
        ("longwordlong", [7]),
        ("longword" * 30, [7]),
        ("longword" * 29 + "x", []),
        ("red zero", [8]),
        ("stra", [2]),
        ("caf", [2]),
        ("na gr", [2]),
        ("", []),
        ("   ", []),
        ('""', []),
        ('"', []),
        ("nowhere", []),
    ],
)
def test_what_a_query_finds(query: str, where: list[int]) -> None:
    assert found(query) == where
    assert bool(Query(query)) == bool(query.strip(' "') or query == '"')


def test_an_index_knows_at_least_what_is_found() -> None:
    choice = random.Random(7)
    for _ in range(samples(3000, 300)):
        text = choice.choice(SAYINGS)
        start = choice.randrange(len(text))
        query = text[start : start + choice.randint(1, 12)]
        asked, said = Query(query), _said(text)
        if asked.find(said) is None:
            continue
        words = index_words(said)
        for term, begins in asked.index_terms():
            assert term.isascii() and term.isalnum()
            assert term in words or (begins and any(word.startswith(term) for word in words)), query


def entries(session: Session) -> dict[str, str]:
    """A session with everything that says something; the ids by kind."""
    made = {
        "user": session.append_message(UserMessage("user alpha")),
        "assistant": session.append_message(
            AssistantMessage(
                [
                    ThinkingContent("thinking alpha hidden"),
                    TextContent("assistant alpha"),
                    ToolCall("c1", "alphatool", {"path": "alpha/call.py", "deep": [{"x": ["alpha"]}]}),
                ],
                "api",
                "p",
                "m",
            )
        ),
        "tool": session.append_message(ToolResultMessage("c1", "read", [TextContent("result alpha\nline")])),
        "custom_message": session.append_custom_message("note", "custom alpha"),
        "session_info": session.append_session_info("name alpha"),
    }
    made["label"] = session.append_label(made["user"].id, "label alpha")
    made["compaction"] = session.append_compaction("summary alpha", made["user"].id, 10)
    made["branch_summary"] = session.append_branch_summary(made["user"].id, "branch alpha")
    made["context_edit"] = session.append_context_edit(made["user"].id, {"content": "edited alpha"})
    session.append_custom("alpha", {"alpha": "alpha"})
    session.append_model_change("alpha", "alpha")
    return {kind: entry.id for kind, entry in made.items()}


def test_everything_that_is_said_is_found_and_nothing_else(place: Place) -> None:
    with Session.create("/work", place.store) as session:
        ids = entries(session)
        location, session_id = session.location, session.id
    hits = place.store.search("alpha")
    assert {hit.kind: hit.entry_id for hit in hits} == ids
    assert [hit.entry_id for hit in hits] == list(ids.values())[::-1]
    assert {(hit.location, hit.id, hit.cwd, hit.name) for hit in hits} <= {
        (location, session_id, "/work", "name alpha"),
        (location, session_id, "/work", None),
    }
    assert all(hit.timestamp > 0 for hit in hits)
    assert [hit.kind for hit in place.store.search("call.py")] == ["assistant"]
    assert place.store.search("hidden") == []
    assert [hit.kind for hit in place.store.search("result line")] == ["tool"]


@pytest.mark.parametrize("query", ["log", "数据", "->", "auth_test.py", "straße", "longwordlong", '"', "the"])
def test_every_store_finds_what_the_query_says(place: Place, query: str) -> None:
    with Session.create("/work", place.store) as session:
        ids = [session.append_message(UserMessage(text)).id for text in SAYINGS]
    assert [hit.entry_id for hit in place.store.search(query)] == [ids[at] for at in found(query)][::-1]


def test_hits_come_from_the_latest_session_first_and_no_more_than_asked(place: Place) -> None:
    for cwd, stamp in [("/a", 1000), ("/b", 3000), ("/a", 2000)]:
        with Session.create(cwd, place.store) as session:
            for number in range(4):
                session.append_message(UserMessage(f"word {stamp} {number}", stamp + number))
    shown = [hit.excerpt for hit in place.store.search("word", limit=6)]
    assert shown == [f"word 3000 {number}" for number in (3, 2, 1, 0)] + ["word 2000 3", "word 2000 2"]
    assert [hit.excerpt for hit in place.store.search("word", cwd="/a", limit=1)] == ["word 2000 3"]
    assert len(place.store.search("word")) == 12
    assert place.store.search("word", limit=0) == []


def test_what_was_added_since_the_last_search_is_found(place: Place) -> None:
    with Session.create("/work", place.store) as session:
        session.append_message(UserMessage("first word"))
        assert len(place.store.search("word")) == 1
        for number in range(samples(400, 150)):
            session.append_message(UserMessage(f"word number {number}"))
            if number % 50 == 0:
                assert len(place.store.search("word", limit=1000)) == number + 2
        assert [hit.excerpt for hit in place.store.search("number 149")] == ["word number 149"]
    assert [hit.excerpt for hit in place.store.search('"first word"')] == ["first word"]


def test_a_spoilt_line_is_passed_over(place: Place) -> None:
    storage = place.session(b'{"type":"message","id":"a', b"\0\0word", b'["word"]', b"word")
    storage.close()
    with Session.open(storage.location) as session:
        entry = session.append_message(UserMessage("word"))
    assert [hit.entry_id for hit in place.store.search("word")] == [entry.id]


def test_an_entry_with_more_words_than_an_index_takes_is_found(place: Place) -> None:
    with Session.create("/work", place.store) as session:
        session.append_message(UserMessage(" ".join(f"w{number:x}" for number in range(100_000))))
        session.append_message(UserMessage("short"))
    assert len(place.store.search("w1869f")) == 1
    assert len(place.store.search("w1869f short")) == 0


def test_an_excerpt_is_one_line_without_control_characters(place: Place) -> None:
    text = "start " + "é " * 200 + "\x1b[31m before\n\n\tNEEDLE \x9b2J\u202e " + "after " * 200
    with Session.create("/work", place.store) as session:
        session.append_message(UserMessage(text))
    (hit,) = place.store.search("needle")
    assert hit.excerpt.isprintable()
    assert hit.excerpt.startswith("… ") and hit.excerpt.endswith(" …")
    assert len(hit.excerpt) < 250
    assert [hit.excerpt[start:stop] for start, stop in hit.marks] == ["NEEDLE"]
    (both,) = place.store.search("before needle")
    assert [both.excerpt[start:stop] for start, stop in both.marks] == ["before", "NEEDLE"]


def test_a_line_of_any_depth_is_looked_at_without_harm() -> None:
    deep = b'{"type":"message","id":"a","message":{"role":"user","content":' + b"[" * 900 + b"]" * 900 + b"}}"
    assert said_by(deep) is None
    assert said_by(b"[" * 100_000) is None
    assert said_by(b'{"type":"message","id":"a","message":{"role":3,"content":[3,{"type":"text"}]}}') is None


class _Vanishing(FolderStore):
    """Its files are gone as soon as they are listed."""

    def sessions(self, *, cwd: str | os.PathLike[str] | None = None) -> list[SessionInfo]:
        infos = super().sessions(cwd=cwd)
        for info in infos:
            assert info.path is not None
            info.path.unlink()
        return infos


def test_a_file_that_goes_away_in_a_search_is_passed_over(tmp_path: Path) -> None:
    with Session.create("/work", tmp_path) as session:
        session.append_message(UserMessage("word"))
    assert len(FolderStore(tmp_path).search("word")) == 1
    assert _Vanishing(tmp_path).search("word") == []
