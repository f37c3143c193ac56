"""Behaviours of the command line that belong to the ledger and to no one package."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cantle_ai.testing.server.server import StrictServer
from tests.support.cli import Cli

MODEL = ["--provider", "loop", "--model", "m"]


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    home, cwd = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    cwd.mkdir()
    return Cli(home, cwd)


@pytest.mark.parity("events.framing")
def test_only_a_line_feed_ends_a_record(cli: Cli) -> None:
    text = "one\u2028two\u2029three\x85four\x0bfive"
    with StrictServer([text]) as server:
        cli.configure(server.base_url)
        done = cli.run(*MODEL, "--mode", "json", "Hi")
    assert done.stdout.endswith("}\n")
    records = [json.loads(line) for line in done.stdout.removesuffix("\n").split("\n")]
    last = [r["message"] for r in records if r["type"] == "message_end"][-1]
    assert last["content"][0]["text"] == text


@pytest.mark.parity("cli.redirected")
def test_without_a_terminal_print_mode_is_used(cli: Cli) -> None:
    with StrictServer(["Hello."]) as server:
        cli.configure(server.base_url)
        assert cli.run(*MODEL, "Hi").stdout == "Hello.\n"


@pytest.mark.parity("cli.no-tools")
def test_no_tools_sends_none(cli: Cli) -> None:
    with StrictServer(["Hello."]) as server:
        cli.configure(server.base_url)
        assert cli.run(*MODEL, "--no-tools", "-p", "Hi").returncode == 0
        assert "tools" not in json.loads(server.requests[0].body)
        server.assert_clean()


@pytest.mark.parity("cli.offline")
def test_offline_leaves_requests_to_the_model_alone(cli: Cli) -> None:
    with StrictServer(["Hello.", "Hello."]) as server:
        cli.configure(server.base_url)
        assert cli.run(*MODEL, "--offline", "-p", "Hi").stdout == "Hello.\n"
        cli.variables["CANTLE_OFFLINE"] = "1"
        assert cli.run(*MODEL, "-p", "Hi").stdout == "Hello.\n"


@pytest.mark.parity("stream.deferred-handle")
def test_a_deferred_answer_keeps_its_handle(cli: Cli) -> None:
    handle = {
        "provider": "scripted",
        "modelId": "later",
        "api": "scripted",
        "id": "job-1",
        "pollAfterMs": 5000,
    }
    script = cli.cwd / "later.json"
    script.write_text(json.dumps({"responses": [{"deferred": handle}]}), encoding="utf-8")
    done = cli.run("--provider", "scripted", "--model", "later.json", "--mode", "json", "Hi")
    records = [json.loads(line) for line in done.stdout.split("\n") if line]
    last = [r["message"] for r in records if r["type"] == "message_end"][-1]
    assert (last["stopReason"], last["deferred"]) == ("deferred", handle)
