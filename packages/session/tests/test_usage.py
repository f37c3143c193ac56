"""What a session took in all, whatever of it a model is still told."""

import pytest

from cantle_session.session import Session
from packages.session.tests.support import HEADER, answer, chain, opened, said, user

FIGURES = {"input": 10, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 11}
COST = {"input": 0.5, "output": 0.25, "cacheRead": 0, "cacheWrite": 0, "total": 0.75}
USAGE = {**FIGURES, "cost": COST}

RESULT = {
    "role": "toolResult",
    "toolCallId": "c",
    "toolName": "t",
    "content": [],
    "isError": False,
    "timestamp": 1,
}
COUNTED = {
    "an answer": said(answer("x", usage=USAGE)),
    "a failed answer": said(answer("x", usage=USAGE, stopReason="error", errorMessage="no")),
    "a tool's own work": said({**RESULT, "usage": USAGE}),
    "usage alone": {"type": "usage", "kind": "cache_warm", "provider": "p", "model": "m", "usage": USAGE},
    "usage of an unknown kind": {"type": "usage", "kind": "?", "provider": "p", "model": "m", "usage": USAGE},
    "a summary": {
        "type": "compaction",
        "summary": "s",
        "firstKeptEntryId": "x",
        "tokensBefore": 1,
        "usage": USAGE,
    },
    "a branch's summary": {"type": "branch_summary", "summary": "s", "fromId": None, "usage": USAGE},
}
NOT_COUNTED = [
    said(user("1")),
    said(RESULT),
    {"type": "branch_summary", "summary": "s", "fromId": None},
    {"type": "from_the_future", "usage": USAGE},
]


@pytest.mark.parity("sessions.usage-entry")
@pytest.mark.parametrize("kind", COUNTED)
def test_usage_counts_in_the_total_of(tmp_path, kind):
    with opened(tmp_path / "s.jsonl", HEADER, *chain(*NOT_COUNTED, COUNTED[kind])) as session:
        assert session.usage().to_json() == USAGE


def test_all_that_counts_is_added_up_also_what_is_hidden_or_on_another_branch(tmp_path):
    entries = chain(said(user("1")), *COUNTED.values())
    left = {**entries[1], "id": "ffffffff", "parentId": entries[0]["id"]}
    hidden = {
        "type": "context_edit",
        "id": "eeeeeeee",
        "parentId": entries[-1]["id"],
        "timestamp": entries[-1]["timestamp"],
        "targetId": entries[1]["id"],
        "replacement": None,
    }
    with opened(tmp_path / "s.jsonl", HEADER, entries[0], left, *entries[1:], hidden) as session:
        total = session.usage()
    assert total.total_tokens == 11 * (len(COUNTED) + 1)
    assert total.cost.total == 0.75 * (len(COUNTED) + 1)


def test_a_session_that_has_not_begun_took_nothing(tmp_path):
    with Session.create(tmp_path, tmp_path) as session:
        session.append_model_change("p", "m")
        assert session.usage().total_tokens == 0
