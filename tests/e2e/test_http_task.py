"""The main job over real HTTP: six tool calls against a strict server mend a project whose tests fail."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from cantle.demo.project_tests import run_tests
from cantle.demo.script import PROMPT, responses
from cantle_ai.testing.server.server import StrictServer
from tests.support.cli import Cli

CALLS = ["bash", "read", "read", "edit", "edit", "bash"]


@pytest.mark.parity("cli.print")
def test_print_mode_mends_the_project_and_prints_the_answer_alone(shop: Cli) -> None:
    assert not run_tests(shop.cwd).ok
    with StrictServer(responses()) as server:
        shop.configure(server.base_url)
        done = shop.run("--provider", "loop", "--model", "m", "-p", PROMPT)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == responses()[-1]["content"][0]["text"] + "\n"
    assert run_tests(shop.cwd).ok
    server.assert_clean()
    assert_prefixes([request.body for request in server.requests])


@pytest.mark.parity("events.json-records")
def test_json_mode_prints_the_header_and_every_event(shop: Cli) -> None:
    with StrictServer(responses()) as server:
        shop.configure(server.base_url)
        done = shop.run("--provider", "loop", "--model", "m", "--mode", "json", PROMPT)
    assert (done.returncode, done.stderr) == (0, "")
    assert run_tests(shop.cwd).ok
    server.assert_clean()
    assert_prefixes([request.body for request in server.requests])
    records = [json.loads(line) for line in done.stdout.split("\n")[:-1]]
    assert records[0]["type"] == "session"
    assert records[-1] == {"type": "agent_settled", "aborted": False}
    assert [r["toolName"] for r in records if r["type"] == "tool_execution_start"] == CALLS
    assert [r["type"] for r in records].count("turn_start") == len(server.requests) == 6
    assert_updates_rebuild_messages(records)
    assert_session_agrees(shop, records)


def assert_prefixes(bodies: list[bytes]) -> None:
    """Each request's `messages`, less the bracket, begin the next one's; tools and system prompt stay."""
    spans = [top_level(body) for body in bodies]
    assert len(spans) == 6
    for before, after in itertools.pairwise(spans):
        assert after["messages"].startswith(before["messages"].removesuffix(b"]") + b",")
        assert after["tools"] == before["tools"]
    systems = {json.dumps(json.loads(span["messages"])[0]) for span in spans}
    assert len(systems) == 1


def top_level(body: bytes) -> dict[str, bytes]:
    """The raw bytes of each field of a JSON object."""
    text = body.decode()
    decoder, fields, place = json.JSONDecoder(), {}, 1
    while text[place] != "}":
        key, place = decoder.raw_decode(text, place)
        start = place + 1
        assert text[place] == ":"
        _, place = decoder.raw_decode(text, start)
        fields[key] = text[start:place].encode()
        place += text[place] == ","
    return fields


def assert_updates_rebuild_messages(records: list[dict[str, Any]]) -> None:
    """Deltas alone, without any snapshot, give the final text and arguments of every answer."""
    texts: dict[int, str] = {}
    for record in records:
        if record["type"] == "message_start":
            texts = {}
        elif record["type"] == "message_update":
            assert set(record) == {"type", "usage", "assistantMessageEvent"}
            event = record["assistantMessageEvent"]
            assert "partial" not in event
            if event["type"].endswith("_delta"):
                texts[event["contentIndex"]] = texts.get(event["contentIndex"], "") + event["delta"]
        elif record["type"] == "message_end" and record["message"]["role"] == "assistant":
            for index, block in enumerate(record["message"]["content"]):
                whole = block["text"] if block["type"] == "text" else block["arguments"]
                rebuilt = texts[index] if block["type"] == "text" else json.loads(texts[index])
                assert rebuilt == whole


def assert_session_agrees(shop: Cli, records: list[dict[str, Any]]) -> None:
    """The session file holds the messages that the events ended, in their order."""
    (file,) = shop.sessions()
    entries = [json.loads(line) for line in file.read_text("utf-8").split("\n")[:-1]]
    assert entries[0] == records[0]
    written = [entry["message"] for entry in entries if entry["type"] == "message"]
    assert written == [record["message"] for record in records if record["type"] == "message_end"]
