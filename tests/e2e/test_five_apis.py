"""One session file, continued with a model of another API each time, before a server that refuses what vendors do."""

from __future__ import annotations

import json
import signal
import sys
from typing import Any

import pytest

from cantle_ai.content import ThinkingContent
from cantle_ai.messages import AssistantMessage
from cantle_ai.testing.server.server import StrictServer
from cantle_session.session import Session
from packages.ai.tests.conformance.cases import call, text, thinking
from packages.ai.tests.conformance.column import Column, columns
from packages.cantle.tests.images.pictures import PNG
from tests.support.cli import Cli

ORDER = (
    "openai-completions",
    "anthropic-messages",
    "google-generative-ai",
    "openai-responses",
    "mistral-conversations",
    "bedrock-converse-stream",
)


@pytest.fixture(scope="module")
def tour() -> list[Column]:
    """The APIs in the order of the journey."""
    found = [column for api in ORDER for column in columns() if column.api == api]
    assert [column.api for column in found] == list(ORDER)
    return found


def configure(cli: Cli, server: StrictServer, tour: list[Column]) -> None:
    """One provider with one model for each API, all at `server`."""
    providers: dict[str, Any] = {}
    for column in tour:
        row: dict[str, Any] = {"id": "m", "reasoning": True, "input": ["text", "image"]}
        provider = {
            "baseUrl": server.base_url_for(column.api),
            "api": column.api,
            "apiKey": column.api_key or "unused",
            "models": [{**row, "compat": dict(column.model.get("compat", {}))}],
        }
        providers[f"on-{column.api}"] = provider
    (cli.config / "models.json").write_text(json.dumps({"providers": providers}), "utf-8")
    cli.variables.update({name: value for column in tour for name, value in column.environ.items()})


def stay(api: str) -> list[dict[str, Any]]:
    """What one API answers: calls for a text, an image and a file that is not there; then a text; then an error."""
    calls = [call("note.txt"), call("dot.png"), call("missing.txt")]
    return [
        {"content": [thinking(f"{api} thinks"), text("I look."), *calls]},
        {"content": [thinking("again"), call("note.txt")]},
        {"content": [thinking("at last"), text(f"{api} has seen it 🎉")]},
        {"error": {"status": 400, "message": "The request was not understood"}},
    ]


def test_a_session_visits_every_api_in_turn_and_none_refuses_a_request(cli: Cli, tour: list[Column]) -> None:
    (cli.cwd / "note.txt").write_text("A note with ä and 😀.\n", encoding="utf-8")
    (cli.cwd / "dot.png").write_bytes(PNG)
    journey = [*tour, tour[0]]
    with StrictServer([answer for column in journey for answer in stay(column.api)]) as server:
        configure(cli, server, tour)
        for number, column in enumerate(journey):
            words = [
                "--model",
                f"on-{column.api}/m",
                "--thinking",
                "low",
                *(["--continue"] if number else []),
            ]
            done = cli.run(*words, "-p", f"Look, {column.api}.")
            assert (done.returncode, done.stdout) == (0, f"{column.api} has seen it 🎉\n"), done.stderr
            (file,) = cli.sessions()
            words = ["--model", f"on-{column.api}/m", "--session", str(file)]
            failed = cli.run(*words, "-p", "And now?")
            assert failed.returncode == 1, failed.stderr
            assert "The request was not understood" in failed.stderr
        server.assert_clean()
        assert [request.api for request in server.requests[::4]] == [column.api for column in journey]
    with Session.open(file) as session:
        messages = session.context().messages
    answers = [message for message in messages if isinstance(message, AssistantMessage)]
    assert len(answers) == 4 * len(journey)
    # What was stored is what each API said, whatever others were sent of it.
    thoughts = [
        block.thinking for each in answers for block in each.content if isinstance(block, ThinkingContent)
    ]
    assert [thought for thought in thoughts if thought.endswith("thinks")] == [
        f"{column.api} thinks" for column in journey
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signal that interrupts one process")
def test_what_one_api_was_interrupted_in_goes_on_with_the_next(cli: Cli, tour: list[Column]) -> None:
    half = {
        "content": [thinking("hm"), text("half an answer"), call("x")],
        "stall": True,
        "after": 5,
        "chunk": 2,
    }
    script = [answer for column in tour for answer in (half, {"content": f"{column.api} goes on"})]
    with StrictServer(script, chunk=2) as server:
        configure(cli, server, tour)
        for number, column in enumerate(tour):
            words = ["--model", f"on-{column.api}/m", *(["--continue"] if number else [])]
            with cli.started(*words, "--mode", "json", "Begin.") as process:
                assert process.stdout is not None
                for line in process.stdout:
                    if json.loads(line)["type"] == "message_update":
                        break
                process.send_signal(signal.SIGINT)
                process.stdout.read()
                assert process.wait(timeout=20) == 130
            other = tour[(number + 1) % len(tour)]
            done = cli.run("--model", f"on-{other.api}/m", "--continue", "-p", "Go on.")
            assert (done.returncode, done.stdout) == (0, f"{column.api} goes on\n"), done.stderr
        server.assert_clean()
