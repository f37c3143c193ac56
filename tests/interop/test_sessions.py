"""Each program opens, continues and leaves intact what the other wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cantle_ai.testing.server.server import StrictServer
from tests.interop.conftest import Reference
from tests.interop.programs import MODEL
from tests.support.cli import Cli

pytestmark = [pytest.mark.reference, pytest.mark.slow]

WORK: list[Any] = [
    {"content": [{"type": "toolCall", "name": "write", "arguments": {"path": "a.txt", "content": "one\n"}}]},
    "I wrote a.txt.",
]


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").split("\n") if line]


def sent(server: StrictServer) -> list[str]:
    """Role and text of what the last request sent, the system prompt left out."""
    messages = json.loads(server.requests[-1].body)["messages"]
    return [f"{m['role']}: {text_of(m)}" for m in messages if m["role"] not in ("system", "developer")]


def text_of(message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content or ""


@pytest.mark.parity("sessions.interop")
def test_the_reference_continues_what_cantle_wrote(cli: Cli, reference: Reference) -> None:
    with StrictServer(WORK) as server:
        cli.configure(server.base_url)
        assert cli.run(*MODEL, "-p", "Write a.txt.").returncode == 0
    (file,) = cli.sessions()
    before = file.read_bytes()

    with StrictServer(["Yes, it has one line."]) as server:
        reference.configure(server.base_url)
        assert "Yes, it has one line." in reference.run("--session", str(file), "-p", "Is it right?")
        conversation = sent(server)

    assert file.read_bytes().startswith(before)
    assert conversation[0] == "user: Write a.txt."
    assert conversation[-2:] == ["assistant: I wrote a.txt.", "user: Is it right?"]


@pytest.mark.parity("sessions.interop")
def test_cantle_continues_what_the_reference_wrote(cli: Cli, reference: Reference) -> None:
    with StrictServer(WORK) as server:
        reference.configure(server.base_url)
        reference.run("-p", "Write a.txt.")
    (file,) = reference.sessions()
    before = file.read_bytes()

    with StrictServer(["Yes, it has one line."]) as server:
        cli.configure(server.base_url)
        done = cli.run(*MODEL, "--session", str(file), "-p", "Is it right?")
        assert (done.returncode, done.stdout, done.stderr) == (0, "Yes, it has one line.\n", "")
        conversation = sent(server)
        server.assert_clean()

    assert file.read_bytes().startswith(before)
    assert conversation[0] == "user: Write a.txt."
    assert conversation[-2:] == ["assistant: I wrote a.txt.", "user: Is it right?"]


@pytest.mark.parity("sessions.folder-name")
def test_both_keep_a_folders_sessions_under_the_same_name(cli: Cli, reference: Reference) -> None:
    ours, theirs = both(cli, reference, ["One."], "Hi")
    assert ours.parent.name == theirs.parent.name


@pytest.mark.parity("sessions.line-shape")
def test_cantle_writes_no_field_that_the_reference_does_not(cli: Cli, reference: Reference) -> None:
    ours, theirs = (shapes(lines(file)) for file in both(cli, reference, WORK, "Write a.txt."))
    theirs.pop("message system")
    theirs["message toolResult"].add(".details")  # theirs has none for this tool
    assert set(ours) == set(theirs)
    assert {kind: fields - theirs[kind] for kind, fields in ours.items() if fields - theirs[kind]} == {}


def both(cli: Cli, reference: Reference, answers: list[Any], prompt: str) -> tuple[Path, Path]:
    """The session files that the same prompt and answers leave."""
    with StrictServer(answers) as server:
        cli.configure(server.base_url)
        assert cli.run(*MODEL, "-p", prompt).returncode == 0
    with StrictServer(answers) as server:
        reference.configure(server.base_url)
        reference.run("-p", prompt)
    return cli.sessions()[0], reference.sessions()[0]


def shapes(entries: list[dict[str, Any]]) -> dict[str, set[str]]:
    """Kind of entry -> its fields, those of a message with a dot before them."""
    found: dict[str, set[str]] = {}
    for entry in entries:
        message = entry.get("message", {})
        kind = f"{entry['type']} {message.get('role', '')}".strip()
        found.setdefault(kind, set()).update(set(entry), {f".{name}" for name in message})
    return found
