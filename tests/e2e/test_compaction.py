"""A history is compacted from the command line: when asked with `/compact`, by itself, and after an overflow."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from cantle_ai.testing.server.server import StrictServer
from tests.support.cli import Cli

MODEL = ["--provider", "loop", "--model", "m"]
SMALL = {"input": 100, "output": 10}
FULL = {"input": 90_000, "output": 10}
SUMMARY = {"content": "## Goal\nTo greet.", "usage": SMALL}
TOO_LONG = {"error": {"status": 400, "message": "prompt is too long", "code": "context_length_exceeded"}}
LONG = "Hello there. " * 30


def said(text: str, usage: dict[str, int] = SMALL) -> dict[str, Any]:
    return {"content": text, "usage": usage}


def configure(cli: Cli, server: StrictServer, **compaction: Any) -> None:
    cli.configure(server.base_url)
    settings = {"compaction": {"keepRecentTokens": 10, **compaction}, "retry": {"baseDelayMs": 1}}
    (cli.config / "settings.json").write_text(json.dumps(settings), encoding="utf-8")


def entries(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").split("\n") if line]


@pytest.mark.parity("cli.compact-prompt")
def test_a_prompt_of_print_mode_compacts_with_instructions(cli: Cli) -> None:
    script = [said("one"), said("two"), SUMMARY, said("three")]
    with StrictServer(script, prefix=False) as server:
        configure(cli, server)
        assert cli.run(*MODEL, LONG, LONG).returncode == 0
        done = cli.run(*MODEL, "-c", "/compact mind the birds")
        assert (done.returncode, done.stdout) == (0, "")
        first, second = done.stderr.splitlines()
        assert first == "cantle: the conversation is being summed up …"
        assert second.startswith("cantle: summed up: about 110 tokens became about ")
        assert "mind the birds" in json.dumps(server.requests[2].json)
        done = cli.run(*MODEL, "-c", "third")
        assert (done.stdout, done.stderr) == ("three\n", "")
        sent: Any = server.requests[3].json
        assert "To greet." in json.dumps(sent["messages"][1])
        assert [message["role"] for message in sent["messages"]] == [
            *["system", "user", "user", "assistant", "user"]
        ]
    (file,) = cli.sessions()
    assert [entry["type"] for entry in entries(file)][-3:] == ["compaction", "message", "message"]


def test_the_answer_before_it_is_printed_all_the_same(cli: Cli) -> None:
    with StrictServer([said("one"), said("two"), SUMMARY], prefix=False) as server:
        configure(cli, server)
        done = cli.run(*MODEL, LONG, LONG, " /compact\n")
        assert (done.returncode, done.stdout) == (0, "two\n")


def test_with_nothing_to_compact_it_says_so(cli: Cli) -> None:
    with StrictServer([said("one")]) as server:
        configure(cli, server)
        cli.run(*MODEL, "Hi")
        done = cli.run(*MODEL, "-c", "/compact")
        assert (done.returncode, done.stdout) == (1, "")
        (told,) = done.stderr.splitlines()
        assert told.startswith("cantle: there is nothing to compact yet")
        assert len(server.requests) == 1


def test_words_that_only_begin_like_it_are_said(cli: Cli) -> None:
    with StrictServer([said("one"), said("two")], prefix=False) as server:
        configure(cli, server)
        assert cli.run(*MODEL, "/compactify").stdout == "one\n"
        assert cli.run(*MODEL, "say /compact").stdout == "two\n"


def test_a_failure_is_told_once_and_changes_nothing(cli: Cli) -> None:
    refused = {"error": {"status": 400, "message": "no"}}
    with StrictServer([said("one"), said("two"), refused], prefix=False) as server:
        configure(cli, server)
        cli.run(*MODEL, LONG, LONG)
        (file,) = cli.sessions()
        before = file.read_bytes()
        done = cli.run(*MODEL, "-c", "/compact")
        assert done.returncode == 1
        assert done.stderr.count("ummary failed") == 1
        assert "Traceback" not in done.stderr
    assert file.read_bytes() == before


def test_a_summary_is_asked_for_again(cli: Cli) -> None:
    busy = {"error": {"status": 503, "message": "overloaded"}}
    with StrictServer([said("one"), said("two"), busy, SUMMARY], prefix=False) as server:
        configure(cli, server)
        cli.run(*MODEL, LONG, LONG)
        done = cli.run(*MODEL, "-c", "/compact")
        assert done.returncode == 0
        assert "asking for the summary again in 0.001 s (1 of 3)" in done.stderr


def test_it_comes_by_itself_and_is_told_on_stderr(cli: Cli) -> None:
    with StrictServer([said("one"), said("two", FULL), SUMMARY, said("three")], prefix=False) as server:
        configure(cli, server)
        done = cli.run(*MODEL, LONG, LONG, "third")
        assert (done.returncode, done.stdout) == (0, "three\n")
        assert "has become long" in done.stderr
        assert "the session keeps everything" in done.stderr


def test_after_an_overflow_the_prompt_is_answered(cli: Cli) -> None:
    with StrictServer([said("one"), TOO_LONG, SUMMARY, said("two")], prefix=False) as server:
        configure(cli, server)
        done = cli.run(*MODEL, LONG, LONG)
        assert (done.returncode, done.stdout) == (0, "two\n")
        assert "too long for the model" in done.stderr


def test_an_overflow_that_stays_one_is_the_failure(cli: Cli) -> None:
    script = [said("one"), TOO_LONG, SUMMARY, TOO_LONG]
    with StrictServer(script, prefix=False) as server:
        configure(cli, server)
        done = cli.run(*MODEL, LONG, LONG)
        assert (done.returncode, done.stdout) == (1, "")
        assert "prompt is too long" in done.stderr
        assert "larger window" in done.stderr


@pytest.mark.parity("events.compaction")
def test_json_mode_has_its_events(cli: Cli) -> None:
    with StrictServer([said("one"), said("two"), SUMMARY], prefix=False) as server:
        configure(cli, server)
        cli.run(*MODEL, LONG, LONG)
        done = cli.run(*MODEL, "-c", "--mode", "json", "/compact")
    session, start, end = [json.loads(line) for line in done.stdout.splitlines()]
    assert session["type"] == "session"
    assert start == {"type": "compaction_start", "reason": "manual"}
    assert end["result"]["tokensBefore"] == 110
    assert (end["aborted"], end["willRetry"]) == (False, False)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal")
def test_ctrl_c_stops_it_and_the_session_is_as_it_was(cli: Cli) -> None:
    with StrictServer([said("one"), said("two"), {**SUMMARY, "stall": True}], prefix=False) as server:
        configure(cli, server)
        cli.run(*MODEL, LONG, LONG)
        (file,) = cli.sessions()
        before = file.read_bytes()
        with cli.started(*MODEL, "-c", "/compact") as process:
            server.wait_for(3)
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 130
    assert file.read_bytes() == before


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal")
def test_a_kill_in_the_middle_leaves_the_session_as_it_was(cli: Cli) -> None:
    script = [said("one"), said("two"), {**SUMMARY, "stall": True}, SUMMARY, said("three")]
    with StrictServer(script, prefix=False) as server:
        configure(cli, server)
        cli.run(*MODEL, LONG, LONG)
        (file,) = cli.sessions()
        before = file.read_bytes()
        with cli.started(*MODEL, "-c", "/compact") as process:
            server.wait_for(3)
            process.kill()
            process.wait(20)
        assert file.read_bytes() == before
        assert cli.run(*MODEL, "-c", "/compact").returncode == 0
        assert cli.run(*MODEL, "-c", "third").stdout == "three\n"


@pytest.mark.parity("config.compaction")
def test_wrong_settings_are_refused_before_anything_happens(cli: Cli) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"reserveTokens": -1}, "compaction.reserveTokens must be a whole number"),
        ({"modelOverrides": []}, "compaction.modelOverrides must be an object"),
        ({"modelOverrides": {"a/b": 5}}, "compaction.modelOverrides.a/b must be an object"),
        (
            {"modelOverrides": {"a/b": {"keepRecentTokens": "many"}}},
            "compaction.modelOverrides.a/b.keepRecentTokens must be a whole number",
        ),
    ]
    for compaction, text in wrong:
        (cli.config / "settings.json").write_text(json.dumps({"compaction": compaction}), encoding="utf-8")
        done = cli.run(*MODEL, "Hi")
        assert done.returncode == 1
        assert text in done.stderr
