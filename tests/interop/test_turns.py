"""Both programs take turns with one session file that holds all that a session can hold."""

from __future__ import annotations

import base64
import itertools
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from cantle_ai.testing.server.server import StrictServer
from tests.interop.case import Case, call, calls, text
from tests.interop.cases.inputs import png
from tests.interop.programs import MODEL, Program, cantle, reference
from tests.support.reference import reference_program

pytestmark = [pytest.mark.reference, pytest.mark.slow]

DOT = png(4, 4)

CASE = Case(
    name="turns",
    provider={
        "compat": {"supportsReasoningEffort": True},
        "models": [
            {"id": name, "reasoning": True, "input": ["text", "image"], "contextWindow": 100_000}
            for name in ("m", "other")
        ],
    },
)


_NOTE = re.compile(r"cantle: .* another model were sent as text; the session keeps everything\.\n")


@dataclass
class Turns:
    """One project, one session file, and a program for each turn."""

    cantle: Program
    reference: Program
    project: Path
    file: Path | None = None
    conversations: list[list[str]] = field(default_factory=list)

    def take(self, program: Program, answers: Sequence[Any], *words: str) -> list[dict[str, Any]]:
        """Go on with the session, or begin it. Returns the entries that the turn wrote."""
        before = self.file.read_bytes() if self.file else b""
        chosen = ["--session", str(self.file)] if self.file else []
        with StrictServer(answers, prefix=False) as server:
            program.configure(server.base_url_for, CASE)
            step = program.run([*chosen, *words], self.project, {})
            assert step.code == 0, step.stderr
            assert not _NOTE.sub("", step.stderr), "nothing is said but what another model is told otherwise"
            server.assert_clean()
            self.conversations.append(conversation(json.loads(server.requests[-1].body)["messages"]))
        if self.file is None:
            (self.file,) = program.sessions()
        after = self.file.read_bytes()
        assert after.startswith(before), "what was written before must stay, byte for byte"
        assert after.endswith(b"\n")
        return [json.loads(line) for line in after[len(before) :].decode().split("\n") if line]

    def add(self, *entries: dict[str, Any]) -> None:
        """Write entries behind the last one, as an extension or another program would."""
        assert self.file is not None
        lines = self.file.read_text("utf-8").split("\n")
        parent = json.loads(lines[-2])["id"]
        for entry in entries:
            line = {**entry, "parentId": parent, "timestamp": "2026-01-02T03:04:05.006Z"}
            with self.file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
            parent = entry["id"]


@pytest.fixture
def turns(tmp_path: Path) -> Turns:
    project = tmp_path / "project"
    project.mkdir()
    (project / "dot.png").write_bytes(DOT)
    (project / "notes.md").write_text("milk\n", "utf-8")
    ours, theirs = cantle(tmp_path / "ours"), reference(tmp_path / "theirs", reference_program())
    return Turns(ours, theirs, project)


ADDED: list[dict[str, Any]] = [
    {"type": "label", "id": "a0000001", "targetId": "a0000002", "label": "a mark"},
    {"type": "custom", "id": "a0000002", "customType": "my-ext", "data": {"ä": [1, 2.50, None]}},
    {
        "type": "custom_message",
        "id": "a0000003",
        "customType": "my-ext",
        "content": "A note for the model.",
        "display": True,
    },
    {
        "type": "usage",
        "id": "a0000004",
        "kind": "cache_warm",
        "provider": "loop",
        "model": "m",
        "usage": {
            "input": 1,
            "output": 0,
            "cacheRead": 5,
            "cacheWrite": 0,
            "totalTokens": 6,
            "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0},
        },
    },
]


def conversation(messages: list[dict[str, Any]]) -> list[str]:
    """What a request says beside the system prompt, a line for each part."""
    said: list[str] = []
    for message in messages:
        role = message["role"]
        if role in ("system", "developer"):
            continue
        if thought := message.get("reasoning_content"):
            said.append(f"{role} thinks: {thought}")
        content: Any = message["content"] or []
        parts: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for part in parts:
            said.append(f"{role}: {part['text'] if part['type'] == 'text' else part['image_url']['url']}")
        for one in message.get("tool_calls", []):
            said.append(f"{role} calls {one['id']}: {one['function']['name']} {one['function']['arguments']}")
    return said


@pytest.mark.parity("sessions.interop")
@pytest.mark.parametrize("first", ["cantle", "reference"])
def test_they_go_on_with_each_others_work_twice_in_turn(turns: Turns, first: str) -> None:
    one, two = (turns.cantle, turns.reference) if first == "cantle" else (turns.reference, turns.cantle)
    begin = [
        calls(
            {"type": "thinking", "thinking": "I look first."},
            text("I'll read it."),
            call("read", {"path": "notes.md"}, 1),
        ),
        calls(call("write", {"path": "a.txt", "content": "ä\n"}, 2), call("bash", {"command": "exit 3"}, 3)),
        "It is a dot, and a list.",
    ]
    wrote = turns.take(one, begin, *MODEL, "--name", "A job", "--thinking", "low", "-p", "@dot.png", "See?")
    assert kinds(wrote) >= {"session", "model_change", "thinking_level_change", "session_info", "message"}
    turns.add(*ADDED)

    more = [
        calls({"type": "thinking", "thinking": "Hm."}, call("bash", {"command": "cat a.txt"}, 4)),
        "An ä.",
    ]
    wrote = turns.take(two, more, "--thinking", "high", "-p", "What is in a.txt?")
    assert entry_of(wrote, "thinking_level_change")["thinkingLevel"] == "high"
    turns.add({"type": "mystery", "id": "b0000001", "of": {"a": "later version"}})

    wrote = turns.take(
        one, ["Bye."], "--provider", "loop", "--model", "other", "--name", "Another", "-p", "3"
    )
    assert [entry["message"]["model"] for entry in messages(wrote, "assistant")] == ["other"]
    assert entry_of(wrote, "session_info")["name"] == "Another"

    wrote = turns.take(two, [calls(call("read", {"path": "a.txt"}, 5)), "Done."], "-p", "4")
    assert [entry["message"]["model"] for entry in messages(wrote, "assistant")] == ["other", "other"]

    check_conversations(turns, first == "cantle")
    check_tree(turns)


def without_thoughts(said: list[str]) -> list[str]:
    """A conversation without what was thought in it, in whichever form."""
    told = [line.replace("I look first.\n\n", "") for line in said]
    return [line for line in told if " thinks: " not in line and line != "assistant: Hm."]


def check_conversations(turns: Turns, cantle_was_first: bool) -> None:
    """Each request goes on from the one before it, whoever sent that, and all of it is there at the end."""
    first, second, third, last = turns.conversations
    assert first[2] == "assistant thinks: I look first."
    assert second[: len(first)] == first
    # Cantle tells another model what was thought, as text; the reference leaves it out.
    ours = third if cantle_was_first else last
    assert {"assistant: I look first.\n\nI'll read it.", "assistant: Hm."} < set(ours)
    second, third, last = map(without_thoughts, (second, third, last))
    assert third[: len(second)] == second
    assert last[: len(third)] == third
    assert last[0].endswith("See?")
    assert last[1] == "user: data:image/png;base64," + base64.b64encode(DOT).decode()
    for line in [
        "assistant: I'll read it.",
        'assistant calls call_1: read {"path":"notes.md"}',
        "tool: milk\n",
        'assistant calls call_2: write {"path":"a.txt","content":"ä\\n"}',
        "assistant: It is a dot, and a list.",
        "user: A note for the model.",
        "user: What is in a.txt?",
        "tool: ä\n",
        "assistant: An ä.",
        "user: 3",
        "assistant: Bye.",
        "user: 4",
    ]:
        assert last.count(line) == 1 + (line == "tool: ä\n"), line


def check_tree(turns: Turns) -> None:
    """One branch without a gap: each entry follows one that stands before it."""
    assert turns.file is not None
    lines = turns.file.read_text("utf-8").split("\n")
    entries = [json.loads(line) for line in lines if line]
    for before, entry in itertools.pairwise(entries[1:]):
        assert entry["parentId"] == before["id"], entry


def kinds(entries: list[dict[str, Any]]) -> set[str]:
    return {entry["type"] for entry in entries}


def entry_of(entries: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    (found,) = [entry for entry in entries if entry["type"] == kind]
    return found


def messages(entries: list[dict[str, Any]], role: str) -> list[dict[str, Any]]:
    return [entry for entry in entries if entry["type"] == "message" and entry["message"]["role"] == role]
