"""A session that was left in the middle goes on from the command line, without a new prompt: `/continue`."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from cantle_ai.testing.server.server import StrictServer
from tests.support.cli import Cli

MODEL = ["--provider", "loop", "--model", "m"]
REFUSED = {"error": {"status": 400, "message": "no"}}


@pytest.mark.parity("cli.continue-prompt")
def test_after_a_failure_the_same_prompt_is_answered(cli: Cli) -> None:
    with StrictServer([REFUSED, "Hello!", "Bye!"]) as server:
        cli.configure(server.base_url)
        assert cli.run(*MODEL, "Hi").returncode == 1
        done = cli.run(*MODEL, "-c", " /continue\n", "Bye")
        assert (done.returncode, done.stdout, done.stderr) == (0, "Bye!\n", "")
        first, again, _ = [request.json["messages"] for request in server.requests]
        assert first == again
    (file,) = cli.sessions()
    texts = [
        entry for entry in map(json.loads, file.read_text("utf-8").splitlines()) if entry["type"] == "message"
    ]
    assert [entry["message"]["role"] for entry in texts] == [
        "user",
        "assistant",
        "assistant",
        "user",
        "assistant",
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="a kill ends other processes there, too")
def test_after_a_kill_the_call_that_was_on_has_a_result_that_says_so(cli: Cli) -> None:
    call = {"type": "toolCall", "name": "bash", "id": "c1", "arguments": {"command": "echo on; sleep 60"}}
    with StrictServer([{"content": [call]}, "I see."]) as server:
        cli.configure(server.base_url)
        with cli.started(*MODEL, "--mode", "json", "Hi") as process:
            assert process.stdout is not None
            while b"tool_execution_start" not in process.stdout.readline():
                pass
            process.kill()
            process.wait(20)
        done = cli.run(*MODEL, "-c", "/continue")
        assert (done.returncode, done.stdout) == (0, "I see.\n")
        sent: Any = server.requests[-1].json
        assert "interrupted" in sent["messages"][-1]["content"]


def test_where_there_is_nothing_to_continue_it_says_so(cli: Cli) -> None:
    with StrictServer(["Hello!", "Said."], prefix=False) as server:
        cli.configure(server.base_url)
        done = cli.run(*MODEL, "/continue")
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == (
            "cantle: there is nothing to continue: the session is empty. Say what is to be done next.\n"
        )
        assert cli.run(*MODEL, "Hi").returncode == 0
        done = cli.run(*MODEL, "-c", "/continue")
        assert (done.returncode, done.stdout) == (1, "")
        assert "the last answer is whole" in done.stderr
        assert len(server.requests) == 1
        assert cli.run(*MODEL, "/continue with the tests").stdout == "Said.\n"
