"""What a session, or several, came to."""

from cantle_session.session import Session
from cantle_session.stats import session_stats, total_stats
from packages.session.tests.support import HEADER, answer, chain, opened, said, user


def test_what_a_session_came_to_is_counted(tmp_path):
    call = {"type": "toolCall", "id": "c1", "name": "read", "arguments": {}}
    result = {"role": "toolResult", "toolCallId": "c1", "toolName": "read", "content": [], "timestamp": 1}
    usage = answer("x")["usage"]
    entries = chain(
        {"type": "model_change", "provider": "p", "modelId": "m1"},
        said(user("1")),
        said(answer("2", content=[call, {**call, "id": "c2"}, {**call, "id": "c3", "name": "bash"}])),
        said({**result, "isError": True}),
        said({**result, "toolCallId": "c2", "isError": False, "usage": usage}),
        said({**result, "toolCallId": "c3", "toolName": "bash", "isError": False}),
        said(answer("3", model="m2")),
        said(user("other"), parentId="00000001"),
        {"type": "usage", "kind": "k", "provider": "p", "model": "m1", "usage": usage},
        {
            "type": "compaction",
            "summary": "s",
            "firstKeptEntryId": "x",
            "tokensBefore": 1,
            "usage": usage,
        },
        {"type": "new_type"},
    )
    session = opened(tmp_path / "s.jsonl", HEADER, *entries)
    stats = session_stats(session)
    assert stats.entries == {
        "model_change": 1, "message": 7, "usage": 1, "compaction": 1, "new_type": 1
    }  # fmt: skip
    assert stats.messages == {"user": 2, "assistant": 2, "toolResult": 3}
    assert (stats.tool_calls, stats.tool_errors) == ({"read": 2, "bash": 1}, {"read": 1})
    assert {name: (share.answers, share.usage.total_tokens) for name, share in stats.models.items()} == {
        "p/m1": (1, 4),
        "p/m2": (1, 2),
    }
    assert {name: usage.total_tokens for name, usage in stats.others.items()} == {"tools": 2, "summaries": 2}
    assert stats.usage.total_tokens == session.usage().total_tokens == 10
    assert (stats.branches, stats.sessions) == (2, 1)
    assert (stats.first, stats.last) == (1767225600000, 1767225610000)
    both = total_stats([stats, stats])
    assert (both.sessions, both.messages["user"], both.tool_calls["read"], both.branches) == (2, 4, 4, 4)
    assert (both.models["p/m2"].answers, both.models["p/m2"].usage.total_tokens) == (2, 4)
    assert {name: usage.total_tokens for name, usage in both.others.items()} == {"tools": 4, "summaries": 4}
    assert (both.usage.total_tokens, both.first, both.last) == (20, stats.first, stats.last)


def test_nothing_is_counted_of_nothing(tmp_path):
    stats = session_stats(Session.in_memory("/work"))
    assert (stats.entries, stats.usage.total_tokens, stats.branches, stats.first) == ({}, 0, 0, None)
    assert total_stats([]).sessions == 0
    assert session_stats(opened(tmp_path / "s.jsonl", HEADER)) == stats
