"""`grep`, `find` and `ls` from the command line: off until they are asked for, then as any other tool."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from cantle_ai.testing.server.server import StrictServer
from tests.support.cli import Cli

LOOP = ("--provider", "loop", "--model", "m", "--no-session")

CALLS = [
    {"type": "toolCall", "name": "grep", "arguments": {"pattern": "hit", "glob": "*.txt"}},
    {"type": "toolCall", "name": "find", "arguments": {"pattern": "**/*.txt"}},
    {"type": "toolCall", "name": "ls", "arguments": {}},
]


def request(cli: Cli, *words: str) -> dict[str, Any]:
    """The body of the first request of a run."""
    with StrictServer(["ok"]) as server:
        cli.configure(server.base_url)
        done = cli.run(*LOOP, *words, "-p", "go")
        assert done.returncode == 0, done.stderr
    return cast("dict[str, Any]", server.requests[0].json)


def tools_of(body: dict[str, Any]) -> list[str]:
    return [tool["function"]["name"] for tool in body["tools"]]


@pytest.mark.parity("tools.search")
def test_they_are_off_until_they_are_asked_for(cli: Cli) -> None:
    body = request(cli)
    assert tools_of(body) == ["read", "bash", "edit", "write"]
    assert "grep: " not in body["messages"][0]["content"]
    assert tools_of(request(cli, "--tools", "read,grep,find,ls")) == ["read", "grep", "find", "ls"]
    assert tools_of(request(cli, "--tools", "+ls")) == ["read", "bash", "edit", "write", "ls"]


@pytest.mark.parity("tools.search")
def test_the_settings_turn_them_on(cli: Cli) -> None:
    (cli.config / "settings.json").write_text(json.dumps({"defaultTools": ["+grep", "-bash"]}), "utf-8")
    body = request(cli)
    assert tools_of(body) == ["read", "edit", "write", "grep"]
    assert "- grep: Search the text of files" in body["messages"][0]["content"]


def test_a_model_uses_them(cli: Cli) -> None:
    (cli.cwd / "in").mkdir()
    (cli.cwd / "in" / "a.txt").write_text("one\nhit\n", "utf-8")
    (cli.cwd / "b.md").write_text("hit\n", "utf-8")
    with StrictServer([{"content": CALLS}, "done"]) as server:
        cli.configure(server.base_url)
        done = cli.run(*LOOP, "--tools", "grep,find,ls", "--mode", "json", "go")
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in done.stdout.split("\n") if line]
    results = {
        record["message"]["toolName"]: record["message"]["content"][0]["text"]
        for record in records
        if record["type"] == "message_end" and record["message"]["role"] == "toolResult"
    }
    assert results == {"grep": "in/a.txt:2: hit", "find": "in/a.txt", "ls": "b.md\nin/"}
