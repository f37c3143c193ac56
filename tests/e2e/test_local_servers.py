"""`cantle` with programs that serve models on this machine."""

from __future__ import annotations

import json

import pytest

from cantle_ai.testing.server.server import StrictServer
from packages.ai.tests.http_peer import refused_port
from packages.ai.tests.server_programs import LLAMA_CPP, OLLAMA, Program
from tests.support.cli import Cli


@pytest.mark.parity("models.servers-of-this-machine")
def test_the_models_of_a_server_that_runs_are_listed(cli: Cli) -> None:
    with Program(OLLAMA) as ollama, Program(LLAMA_CPP) as llama:
        cli.variables.update(OLLAMA_HOST=ollama.address, LLAMA_BASE_URL=llama.url)
        done = cli.run("--list-models")
        assert done.returncode == 0
        rows = [line.split() for line in done.stdout.splitlines()]
        assert ["ollama", "qwen3:4b", "32.8K", "8.2K", "yes", "yes"] in rows
        assert ["llama.cpp", "../models/qwen3-4b.gguf", "8.2K", "2K", "yes", "yes"] in rows
        llama.asked.clear()
        alone = cli.run("--list-models", "--provider", "ollama")
        assert {line.split()[0] for line in alone.stdout.splitlines()[1:]} == {"ollama"}
        assert llama.asked == []


ANSWER = (
    b'data: {"id":"chatcmpl-1","model":"qwen3:4b","choices":[{"index":0,"delta":{"content":"hello"}}]}\n\n'
    b'data: {"id":"chatcmpl-1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
    b'data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}}\n\ndata: [DONE]\n\n'
)


def test_a_model_of_a_server_is_asked_by_its_name(cli: Cli) -> None:
    with Program({**OLLAMA, "/v1/chat/completions": ANSWER}) as ollama:
        cli.variables["OLLAMA_HOST"] = ollama.address
        done = cli.run("--model", "ollama/qwen3:4b:low", "-p", "go")
        assert (done.returncode, done.stdout, done.stderr) == (0, "hello\n", "")
        again = cli.run("-c", "-p", "and now")
        assert (again.returncode, again.stdout) == (0, "hello\n")
        provider = cli.run("--provider", "ollama", "-p", "go")
        assert (provider.returncode, provider.stdout) == (0, "hello\n")
    first = next(body for body in ollama.bodies if "messages" in body)
    assert (first["model"], first["reasoning_effort"], first["max_tokens"]) == ("qwen3:4b", "low", 8192)
    lines = cli.sessions()[0].read_bytes().splitlines()
    messages = [entry["message"] for entry in map(json.loads, lines) if "message" in entry]
    usage = next(message["usage"] for message in messages if "usage" in message)
    assert (usage["input"], usage["output"], usage["cost"]["total"]) == (7, 2, 0)


@pytest.mark.parity("config.thinking-budgets")
def test_levels_have_budgets_of_tokens(cli: Cli) -> None:
    (cli.config / "settings.json").write_text('{"thinkingBudgets": {"low": 500}}')
    with Program({**LLAMA_CPP, "/v1/chat/completions": ANSWER}) as llama:
        cli.variables["LLAMA_BASE_URL"] = llama.url
        for level in ("low", "minimal", "off"):
            assert cli.run("--provider", "llama.cpp", "--thinking", level, "-p", "go").returncode == 0
    low, minimal, off = llama.bodies
    assert low["thinking_budget_tokens"] == 500
    assert low["chat_template_kwargs"] == {"enable_thinking": True}
    assert minimal["thinking_budget_tokens"] == 1024
    assert off["chat_template_kwargs"] == {"enable_thinking": False}
    assert "thinking_budget_tokens" not in off


@pytest.mark.parity("models.servers-of-this-machine")
def test_a_server_that_does_not_run_is_told_with_what_to_do(cli: Cli) -> None:
    with refused_port() as port:
        cli.variables["OLLAMA_HOST"] = f"127.0.0.1:{port}"
        for arguments in (
            ("--model", "ollama/qwen3:4b", "-p", "go"),
            ("--provider", "ollama", "-p", "go"),
            ("--list-models", "--provider", "ollama"),
        ):
            done = cli.run(*arguments)
            assert (done.returncode, done.stdout) == (1, "")
            assert done.stderr == (
                f"cantle: ollama at http://127.0.0.1:{port} does not answer: nothing listens there. Start it with "
                "`ollama serve`, or say with OLLAMA_HOST where it is, or give the provider ollama its baseUrl in "
                "models.json.\n"
            )


def test_a_model_that_a_server_does_not_have_is_told(cli: Cli) -> None:
    with Program(OLLAMA) as ollama:
        cli.variables["OLLAMA_HOST"] = ollama.address
        done = cli.run("--model", "ollama/nope", "-p", "go")
        assert (done.returncode, done.stdout) == (1, "")
        assert "nope" in done.stderr
    with Program({"/v1/models": {"data": []}}) as empty:
        cli.variables["LLAMA_BASE_URL"] = empty.url
        done = cli.run("--provider", "llama.cpp", "-p", "go")
        assert done.stderr == f"cantle: llama.cpp at {empty.url}/v1 has no models. Load one there.\n"


def test_no_server_is_asked_where_another_model_is_meant(cli: Cli) -> None:
    with Program(OLLAMA) as ollama, StrictServer(["one", "two"]) as server:
        cli.variables["OLLAMA_HOST"] = ollama.address
        cli.configure(server.base_url)
        assert cli.run("--provider", "loop", "-p", "go").stdout == "one\n"
        assert cli.run("--model", "loop/m", "-p", "go").stdout == "two\n"
        cli.run("--version")
        cli.run("--help")
        assert ollama.asked == []
