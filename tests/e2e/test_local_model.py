"""The model in the box behind the command line: it reads a file with the real tools, and standard output stays JSON."""

import json

import pytest

from tests.support.cli import Cli
from tests.support.extras import needs

pytestmark = [needs("local"), pytest.mark.slow]


@pytest.mark.timeout(
    180
)  # it reads 600 tokens of instructions, at 40 a second where others use the processor
def test_it_reads_a_file_and_says_what_is_in_it(cli: Cli) -> None:
    (cli.cwd / "notes.txt").write_text("The password is swordfish.\n", "utf-8")
    steady = {"modelOverrides": {"smollm2-135m": {"samplingParams": {"temperature": 0}, "maxTokens": 60}}}
    (cli.config / "models.json").write_text(json.dumps({"providers": {"local": steady}}), "utf-8")
    done = cli.run(
        "--provider",
        "local",
        "--mode",
        "json",
        "--tools",
        "read",
        "--system-prompt",
        "You are a helpful assistant.",
        "-p",
        "Read the file notes.txt",
    )
    assert (done.returncode, done.stderr) == (0, "")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    (started,) = [event for event in events if event["type"] == "tool_execution_start"][:1]
    assert (started["toolName"], started["args"]["path"]) == ("read", "notes.txt")
    (result,) = [event for event in events if event["type"] == "tool_execution_end"][:1]
    assert not result["isError"] and "swordfish" in json.dumps(result["result"])
    answers = [event["message"] for event in events if event["type"] == "message_end"]
    last = answers[-1]
    assert last["role"] == "assistant" and last["stopReason"] in ("stop", "length")
    assert last["usage"]["cacheRead"] > 100 and last["usage"]["cost"]["total"] == 0
