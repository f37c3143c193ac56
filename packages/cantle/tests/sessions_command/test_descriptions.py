"""What is said of an entry in one line, whatever it is."""

from __future__ import annotations

import pytest

from cantle.sessions_command.descriptions import describe, spoken_kind
from cantle_ai.codec import JsonObject
from cantle_session.entries import entry_from_json

PLACE: JsonObject = {"id": "0a", "parentId": None, "timestamp": "2026-01-01T00:00:00.000Z"}
CALL: JsonObject = {"type": "toolCall", "id": "c1", "name": "bash", "arguments": {"command": "ls"}}
ANSWER: JsonObject = {
    "role": "assistant",
    "api": "a",
    "provider": "p",
    "model": "m",
    "usage": {},
    "timestamp": 1,
}
USER: JsonObject = {"role": "user", "timestamp": 1}
RESULT: JsonObject = {"role": "toolResult", "toolCallId": "c1", "toolName": "bash", "timestamp": 1}
IMAGE: JsonObject = {"type": "image", "data": "AA==", "mimeType": "image/png"}


def text(words: str) -> JsonObject:
    return {"type": "text", "text": words}


MESSAGES: list[tuple[JsonObject, tuple[str, str]]] = [
    ({**USER, "content": "a\nb"}, ("user", "a b")),
    ({**USER, "content": [text("look"), IMAGE]}, ("user", "look [image/png]")),
    ({**ANSWER, "content": [text("Yes."), CALL], "stopReason": "toolUse"}, ("assistant", 'Yes. → bash {"command":"ls"}')),
    ({**ANSWER, "content": [{"type": "thinking", "thinking": "hm"}], "stopReason": "stop"}, ("assistant", "[thinking]")),
    ({**ANSWER, "content": [text("Cut")], "stopReason": "length"}, ("assistant", "Cut (length)")),
    ({**ANSWER, "content": [], "stopReason": "error", "errorMessage": "no"}, ("assistant", "(error: no)")),
    ({**RESULT, "content": [text("a.txt")], "isError": False}, ("result", "bash: a.txt")),
    ({**RESULT, "content": [text("no")], "isError": True}, ("result", "bash failed: no")),
    (
        {"role": "bashExecution", "command": "ls", "output": "a", "cancelled": False, "truncated": False, "timestamp": 1},
        ("shell", "$ ls"),
    ),
    ({"role": "custom", "customType": "todo", "content": "one", "display": True, "timestamp": 1}, ("note", "todo: one")),
    ({"role": "branchSummary", "summary": "Tried.", "fromId": "1", "timestamp": 1}, ("branch summary", "Tried.")),
    ({"role": "compactionSummary", "summary": "So far.", "tokensBefore": 9, "timestamp": 1}, ("compaction", "So far.")),
    ({"role": "system", "content": "Be good.", "timestamp": 1}, ("system", "Be good.")),
    ({"role": "\x1b[2J", "content": "x"}, ("\\x1b[2J", "x")),
]  # fmt: skip


@pytest.mark.parametrize(("message", "said"), MESSAGES)
def test_a_message(message: JsonObject, said: tuple[str, str]) -> None:
    assert describe(entry_from_json({"type": "message", **PLACE, "message": message})) == said


ENTRIES: list[tuple[JsonObject, tuple[str, str]]] = [
    ({"type": "custom_message", "customType": "todo", "content": "one", "display": True}, ("note", "todo: one")),
    (
        {"type": "compaction", "summary": "So\nfar.", "firstKeptEntryId": "0a", "tokensBefore": 1234},
        ("compaction", "of 1,234 tokens: So far."),
    ),
    ({"type": "branch_summary", "fromId": "1", "summary": "Tried."}, ("branch summary", "Tried.")),
    ({"type": "context_edit", "targetId": "1", "replacement": None}, ("context edit", "1 is left out")),
    ({"type": "context_edit", "targetId": "1", "replacement": {"content": "x"}}, ("context edit", "1 is replaced")),
    ({"type": "model_change", "provider": "p", "modelId": "m"}, ("model", "p/m")),
    ({"type": "thinking_level_change", "thinkingLevel": "high"}, ("thinking", "high")),
    ({"type": "session_info", "name": "Name"}, ("name", "Name")),
    ({"type": "session_info"}, ("name", "(taken away)")),
    ({"type": "label", "targetId": "1", "label": "here"}, ("label", "1: here")),
    ({"type": "label", "targetId": "1"}, ("label", "1: (taken away)")),
    ({"type": "custom", "customType": "state", "data": {"a": 1}}, ("custom", "state")),
    (
        {"type": "usage", "kind": "warm", "provider": "p", "model": "m", "usage": {"totalTokens": 1}},
        ("usage", "warm, p/m: 1 token"),
    ),
    (
        {"type": "usage", "kind": "compaction", "provider": "p", "model": "m", "usage": {}, "note": "It was refused"},
        ("usage", "compaction, p/m: 0 tokens (It was refused)"),
    ),
    ({"type": "to\ncome"}, ("to come", "(of a kind that is not known here)")),
]  # fmt: skip


@pytest.mark.parametrize(("entry", "said"), ENTRIES)
def test_an_entry(entry: JsonObject, said: tuple[str, str]) -> None:
    assert describe(entry_from_json({**PLACE, **entry})) == said


@pytest.mark.parametrize(
    ("kind", "word"),
    [("toolResult", "result"), ("tool", "result"), ("user", "user"), ("context_edit", "context edit")],
)
def test_a_kind_is_called_what_the_list_of_entries_calls_it(kind: str, word: str) -> None:
    assert spoken_kind(kind) == word
