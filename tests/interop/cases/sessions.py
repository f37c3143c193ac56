"""Sessions that are continued, named, kept elsewhere or not at all."""

from __future__ import annotations

from tests.interop.case import Case, call, calls

_JSON = ("--mode", "json")
_TWO = ["One.", "Two."]
_WORK = [calls(call("write", {"path": "a.txt", "content": "one\n"})), "I wrote it.", "Two."]

CASES = [
    Case(name="session", words=("-p", "1"), answers=_WORK[:2]),
    Case(name="session-thinking", words=("--thinking", "high", "-p", "1"), model={"reasoning": True}),
    Case(name="continue", words=("-p", "1"), then=[("-p", "--continue", "2")], answers=_WORK),
    Case(name="continue-json", words=("-p", "1"), then=[(*_JSON, "-c", "2")], answers=_TWO),
    Case(name="continue-nothing", words=("-p", "-c", "1")),
    Case(
        name="continue-thrice",
        words=("-p", "1"),
        then=[("-p", "-c", "2"), ("-p", "-c", "3")],
        answers=[*_TWO, "Three."],
    ),
    Case(name="session-by-file", words=("-p", "1"), then=[("-p", "--session", "{file}", "2")], answers=_TWO),
    Case(name="session-by-id", words=("-p", "1"), then=[("-p", "--session", "{id}", "2")], answers=_TWO),
    Case(name="session-unknown-id", words=("-p", "--session", "ffffffff", "1"), answers=[]),
    Case(name="session-missing-file", words=("-p", "--session", "./none.jsonl", "1")),
    Case(name="no-session", words=("-p", "--no-session", "1")),
    Case(
        name="session-dir",
        words=("-p", "--session-dir", "sessions", "1"),
        then=[("-p", "--session-dir", "sessions", "-c", "2")],
        answers=_TWO,
    ),
    Case(name="name", words=("-p", "--name", "A name", "1")),
    Case(name="name-json", words=(*_JSON, "--name", "A name", "1")),
    Case(
        name="rename",
        words=("-p", "--name", "A name", "1"),
        then=[("-p", "-c", "--name", "Another", "2")],
        answers=_TWO,
    ),
    Case(
        name="other-level",
        words=("--thinking", "low", "-p", "1"),
        then=[("--thinking", "high", "-p", "-c", "2")],
        answers=_TWO,
        model={"reasoning": True},
    ),
    Case(
        name="other-model",
        choose_model=False,
        words=("--model", "loop/m", "-p", "1"),
        then=[("--model", "loop/n", "-p", "-c", "2"), ("-p", "-c", "3")],
        answers=[*_TWO, "Three."],
        provider={"models": [{"id": "m"}, {"id": "n"}]},
        prefix=False,
    ),
    Case(
        name="other-tools",
        words=("-p", "1"),
        then=[("-p", "-c", "--tools", "read", "2")],
        answers=_TWO,
        prefix=False,
    ),
    Case(name="failed-session", words=("-p", "1"), answers=[{"error": {"status": 400, "message": "odd"}}]),
    Case(
        name="after-a-failure",
        words=("-p", "1"),
        then=[("-p", "-c", "2")],
        answers=[{"error": {"status": 400, "message": "odd"}}, "Two."],
    ),
    Case(
        name="after-a-cut-answer",
        words=("-p", "1"),
        then=[("-p", "-c", "2")],
        answers=[{"content": "Cut sho", "stopReason": "length"}, "Two."],
    ),
]
