"""One session that moves from API to API while the models, the network and the user do what they should not.

Each seed draws a journey of several runs of `cantle`, each before a model of another wire API, at one server that
refuses what the vendors would. Something goes wrong in most of them; the last asks in peace.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from cantle_ai.content import TextContent
from cantle_ai.messages import AssistantMessage, message_from_json
from cantle_ai.testing.server.server import StrictServer
from cantle_ai.usage import Usage
from cantle_session.session import Session
from packages.ai.tests.conformance.cases import text, thinking
from packages.ai.tests.conformance.column import Column, columns
from packages.cantle.tests.images.pictures import PNG
from tests.e2e.test_everything_goes_wrong import MARK, processes_of
from tests.interop.conftest import Reference
from tests.interop.programs import reference as reference_in
from tests.support.cli import TIMEOUT, Cli, before_main
from tests.support.reference import reference_program
from tests.support.samples import samples

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="finds what is left over in /proc"
)

COLUMNS = columns()
SECRET = "sk-secret"
PRICE = {"input": 3.0, "output": 15.0, "cacheRead": 0.3, "cacheWrite": 3.75, "cacheWrite1h": 6.0}
HOUR_LONG = ("anthropic-messages", "bedrock-converse-stream")
"""The APIs that say how long what was written to the cache is kept."""
LEVELS = ("off", "minimal", "low", "medium", "high", "xhigh", "max")
FIGURES = {"cacheRead": "cache_read", "cacheWrite": "cache_write", "reasoning": "reasoning"}
STATUS = {"SIGINT": 130, "SIGTERM": 143, "SIGHUP": 129, "SIGKILL": -9}


def secret(column: Column) -> str:
    return f"{SECRET}-{column.api}-0123456789"


@dataclass
class Journey:
    """What the server will say, and what it has said: each answer has a number in its text and a count to it."""

    cli: Cli
    choose: random.Random
    queue: deque[dict[str, Any]] = field(default_factory=deque)
    counts: dict[int, tuple[dict[str, int], str]] = field(default_factory=dict)
    """By an answer's number: what the server counted, and for how long a cache was asked to keep."""
    retention: str = "short"
    unknown_tool: str = "no such tool!"
    longest_wait: int = 60_000
    """Milliseconds for which a server is waited for, whatever it asks."""

    def next(self, body: object) -> dict[str, Any]:
        """The server's answer to a request."""
        return self.queue.popleft() if self.queue else self.whole(None)

    def whole(self, column: Column | None, *calls: dict[str, Any], **fields: Any) -> dict[str, Any]:
        """An answer that comes to its end. Without a column it counts what all APIs do."""
        number = len(self.counts) + 1
        usage = {"input": self.choose.randint(1, 5000), "output": self.choose.randint(100, 900)}
        for name, figure in FIGURES.items():
            if column is not None and figure in column.counts and self.choose.random() < 0.7:
                usage[name] = self.choose.randint(1, 90)
        self.counts[number] = usage, self.retention
        thought = [thinking(f"thought {number}")] if self.choose.random() < 0.5 else []
        content = [*thought, text(f"answer #{number}# 🎉"), *calls]
        return {"content": content, "usage": usage, **fields}

    def calls(self) -> list[dict[str, Any]]:
        """Calls side by side, most of which give something."""
        known: list[tuple[str, Any]] = [
            ("read", {"path": "note.txt"}),
            ("read", {"path": "dot.png"}),
            ("read", {"path": "missing"}),
            ("bash", {"command": "printf 'a\\033[2J\\377'; exit 3"}),
            ("bash", {"command": "true"}),
            ("bash", {"command": "sleep 300", "timeout": 0.05}),
            ("write", {"path": "new/file", "content": "line\n"}),
            ("edit", '{"path": '),
            ("read", {"path": 5}),
            (self.unknown_tool, {}),
        ]
        return [
            {"type": "toolCall", "name": name, "arguments": arguments}
            for name, arguments in self.choose.choices(known, k=self.choose.choice([1, 1, 2, 4]))
        ]

    def fault(self, column: Column, key: str) -> dict[str, Any]:
        """What goes wrong in place of an answer. The server says the key that it was sent."""
        tomorrow = 86_400_000 if self.longest_wait < 1000 else 1000
        said = {"content": [thinking("hm"), text("half of what was to be said")], "after": 3, "chunk": 4}
        faults: list[dict[str, Any]] = [
            {"error": {**column.overload, "retryAfterMs": 5}},
            {"error": {"status": 429, "message": "come back tomorrow", "retryAfterMs": tomorrow}},
            {"error": {"status": 503, "message": f"\x1b[31mbusy {key}"}},
            {"error": column.overflow},
            {"error": {"status": 401, "message": f"Wrong key {key}"}},
            {"error": {"status": 402, "message": "no money"}},
            {"content": "I", "rawStopReason": column.refusal},
            {"content": "too lo", "stopReason": "length"},
            {**said, "cut": True},
            {**said, "cut": "quiet"},
            {**said, "error": {"status": 500, "message": f"broke at {key}"}},
            {"http": {"drop": True}},
            {"http": {"body": "<html>gateway</html>", "contentType": "text/html", "status": 502}},
            {"http": {"body": "<html>not a stream</html>", "contentType": "text/html"}},
            {"http": {"body": ""}},
        ]
        return self.choose.choice(faults)

    def stall(self) -> dict[str, Any]:
        """What only an abort ends."""
        endless = {"type": "toolCall", "name": "bash", "arguments": {"command": "sleep 300"}}
        said = {"content": [thinking("hm"), text("stalls for ever")], "chunk": 4, "stall": True}
        return self.choose.choice(
            [
                {**said, "after": self.choose.randint(1, 4)},
                {"http": {"stall": True}},
                {"error": {"status": 429, "message": "wait", "retryAfterMs": 50_000}},
                self.whole(None, endless),
            ]
        )


@dataclass
class Step:
    """One run of the command."""

    words: list[str]
    mode: str
    ending: str = "none"
    requests: int = 0
    """So many requests come before the signal."""
    after: float = 0.0


def drawn(journey: Journey, column: Column, other: Column, *, calm: bool) -> Step:
    choose, cli = journey.choose, journey.cli
    journey.queue.clear()
    journey.retention = choose.choice(["none", "short", "long"])
    cli.variables["CANTLE_CACHE_RETENTION"] = journey.retention
    mode = choose.choice(["text", "json"])
    words = ["--model", f"on-{column.api}/m", "--thinking", choose.choice(LEVELS), "--mode", mode, "-p"]
    key = secret(column)
    fallback = not calm and choose.random() < 0.2
    if fallback:
        words += ["--fallback-model", f"on-{other.api}/m"]
        key = "of somebody"
    if cli.sessions():
        words.append("-c")
    if choose.random() < 0.3:
        words.append("@dot.png")
    step = Step([*words, f"Look, {column.api}. 👀"], mode)
    for _ in range(choose.randint(0, 2)):
        journey.queue.append(journey.whole(None if fallback else column, *journey.calls()))
        if not calm and choose.random() < 0.6:
            journey.queue.append(journey.fault(column, key))
    if not calm and choose.random() < 0.4:
        step.ending = choose.choice(["SIGINT", "SIGTERM", "SIGHUP", "SIGKILL"])
        step.requests = choose.randint(0, len(journey.queue) + 1)
        step.after = choose.uniform(0, 0.3)
        journey.queue.append(journey.stall())
    elif calm or choose.random() < 0.6:
        noise = choose.choice([[], [], ["comment", "unknown", "empty"]])
        journey.queue.append(journey.whole(None if fallback else column, noise=noise))
    else:
        journey.queue.append(journey.fault(column, key))
    return step


def configure(journey: Journey, server: StrictServer) -> None:
    """A provider for each API, its key written in one of the ways there are."""
    cli, choose = journey.cli, journey.choose
    providers: dict[str, Any] = {}
    for number, column in enumerate(COLUMNS):
        key, name = secret(column), f"SECRET_{number}"
        cli.variables[name] = key
        row = {
            "id": "m",
            "reasoning": True,
            "input": ["text", "image"],
            "cost": PRICE,
            "compat": dict(column.model.get("compat", {})),
            "thinkingLevelMap": dict(column.model.get("thinking_levels", {})),
        }
        providers[f"on-{column.api}"] = {
            "baseUrl": server.base_url_for(column.api),
            "api": column.api,
            "apiKey": choose.choice([key, f"${name}", f"!printf %s ${name}"]),
            "headers": dict(column.provider.get("headers", {})),
            "models": [row],
        }
        cli.variables |= column.environ
    (cli.config / "models.json").write_text(json.dumps({"providers": providers}), "utf-8")
    retry = {"baseDelayMs": 1, "maxRetries": 2, "maxAgentDelayMs": journey.longest_wait}
    (cli.config / "settings.json").write_text(json.dumps({"retry": retry}))


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(samples(200, 3)))
def test_a_journey_in_which_everything_goes_wrong_goes_on(cli: Cli, seed: int) -> None:
    journey = Journey(cli, random.Random(f"journey {seed}"))
    travel(journey, seed)


@pytest.mark.reference
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(samples(20, 2)))
def test_the_reference_goes_on_with_what_such_a_journey_left(cli: Cli, seed: int) -> None:
    reference = Reference(reference_in(cli.home, reference_program()), cli.cwd)
    # The reference sends a name back as it was said, which a strict server refuses it.
    travel(Journey(cli, random.Random(f"journey {seed}"), unknown_tool="no_such_tool"), seed)
    (file,) = cli.sessions()
    before = file.read_bytes()
    with StrictServer(["I see."], prefix=False) as server:
        reference.configure(server.base_url)
        assert "I see." in reference.run("--session", str(file), "-p", "And now?")
    assert file.read_bytes().startswith(before)


def travel(journey: Journey, seed: int) -> None:
    cli, choose = journey.cli, journey.choose
    journey.longest_wait = choose.choice([40, 60_000])
    scratch = cli.home / "scratch"
    scratch.mkdir()
    (cli.cwd / "note.txt").write_text("A note with ä and 😀.\n", encoding="utf-8")
    (cli.cwd / "dot.png").write_bytes(PNG)
    mark = f"{os.getpid()}-{seed}-{cli.home}"
    cli.variables |= {MARK: mark, "TMPDIR": str(scratch)}
    with StrictServer(journey.next, chunk=(1, 12), seed=seed) as server:
        configure(journey, server)
        for column in choose.choices(COLUMNS, k=choose.randint(2, 4)):
            step = drawn(journey, column, choose.choice(COLUMNS), calm=False)
            code, out, err = run(cli, step, server)
            if code == STATUS["SIGKILL"]:
                end_commands(mark)
            check_run(journey, step, code, out, err)
            assert processes_of(mark) == []
        # Whatever it was, it goes on in peace with any other.
        column = choose.choice(COLUMNS)
        step = drawn(journey, column, column, calm=True)
        code, out, err = run(cli, step, server)
        check_run(journey, step, code, out, err)
        assert code == 0, err
        server.assert_clean()
    assert processes_of(mark) == []
    check_files(cli, scratch)


def run(cli: Cli, step: Step, server: StrictServer) -> tuple[int, str, str]:
    wanted = len(server.requests) + step.requests
    with cli.started(*step.words) as process:
        if step.ending != "none":
            deadline = time.monotonic() + TIMEOUT
            while len(server.requests) < wanted and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.005)
            try:
                process.wait(step.after)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.Signals[step.ending])
        out, err = process.communicate(timeout=TIMEOUT)
        return process.returncode, out.decode(), err.decode()


def end_commands(mark: str) -> None:
    """A program that is killed cannot end the commands that it has started, and says so in its guide."""
    variable = f"{MARK}={mark}".encode()
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and variable in (entry / "environ").read_bytes().split(b"\0"):
                os.kill(int(entry.name), signal.SIGKILL)
        except OSError:
            continue


def check_run(journey: Journey, step: Step, code: int, out: str, err: str) -> None:
    said = f"{step}\ncode {code}\n{out[-3000:]}\n{err}"
    expected = {0, 1}
    if step.ending != "none":
        expected |= {STATUS[step.ending], -signal.Signals[step.ending]}
    assert code in expected, said
    assert "Traceback" not in err or before_main(err), said
    assert SECRET not in out and SECRET not in err, said
    assert "\x1b" not in err, said
    files = journey.cli.sessions()
    assert len(files) <= 1, said
    answers: list[AssistantMessage] = []
    for file in files:
        assert SECRET not in file.read_text("utf-8")
        with Session.open(file) as session:
            messages = session.context().messages
        assert not messages or messages[0].role == "user", said
        answers = [message for message in messages if isinstance(message, AssistantMessage)]
        for message in answers:
            check_usage(journey, message)
    if step.mode == "json":
        records = [json.loads(line) for line in out.split("\n")[: None if out.endswith("}") else -1]]
        for record in records:
            ended = message_from_json(record["message"]) if record["type"] == "message_end" else None
            if isinstance(ended, AssistantMessage):
                check_usage(journey, ended)
        if records and code >= 0:
            assert records[0]["type"] == "session" and records[-1]["type"] == "agent_settled", said
        # A signal that comes before the session is there ends the program without a word.
        assert records or code not in (0, 1), said
    if code in (0, 1):
        assert (code == 0) == (answers[-1].stop_reason == "stop"), said
        if step.mode == "text":
            assert out == ("" if answers[-1].failed else answers[-1].text + "\n"), said
        assert (err == "") or code == 1 or err.startswith("cantle: "), said
        assert err or code == 0, said


def check_usage(journey: Journey, message: AssistantMessage) -> None:
    """A whole answer has the server's own count, and costs what that makes."""
    found = re.findall(r"#(\d+)#", "".join(b.text for b in message.content if isinstance(b, TextContent)))
    if message.failed or not found:
        return
    given, retention = journey.counts[int(found[0])]
    usage = message.usage
    assert told(usage) == {**dict.fromkeys(FIGURES, 0), **given}, message.api
    writes = PRICE["cacheWrite1h" if retention == "long" and message.api in HOUR_LONG else "cacheWrite"]
    rates = {**PRICE, "cacheWrite": writes}
    cost = sum(given.get(name, 0) * rates[name] for name in ("input", "output", "cacheRead", "cacheWrite"))
    assert usage.cost.total == pytest.approx(cost / 1_000_000)


def told(usage: Usage) -> dict[str, int]:
    return {
        "input": usage.input,
        "output": usage.output,
        "cacheRead": usage.cache_read,
        "cacheWrite": usage.cache_write,
        "reasoning": usage.reasoning or 0,
    }


def check_files(cli: Cli, scratch: Path) -> None:
    """Nothing temporary is left, and no key is in any file but that in which the user has written it."""
    assert [path.name for path in scratch.iterdir() if not path.name.startswith("cantle-bash-")] == []
    for path in _files(cli.home):
        assert not path.name.endswith(".tmp"), path
        if path.name != "models.json":
            assert SECRET.encode() not in path.read_bytes(), path


def _files(*folders: Path) -> Iterator[Path]:
    for folder in folders:
        yield from (path for path in folder.rglob("*") if path.is_file())
