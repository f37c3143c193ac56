"""How a run ends: all output out before it, the exit code that tells, and nothing left, whatever comes together."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from cantle_ai.testing.server.received import Received
from cantle_ai.testing.server.server import StrictServer
from cantle_session.session import Session
from tests.support.cli import TIMEOUT, Cli, before_main
from tests.support.samples import samples

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and pipes are POSIX's here")

OPTIONS = ("--provider", "loop", "--model", "m")
LONG = "A line of a long answer.\n" * 20_000
"""Half a megabyte: more than pipes and buffers hold."""

STOP, LENGTH = {"content": LONG}, {"content": LONG, "stopReason": "length"}
ERROR = {"error": {"status": 400, "message": "no"}}
CUT = {"content": LONG, "error": {"status": 400, "message": "no"}, "after": 300}
FAILING_TOOL = {"content": [{"type": "toolCall", "name": "read", "arguments": {"path": "not-there"}}]}


class SlowReader(threading.Thread):
    """Begins to read when nothing more fits, and then takes little at a time."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        super().__init__()
        self.process = process
        self.data = b""
        self.start()

    def run(self) -> None:
        assert self.process.stdout is not None
        while block := os.read(self.process.stdout.fileno(), 1 << 12):
            self.data += block


@pytest.mark.fault("K02", "K04")
@pytest.mark.parametrize("mode", ["text", "json"])
@pytest.mark.parametrize(
    ("answers", "code", "text"),
    [
        ([STOP], 0, LONG),
        ([FAILING_TOOL, STOP], 0, LONG),
        ([LENGTH], 1, LONG),
        ([ERROR], 1, ""),
        ([CUT], 1, ""),
        ([FAILING_TOOL, ERROR], 1, ""),
        ([STOP, ERROR], 1, ""),
        ([ERROR, STOP], 1, ""),
        ([LENGTH, STOP], 1, LONG),
    ],
    ids=["stop", "tool failed", "length", "error", "cut", "tool, error", "second", "first", "first length"],
)
def test_all_output_is_out_and_the_exit_code_tells(
    cli: Cli, mode: str, answers: list[Any], code: int, text: str
) -> None:
    prompts = ["one", "two"] if answers in ([STOP, ERROR], [ERROR, STOP], [LENGTH, STOP]) else ["one"]
    with StrictServer(answers, chunk=200) as server:
        cli.configure(server.base_url, contextWindow=10_000_000)
        with cli.started(*OPTIONS, "--mode", mode, "-p", *prompts) as process:
            reader = SlowReader(process)
            assert process.stderr is not None
            err = process.stderr.read().decode()
            assert process.wait(timeout=TIMEOUT) == code, err
            reader.join()
    assert err.count("\n") == code and "Traceback" not in err
    if mode == "text":
        assert reader.data.decode() == text
        return
    records = [json.loads(line) for line in reader.data.split(b"\n")[:-1]]
    assert records[-1] == {"type": "agent_settled", "aborted": False}
    if text:
        deltas = [r["assistantMessageEvent"] for r in records if r["type"] == "message_update"]
        assert "".join(delta.get("delta", "") for delta in deltas).endswith(text)


@pytest.mark.fault("K04")
@pytest.mark.parametrize(
    ("redirection", "asked"),
    [
        ("</dev/null", "go"),
        ("<&-", "go"),
        ("<empty", "go"),
        ("<blank", "go"),
        ("<piped", "piped\n\ngo"),
        ("<byte-order-mark", "piped\ngo"),
    ],
)
@pytest.mark.parametrize("mode", ["text", "json"])
def test_whatever_stdin_is_the_prompt_is_asked(cli: Cli, redirection: str, asked: str, mode: str) -> None:
    files = {"empty": b"", "blank": b" \n\t\n", "piped": b"piped\n", "byte-order-mark": b"\xef\xbb\xbfpiped"}
    for name, data in files.items():
        (cli.cwd / name).write_bytes(data)
    with StrictServer(["answer"]) as server:
        cli.configure(server.base_url)
        words = cli.words(*OPTIONS, "--mode", mode, "-p", "go")
        done = subprocess.run(
            ["sh", "-c", f'"$@" {redirection}', "sh", *words],
            cwd=cli.cwd,
            env=cli.environment(),
            capture_output=True,
            timeout=TIMEOUT,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, b"")
    assert last_said(server.requests[0]) == asked


@pytest.mark.fault("K04")
def test_a_long_text_is_taken_whole_however_slowly_it_is_piped_in(cli: Cli) -> None:
    text = "wörter " * 40_000
    with StrictServer(["answer"]) as server:
        cli.configure(server.base_url, contextWindow=1_000_000)
        with cli.started(*OPTIONS, "-p", "--", "-go", stdin=subprocess.PIPE) as process:
            assert process.stdin is not None
            data = text.encode()
            for start in range(0, len(data), 4095):  # cuts characters in two
                process.stdin.write(data[start : start + 4095])
                process.stdin.flush()
            process.stdin.close()
            assert process.wait(timeout=TIMEOUT) == 0
    assert last_said(server.requests[0]) == f"{text}\n-go"


@pytest.mark.fault("K03")
def test_a_server_that_dies_ends_the_wait_for_its_answer(cli: Cli) -> None:
    (cli.config / "settings.json").write_text('{"retry": {"enabled": false}}')
    (cli.cwd / "stalls.json").write_text(
        json.dumps({"responses": [{"content": "Half of it", "stall": True, "after": 1}], "chunk": 4})
    )
    words = [sys.executable, "-u", "-m", "cantle_ai.testing.server", "stalls.json"]
    with subprocess.Popen(words, cwd=cli.cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as server:
        assert server.stdout is not None
        cli.configure(json.loads(server.stdout.readline())["baseUrl"])
        with cli.started(*OPTIONS, "--mode", "json", "-p", "go") as process:
            assert process.stdout is not None and process.stderr is not None
            while b'"text_delta"' not in (line := process.stdout.readline()):
                assert line
            server.kill()
            out, err = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 1
    assert json.loads(out.split(b"\n")[-2])["type"] == "agent_settled"
    assert err.startswith(b"cantle: ") and err.count(b"\n") == 1


@pytest.mark.fault("K03")
def test_a_shell_that_is_killed_ends_the_wait_for_its_result(cli: Cli) -> None:
    call = {"type": "toolCall", "name": "bash", "arguments": {"command": "echo $$ > pid; sleep 60"}}
    with StrictServer([{"content": [call]}, "seen"]) as server:
        cli.configure(server.base_url)
        with cli.started(*OPTIONS, "-p", "go") as process:
            os.kill(int(written(cli.cwd / "pid")), signal.SIGKILL)
            out, _ = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, out) == (0, b"seen\n")
    assert "SIGKILL" in last_said(server.requests[1])


def last_said(request: Received) -> Any:
    """The content of a request's last message."""
    messages: Any = request.json["messages"]
    return messages[-1]["content"]


def written(file: Path) -> str:
    deadline = time.monotonic() + 20
    while not (file.exists() and file.read_text()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return file.read_text()


@pytest.mark.fault("K05")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.timeout(600)
def test_the_end_of_stdin_and_a_signal_come_together(cli: Cli, number: signal.Signals) -> None:
    """At any moment of a run: while the program starts, while it works on the prompt, and while it ends."""
    choose = random.Random(number)
    for _ in range(samples(60, 6)):
        with StrictServer([{"content": "word " * 40, "chunk": 5, "rate": 400}]) as server:
            cli.configure(server.base_url)
            with cli.started(*OPTIONS, "--mode", "json", stdin=subprocess.PIPE) as process:
                assert process.stdin is not None
                process.stdin.write(b"go")
                if choose.random() < 0.5:  # what follows the end of stdin is hit as well
                    process.stdin.close()
                time.sleep(choose.uniform(0, 0.6))
                if not process.stdin.closed:
                    process.stdin.close()
                process.send_signal(number)
                assert process.stdout is not None and process.stderr is not None
                out, err = process.stdout.read(), process.stderr.read().decode()
                code = process.wait(timeout=TIMEOUT)
        assert code in (0, 128 + number, -number) or before_main(err), err
        if not (code and before_main(err)):
            assert err in ("", f"cantle: stopped by {number.name}.\n"), err
        records = [json.loads(line) for line in out.split(b"\n")[:-1]]
        assert out == b"" or (records and out.endswith(b"\n"))
        if code >= 0 and records:
            assert records[-1]["type"] == "agent_settled"
        for file in cli.sessions():
            with Session.open(file) as session:
                assert not session.warnings
            file.unlink()
