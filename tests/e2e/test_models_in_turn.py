"""What the command line says of a history that another model takes over, and of one that goes on for it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cantle_ai.testing.server.server import StrictServer
from tests.support.cli import Cli

THINKS = {"reasoning": True, "contextWindow": 100_000, "maxTokens": 4096}


def configure(cli: Cli, server: StrictServer, *models: str) -> None:
    rows = [{"id": model, **THINKS} for model in models]
    provider = {"baseUrl": server.base_url, "api": "openai-completions", "apiKey": "sk-loop", "models": rows}
    (cli.config / "models.json").write_text(json.dumps({"providers": {"loop": provider}}), "utf-8")


def thought(text: str) -> dict[str, Any]:
    return {"content": [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": text}]}


def test_thoughts_of_another_model_are_told_once(cli: Cli) -> None:
    with StrictServer([thought("One."), thought("Two."), "Three.", "Four."]) as server:
        configure(cli, server, "a", "b")
        done = cli.run("--model", "loop/a", "-p", "first", "second")
        assert (done.returncode, done.stderr) == (0, "")
        done = cli.run("--model", "loop/b", "-c", "-p", "third", "fourth")
        assert (done.returncode, done.stdout) == (0, "Four.\n")
        assert done.stderr == (
            "cantle: 2 thoughts of another model were sent as text; the session keeps everything.\n"
        )
        sent = [
            m["content"] for m in json.loads(server.requests[-1].body)["messages"] if m["role"] == "assistant"
        ]
        assert sent == ["Hm.\n\nOne.", "Hm.\n\nTwo.", "Three."]


def test_json_mode_tells_both_as_records(cli: Cli) -> None:
    refusal = {"error": {"message": "no money", "status": 402}}
    with StrictServer([thought("One."), refusal, "There."]) as server:
        configure(cli, server, "a", "b")
        words = ("--model", "loop/a", "--fallback-model", "loop/b", "--mode", "json", "first", "second")
        records = [json.loads(line) for line in cli.run(*words).stdout.split("\n")[:-1]]
    told = [record for record in records if record["type"] in ("model_fallback", "history_projected")]
    assert told == [
        {"type": "model_fallback", "provider": "loop", "modelId": "b", "errorMessage": "402 no money"},
        {"type": "history_projected", "counts": {"thinkingAsText": 1}},
    ]


def test_another_model_goes_on_and_the_session_says_so(cli: Cli) -> None:
    refusal = {"error": {"message": "no money", "status": 402}}
    with StrictServer([refusal, "There."]) as server:
        configure(cli, server, "a", "b")
        done = cli.run("--model", "loop/a", "--fallback-model", "loop/b", "-p", "go")
        assert (done.returncode, done.stdout) == (0, "There.\n")
        assert done.stderr == "cantle: 402 no money; going on with loop/b.\n"
        assert [json.loads(request.body)["model"] for request in server.requests] == ["a", "b"]
    (file,) = (cli.home / "cantle" / "sessions").rglob("*.jsonl")
    entries = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    assert [e["modelId"] for e in entries if e["type"] == "model_change"] == ["a", "b"]


def test_a_fallback_model_that_is_not_there_is_said_before_anything_is_sent(cli: Cli) -> None:
    with StrictServer(["never"]) as server:
        configure(cli, server, "a")
        done = cli.run("--model", "loop/a", "--fallback-model", "no-such", "-p", "go")
        assert done.returncode == 1
        assert "no-such" in done.stderr
        assert not server.requests


def test_a_configured_model_goes_on_for_a_scripted_one(cli: Cli) -> None:
    file = cli.cwd / "empty.json"
    file.write_text('{"responses": [{"error": {"status": 402, "message": "no money"}}]}')
    with StrictServer(["There."]) as server:
        configure(cli, server, "b")
        done = cli.run(
            "--provider", "scripted", "--model", str(file), "--fallback-model", "loop/b", "-p", "go"
        )
        assert (done.returncode, done.stdout) == (0, "There.\n")
        assert done.stderr == "cantle: no money; going on with loop/b.\n"


@pytest.mark.parity("config.cache-retention")
@pytest.mark.parametrize(
    ("value", "said"), [("long", ""), ("for ever", "CANTLE_CACHE_RETENTION must be none, short or long")]
)
def test_the_variable_for_the_cache_is_checked(cli: Cli, value: str, said: str) -> None:
    cli.variables["CANTLE_CACHE_RETENTION"] = value
    with StrictServer(["There."]) as server:
        configure(cli, server, "a")
        done = cli.run("--model", "loop/a", "-p", "go")
        assert said in done.stderr
        assert (done.returncode == 0) is (not said) is bool(server.requests)


@pytest.mark.fault("D04", "D05")
def test_d04_a_session_that_goes_on_later_sends_the_same_prompt_and_tools_in_the_same_order(cli: Cli) -> None:
    """Another process, another minute: what a provider has cached of the first request counts for the next."""
    with StrictServer(["One.", "Two."]) as server:
        configure(cli, server, "a")
        cli.variables["TZ"] = "Pacific/Kiritimati"
        assert cli.run("--model", "loop/a", "-p", "first").returncode == 0
        cli.variables["TZ"] = "Pacific/Niue"  # another day there
        assert cli.run("--model", "loop/a", "-c", "-p", "second").returncode == 0
        before, after = (json.loads(body) for body in server.bodies)
        assert after["messages"][0] == before["messages"][0]
        assert json.dumps(after["tools"]) == json.dumps(before["tools"])
        server.assert_clean()
