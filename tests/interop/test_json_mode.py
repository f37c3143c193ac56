"""JSON mode of both programs, for the same prompt and the same answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cantle_ai.testing.server.server import StrictServer
from tests.interop.conftest import Reference
from tests.interop.programs import MODEL
from tests.support.cli import Cli

pytestmark = [pytest.mark.reference, pytest.mark.slow]

ANSWERS = [
    {
        "chunk": 4,
        "content": [
            {"type": "text", "text": "I'll write it."},
            {"type": "toolCall", "name": "write", "arguments": {"path": "a.txt", "content": "one\n"}},
        ],
    },
    {"chunk": 4, "content": "I wrote a.txt."},
]


def both(cli: Cli, reference: Reference, answers: list[Any], *words: str) -> tuple[list[Any], list[Any]]:
    """The records of Cantle and of the reference."""
    with StrictServer(answers) as server:
        cli.configure(server.base_url)
        done = cli.run(*MODEL, "--mode", "json", "--no-session", *words)
        assert done.returncode == 0, done.stderr
    ours = [json.loads(line) for line in done.stdout.split("\n") if line]
    with StrictServer(answers) as server:
        reference.configure(server.base_url)
        theirs = reference.records("--no-session", *words)
    return ours, [record for record in theirs if not of_the_system(record)]


def of_the_system(record: dict[str, Any]) -> bool:
    """The reference tells its system messages as messages; Cantle has none."""
    return record.get("message", {}).get("role") == "system"


def outline(records: list[dict[str, Any]]) -> list[str]:
    """The kinds of records in order, a run of equal ones once."""
    kinds: list[str] = []
    for record in records:
        inner = record.get("assistantMessageEvent", {}).get("type", "")
        role = record.get("message", {}).get("role", "") if record["type"].startswith("message_") else ""
        kind = " ".join(word for word in (record["type"], role, inner) if word)
        if not kinds or kinds[-1] != kind:
            kinds.append(kind)
    return kinds


@pytest.mark.parity("events.run-order")
def test_the_same_events_come_in_the_same_order(cli: Cli, reference: Reference) -> None:
    ours, theirs = both(cli, reference, ANSWERS, "Write a.txt.")
    assert outline(ours) == outline(theirs)


@pytest.mark.parity("events.record-fields")
def test_records_have_the_same_fields(cli: Cli, reference: Reference) -> None:
    ours, theirs = both(cli, reference, ANSWERS, "Write a.txt.")
    assert fields(ours) == fields(theirs)


def fields(records: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Kind of record -> its fields, and those of the event inside it."""
    found: dict[str, set[str]] = {}
    for record in records:
        inner = record.get("assistantMessageEvent", {})
        kind = " ".join(word for word in (record["type"], inner.get("type", "")) if word)
        found.setdefault(kind, set()).update(record, (f".{name}" for name in inner))
    return {kind: sorted(names) for kind, names in found.items()}


@pytest.mark.parity("events.auto-retry")
def test_a_retry_is_told_in_the_same_way(cli: Cli, reference: Reference) -> None:
    settings = json.dumps({"retry": {"baseDelayMs": 10}})
    (cli.config / "settings.json").write_text(settings, "utf-8")
    (cli.home / "pi").mkdir()
    (cli.home / "pi" / "settings.json").write_text(settings, "utf-8")
    busy = {"error": {"status": 503, "message": "overloaded"}}
    ours, theirs = both(cli, reference, [busy, busy, "Here."], "Hi")
    assert outline(ours) == outline(theirs)
    assert list(map(told, ours)) == list(map(told, theirs))


def told(record: dict[str, Any]) -> dict[str, Any]:
    """What a record of a retry says, in words that are not a program's own."""
    if not record["type"].startswith(("auto_retry", "agent_")):
        return {"type": record["type"]}
    return {name: value for name, value in record.items() if name not in ("errorMessage", "messages")}


@pytest.mark.parity("tools.bash-progress")
def test_a_command_tells_what_it_has_printed_so_far(cli: Cli, reference: Reference) -> None:
    command = "echo one; sleep 0.7; echo two; sleep 0.7"
    call = {"type": "toolCall", "name": "bash", "arguments": {"command": command}, "id": "c1"}
    ours, theirs = both(cli, reference, [{"content": [call]}, "Done."], "Hi")
    assert all(update["partialResult"]["content"] for update in updates(ours))
    assert updates(theirs)[0]["partialResult"] == {"content": []}
    for records in (ours, theirs):
        told = [one for one in updates(records) if one["partialResult"]["content"]]
        assert set(told[0]) == {"type", "toolCallId", "toolName", "args", "partialResult"}
        texts = [one["partialResult"]["content"][0]["text"] for one in told]
        assert texts[0] == "one\n"
        assert texts[-1] in ("one\ntwo\n", "one\n")


def updates(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [record for record in records if record["type"] == "tool_execution_update"]
