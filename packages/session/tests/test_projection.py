"""From a path to a context. The expectations are what the reference gives; test_reference.py asks it."""

import gc

import pytest

from cantle_ai.messages import UnknownMessage
from cantle_session import projection
from cantle_session.lines import decode_entry
from cantle_session.messages import BranchSummaryMessage, CompactionSummaryMessage, ExtensionMessage
from cantle_session.session import Session
from packages.session.tests.support import HEADER, answer, chain, opened, said, texts, user, write

A, B, C = "aaaaaaaa", "bbbbbbbb", "cccccccc"


def compaction(kept, summary="sum", **fields):
    return {"type": "compaction", "summary": summary, "firstKeptEntryId": kept, "tokensBefore": 5, **fields}


def edit(target, replacement):
    return {"type": "context_edit", "targetId": target, "replacement": replacement}


PATHS = {
    "messages": ([said(user("1")), said(answer("2"))], ["1", "2"]),
    "kept tail": (
        [
            said(user("1")),
            said(answer("2")),
            said(user("3"), id=A),
            said(answer("4")),
            compaction(A),
            said(user("5")),
        ],
        ["<compactionSummary> sum", "3", "4", "5"],
    ),
    "nothing kept": (
        [said(user("1")), compaction(C, id=C), said(user("2"))],
        ["<compactionSummary> sum", "2"],
    ),
    "kept entry missing": (
        [said(user("1")), compaction("deadbeef"), said(user("2"))],
        ["<compactionSummary> sum", "2"],
    ),
    "latest compaction": (
        [
            said(user("1")),
            said(answer("2"), id=A),
            compaction(A, "old"),
            said(user("3")),
            compaction(A, "new"),
            said(user("4")),
        ],
        ["<compactionSummary> new", "2", "3", "4"],
    ),
    "edits": (
        [
            said(user("1"), id=A),
            said(answer("2"), id=B),
            {"type": "custom_message", "id": C, "customType": "c", "content": "3", "display": True},
            edit(A, {"content": "one"}),
            edit(B, {"content": "two"}),
            edit(C, {"content": [{"type": "text", "text": "three"}]}),
        ],
        ["one", "two", "three"],
    ),
    "edited out": ([said(user("1"), id=A), said(user("2")), edit(A, None)], ["2"]),
    "latest edit": ([said(user("1"), id=A), edit(A, None), edit(A, {"content": "back"})], ["back"]),
    "edit before compaction": (
        [
            said(user("1"), id=A),
            said(user("2"), id=B),
            {"type": "branch_summary", "fromId": "x", "summary": "b"},
            edit(B, None),
            compaction(A),
        ],
        ["<compactionSummary> sum", "1", "<branchSummary> b"],
    ),
    "summary edited out": (
        [said(user("1")), said(user("2"), id=B), compaction(B, id=C), edit(C, None)],
        ["2"],
    ),
    "empty branch summary": (
        [
            said(user("1")),
            {"type": "branch_summary", "fromId": "x", "summary": ""},
            {"type": "branch_summary", "fromId": None, "summary": "b"},
        ],
        ["1", "<branchSummary> b"],
    ),
    "no messages of their own": (
        [
            {"type": "model_change", "provider": "p", "modelId": "m"},
            {"type": "thinking_level_change", "thinkingLevel": "low"},
            {"type": "session_info", "name": "n"},
            {"type": "custom", "customType": "c", "data": 1},
            {"type": "label", "targetId": A, "label": "l"},
            {"type": "usage", "kind": "k", "provider": "p", "model": "m", "usage": {}},
            {"type": "from_the_future", "message": user("no")},
            said(user("1")),
        ],
        ["1"],
    ),
    "failed answers stay": (
        [
            said(user("1")),
            said(answer("2", stopReason="error", errorMessage="no")),
            said(answer("", stopReason="aborted")),
        ],
        ["1", "2", ""],
    ),
}


@pytest.mark.parity("sessions.projection")
@pytest.mark.parametrize("name", PATHS)
def test_a_path_comes_to_these_messages(tmp_path, name):
    entries, expected = PATHS[name]
    assert texts(opened(tmp_path / "s.jsonl", HEADER, *chain(*entries))) == expected


def test_an_entry_on_another_branch_counts_for_nothing(tmp_path):
    entries = chain(
        said(user("1"), id=A),
        said(user("left"), id=B),
        {"type": "model_change", "provider": "left", "modelId": "left"},
        edit(A, None),
        compaction(B),
        said(user("2"), parentId=A),
    )
    session = opened(tmp_path / "s.jsonl", HEADER, *entries)
    assert texts(session) == ["1", "2"]
    assert session.context().model is None


def test_summaries_and_notes_keep_what_programs_need(tmp_path):
    session = opened(
        tmp_path / "s.jsonl",
        HEADER,
        *chain(
            compaction(C, id=C),
            {"type": "branch_summary", "fromId": A, "summary": "b"},
            {
                "type": "custom_message",
                "customType": "c",
                "content": "n",
                "display": False,
                "details": {"x": 1},
            },
        ),
    )
    assert session.context().messages == [
        CompactionSummaryMessage(summary="sum", tokens_before=5, timestamp=1767225600000),
        BranchSummaryMessage(summary="b", from_id=A, timestamp=1767225601000),
        ExtensionMessage(
            custom_type="c", content="n", display=False, details={"x": 1}, timestamp=1767225602000
        ),
    ]


def test_a_compaction_that_is_none_hides_nothing(tmp_path):
    entries = chain(said(user("1")), {"type": "compaction", "summary": 5}, said(user("2")))
    assert texts(opened(tmp_path / "s.jsonl", HEADER, *entries)) == ["1", "2"]


@pytest.mark.parity("sessions.system-messages-kept")
def test_system_messages_are_kept_and_never_sent(tmp_path):
    from cantle_agent.messages import convert_to_llm

    system = {"role": "system", "content": "", "sections": {"preamble": "x"}, "timestamp": 1}
    session = opened(tmp_path / "s.jsonl", HEADER, *chain(said(system), said(user("1"))))
    messages = session.context().messages
    assert isinstance(messages[0], UnknownMessage)
    assert [message.role for message in convert_to_llm(messages)] == ["user"]
    assert session.entries()[0].to_json()["message"] == system


MODEL = {"type": "model_change", "provider": "q", "modelId": "m0"}
LEVEL = {"type": "thinking_level_change", "thinkingLevel": "low"}


@pytest.mark.fault("F10")
@pytest.mark.parametrize(
    ("entries", "model", "level"),
    [
        ([said(user("1"))], None, None),
        ([said(user("1")), said(answer("2", "m1"))], ("p", "m1"), None),
        ([said(answer("1", "m1")), said(answer("2", "m2")), said(user("3"))], ("p", "m2"), None),
        ([MODEL, LEVEL, said(user("1"))], ("q", "m0"), "low"),
        ([MODEL, LEVEL, said(user("1")), said(answer("2", "m1")), said(user("3"))], ("p", "m1"), "low"),
        ([said(answer("1", "m1")), MODEL, said(user("2"))], ("q", "m0"), None),
        ([said(answer("1", "m1")), MODEL, {**MODEL, "modelId": "m9"}], ("q", "m9"), None),
        ([LEVEL, {**LEVEL, "thinkingLevel": "high"}, said(user("1"))], None, "high"),
        ([said(answer("1", "m1")), compaction(C, id=C), said(user("2"))], ("p", "m1"), None),
        ([said(answer("1", "m1"), id=A), edit(A, None)], ("p", "m1"), None),
        ([{"type": "model_change", "provider": "q"}, said(answer("1", "m1"))], ("p", "m1"), None),
    ],
)
@pytest.mark.parity("sessions.model-from-path")
def test_f10_the_path_tells_model_and_thinking_level(tmp_path, entries, model, level):
    context = opened(tmp_path / "s.jsonl", HEADER, *chain(*entries)).context()
    assert context.model == model
    assert context.thinking_level == level


def test_what_a_compaction_hides_is_not_decoded(tmp_path, monkeypatch):
    entries = [said(answer(str(index)) if index % 2 else user(str(index))) for index in range(500)]
    path = write(tmp_path / "s.jsonl", HEADER, *chain(*entries, compaction(f"{495:08x}"), said(user("end"))))
    session = Session.open(path)
    decoded = []
    monkeypatch.setattr(
        "cantle_session.history.decode_entry", lambda line: decoded.append(line) or decode_entry(line)
    )
    assert len(session.context().messages) == 7
    assert len(decoded) < 15


def test_collecting_garbage_is_switched_on_again_when_projecting_fails(tmp_path):
    def load(indexes):
        yield from ()
        raise OSError

    with pytest.raises(OSError):
        projection.project(projection.PathView(["message"], ["a"], load))
    assert gc.isenabled()


def test_no_entry_is_loaded_twice_and_far_ones_in_few_portions(tmp_path):
    session = opened(
        tmp_path / "s.jsonl", HEADER, *chain(*(said(user(str(number))) for number in range(3000)))
    )
    view = session._kept.view()
    asked = []

    def load(indexes):
        asked.append(list(indexes))
        return view.load(indexes)

    assert len(projection.project(projection.PathView(view.kinds, view.ids, load)).messages) == 3000
    loaded = [index for indexes in asked for index in indexes]
    assert sorted(loaded) == list(range(3000))
    asked.clear()
    session.append_compaction("sum", None, 5)
    view = session._kept.view()
    assert projection.project(projection.PathView(view.kinds, view.ids, load)).model is None
    assert len(list(filter(None, asked))) < 25
    assert sum(map(len, asked)) == 3001
