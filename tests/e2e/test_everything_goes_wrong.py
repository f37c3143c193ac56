"""Print and JSON mode where everything goes wrong at once: the model, the network, the tools, the reader, the user."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from cantle_ai.testing.server.server import StrictServer
from cantle_session.session import Session
from tests.e2e import hostile_tools
from tests.e2e.hostile_tools import HOSTILE
from tests.support.cli import TIMEOUT, Cli, before_main
from tests.support.samples import full_run, samples

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="finds what is left over in /proc"
)

SEEDS = range(samples(200, 6))
OPTIONS = ("--provider", "loop", "--model", "m")
MARK = "CANTLE_TEST_RUN"

BASH = [
    "echo out; echo err >&2; exit 3",
    "sleep 300 & echo started",
    "(trap '' TERM; sleep 300) & sleep 0.05",
    "setsid sleep 300 & echo away",
    "kill -KILL $$",
    "yes | head -c 3000000",
    "head -c 100000 /dev/urandom",
    "printf '\\033[2J\\xff\\xc3'; cat",
    "exec >&- 2>&-; sleep 0.1",
    "mkdir deep; cd deep; rmdir ../deep; pwd",
    'echo "not a line of a session" >> "$CANTLE_SESSION_FILE"',
]
CALLS: list[tuple[str, Any]] = [
    *(("bash", {"command": command}) for command in BASH),
    ("bash", {"command": "sleep 300", "timeout": 0.2}),
    ("bash", {"command": "\x00"}),
    ("bash", {"command": 5, "timeout": -1}),
    ("read", {"path": "/dev/zero"}),
    ("read", {"path": "."}),
    ("read", {"path": "\ud800", "offset": "x"}),
    ("write", {"path": "new/file", "content": "text\n" * 1000}),
    ("write", {"path": "/proc/nothing", "content": ""}),
    ("edit", {"path": "new/file", "edits": '[{"oldText": "text", "newText": ""}]'}),
    ("edit", {"path": "file", "edits": [{"oldText": "a", "newText": "b"}]}),
    ("edit", '{"path": '),
    ("no such tool", {}),
    ("", {}),
]
ENDLESS: list[tuple[str, Any]] = [
    ("bash", {"command": "sleep 300"}),
    ("bash", {"command": "trap '' TERM INT; while :; do sleep 0.1; done"}),
    ("waits", {}),
]
"""What comes to an end by an abort alone. Those that also outlast one are for full runs: each takes seconds."""

FAILURES: list[dict[str, Any]] = [
    {"error": {"status": 400, "message": "no"}},
    {"error": {"status": 429, "message": "slow down", "retryAfterMs": 5}},
    {"error": {"status": 503, "message": "\x1b[31mbusy"}},
    {"error": {"message": "in the stream"}, "content": "half of ", "after": 2},
    {"cut": True, "content": "cut off " * 20, "after": 3},
    {"cut": "quiet", "content": "cut off " * 20, "after": 3},
    {"http": {"drop": True}},
    {"http": {"status": 200, "body": "<html>not a stream</html>", "contentType": "text/html"}},
    {"http": {"status": 200, "body": "data: {\n\ndata: [DONE]\n\n"}},
    {"content": "too lo", "stopReason": "length"},
]


@dataclass
class Plan:
    """What happens in one run."""

    mode: str
    responses: list[Any] = field(default_factory=list)
    ending: str = "none"
    """`none`, the name of a signal, or `reader`: it stops reading."""
    after: float = 0.0

    @classmethod
    def drawn(cls, choose: random.Random) -> Plan:
        plan = cls(choose.choice(["text", "json"]))
        if choose.random() < 0.6:
            plan.ending = choose.choice(["SIGINT", "SIGTERM", "SIGHUP", "reader"])
            plan.after = choose.uniform(0, 1.5)
        calls = [*CALLS, *((name, {}) for name in HOSTILE if name not in ("waits", "clings"))]
        for _ in range(choose.randint(1, 6)):
            if choose.random() < 0.3:
                plan.responses.append(choose.choice(FAILURES))
                continue
            batch = choose.choices(calls, k=choose.choice([1, 1, 2, 5]))
            plan.responses.append({"content": [_call(*call) for call in batch]})
        if plan.ending.startswith("SIG"):
            endless = [*ENDLESS, *([("clings", {})] if full_run() else [])]
            last = choose.choice([{"content": "stalls ", "stall": True, "after": 1}, None])
            plan.responses.append(last or {"content": [_call(*choose.choice(endless))]})
        plan.responses.append("the end " * choose.choice([1, 10_000]))
        return plan


def _call(name: str, arguments: Any) -> dict[str, Any]:
    return {"type": "toolCall", "name": name, "arguments": arguments}


@pytest.mark.fault("E01", "K01", "K02", "K04")
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_in_which_everything_goes_wrong_ends_in_order(cli: Cli, seed: int) -> None:
    plan = Plan.drawn(random.Random(seed))
    scratch, descriptors = cli.home / "scratch", cli.home / "descriptors"
    scratch.mkdir()
    (cli.cwd / "file").write_text("a\n")
    (cli.config / "settings.json").write_text('{"retry": {"baseDelayMs": 1}}')
    mark = f"{os.getpid()}-{seed}-{cli.home}"
    cli.variables |= {MARK: mark, "TMPDIR": str(scratch), "DESCRIPTORS": str(descriptors)}
    with StrictServer(plan.responses, chunk=(1, 40), seed=seed) as server:
        cli.configure(server.base_url, contextWindow=10_000_000)
        code, out, err = run(cli, plan)
        left = processes_of(mark)
        server.assert_clean()
    check_output(plan, code, out, err)
    assert left == []
    if descriptors.exists():
        assert int(descriptors.read_text()) <= 10
    names = [path.name for folder in (scratch, cli.cwd, cli.home) for path in folder.rglob("*")]
    assert [name for name in names if name.endswith(".tmp")] == []
    assert [path.name for path in scratch.iterdir() if not path.name.startswith("cantle-bash-")] == []
    check_session(cli)


def run(cli: Cli, plan: Plan) -> tuple[int, bytes, str]:
    words = [sys.executable, hostile_tools.__file__, *OPTIONS, "--mode", plan.mode, "-p", "go"]
    with subprocess.Popen(
        words,
        cwd=cli.cwd,
        env=cli.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            if plan.ending != "none":
                try:
                    out, err = process.communicate(timeout=plan.after)
                    return process.returncode, out, err.decode()
                except subprocess.TimeoutExpired:
                    pass
            if plan.ending == "reader":
                assert process.stdout is not None
                process.stdout.close()
                process.stdout = None
            elif plan.ending != "none":
                process.send_signal(signal.Signals[plan.ending])
            out, err = process.communicate(timeout=TIMEOUT)
            return process.returncode, out or b"", err.decode()
        finally:
            process.kill()


def check_output(plan: Plan, code: int, out: bytes, err: str) -> None:
    expected = {0, 1}
    if plan.ending == "reader":
        expected.add(141)
    elif plan.ending != "none":
        number = signal.Signals[plan.ending]
        expected |= {128 + number, -number}
    assert code in expected, err
    assert "Traceback" not in err or before_main(err), err
    if plan.ending == "reader":
        return
    if plan.mode == "text":
        assert out in (
            b"",
            *(f"{text}\n".encode() for text in ("the end " * 1, "the end " * 10_000, "too lo")),
        )
        return
    records = [json.loads(line) for line in out.split(b"\n")[:-1]]
    assert out == b"" or out.endswith(b"}\n")
    if code >= 0:
        assert records[0]["type"] == "session" and records[-1]["type"] == "agent_settled"
    opened = [record["toolCallId"] for record in records if record["type"] == "tool_execution_start"]
    closed = [record["toolCallId"] for record in records if record["type"] == "tool_execution_end"]
    assert code < 0 or set(opened) <= set(closed)


def check_session(cli: Cli) -> None:
    """The session opens, however spoilt, and goes on: a strict server accepts what it has."""
    for file in cli.sessions():
        with Session.open(file) as session:
            assert session.context().messages[0].role == "user"
    with StrictServer(["going on"]) as server:
        cli.configure(server.base_url, contextWindow=10_000_000)
        done = cli.run(*OPTIONS, "-c", "-p", "what now?")
        server.assert_clean()
    assert (done.returncode, done.stdout) == (0, "going on\n"), done.stderr


def processes_of(mark: str) -> list[str]:
    """The command lines of processes that a run left behind. One that is just ending has a moment for it."""
    deadline = time.monotonic() + 2
    while (left := _alive(f"{MARK}={mark}".encode())) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left


def _alive(variable: bytes) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            if variable in (entry / "environ").read_bytes().split(b"\0"):
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return [command for command in found if command]
