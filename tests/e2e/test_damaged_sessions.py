"""Session files that are not sound, at the command line: shown and gone on with as far as they go, repaired beside."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cantle_session.session import Session
from tests.e2e.test_sessions_command import SCRIPT
from tests.support.cli import TIMEOUT, Cli
from tests.support.privileges import bound_by_permissions
from tests.support.samples import samples

HEADER: dict[str, Any] = {
    "type": "session",
    "version": 3,
    "id": "task",
    "timestamp": "2026-01-01T00:00:00.000Z",
}


def said(entry_id: str, parent_id: str | None, text: str) -> dict[str, Any]:
    message = {"role": "user", "content": text, "timestamp": 1}
    place = {"id": entry_id, "parentId": parent_id, "timestamp": "2026-01-01T00:00:00.000Z"}
    return {"type": "message", **place, "message": message}


ONE, TWO, THREE = said("a1", None, "One."), said("a2", "a1", "Two."), said("a3", "a2", "Three.")

DAMAGED: dict[str, tuple[list[Any], int, list[str]]] = {
    "a torn tail": ([ONE, TWO, b'{"type":"message","id":"a3","par'], 4, ["One.", "Two."]),
    "a NUL block after a power cut": ([ONE, b"\0" * 4096, TWO], 3, ["One.", "Two."]),
    "two headers": ([ONE, HEADER, TWO], 3, ["One.", "Two."]),
    "a missing parent": ([ONE, said("a2", "gone", "Two.")], 3, ["Two."]),
    "a circle": ([ONE, said("a2", "a3", "Two."), said("a3", "a2", "Three.")], 3, ["Two.", "Three."]),
    "ids that occur twice": ([ONE, TWO, said("a2", "a2", "Three.")], 4, ["One.", "Two.", "Three."]),
    "a foreign line in the middle": ([ONE, b"Dear diary,", TWO], 3, ["One.", "Two."]),
    "a version that is none": ([{**HEADER, "version": "three"}, ONE], 1, ["One."]),
}
"""What is in the file behind the header, the line that is named, and what the model would still be told."""


@pytest.fixture(params=list(DAMAGED)[: samples(len(DAMAGED), 3)])
def damaged(request: pytest.FixtureRequest, cli: Cli) -> tuple[Path, int, list[str]]:
    rows, line, kept = DAMAGED[request.param]
    header = {**HEADER, "cwd": str(cli.cwd)}
    if isinstance(rows[0], dict) and rows[0].get("type") == "session":
        header, rows = {**rows[0], "cwd": str(cli.cwd)}, rows[1:]
    encoded = [row if isinstance(row, bytes) else json.dumps(row).encode() for row in [header, *rows]]
    file = cli.cwd / "2026-01-01T00-00-00-000Z_task.jsonl"
    file.write_bytes(b"\n".join(encoded) + (b"" if "torn" in request.param else b"\n"))
    (cli.cwd / "ok.json").write_text(json.dumps(SCRIPT), encoding="utf-8")
    return file, line, kept


def questions(text: str) -> list[str]:
    """What the user said, in lines of `show --json`."""
    records = [json.loads(line) for line in text.split("\n")[:-1]]
    return [record["message"]["content"] for record in records if record["type"] == "message"]


def test_it_is_shown_as_far_as_it_is_sound(cli: Cli, damaged: tuple[Path, int, list[str]]) -> None:
    file, line, kept = damaged
    before = file.read_bytes()
    done = cli.run_warm("sessions", "show", "--json", str(file))
    assert done.returncode == 0 and questions(done.stdout) == kept
    warnings = done.stderr.split("\n")[:-1]
    assert any(text.startswith(f"cantle: warning: line {line}: ") for text in warnings), warnings
    assert warnings[-1] == f"cantle: `cantle sessions repair {file}` writes a sound copy beside it."
    for command in (["show", "--tree"], ["show", "--context"], ["stats"]):
        done = cli.run_warm("sessions", *command, str(file))
        assert done.returncode == 0 and f"line {line}: " in done.stderr, done.stderr
    tree = cli.run_warm("sessions", "show", "--tree", str(file)).stdout
    every = questions(cli.run_warm("sessions", "show", "--tree", "--json", str(file)).stdout)
    assert sorted(tree.count(f" {text}\n") for text in every) == [1] * len(every)
    assert file.read_bytes() == before


def test_it_goes_on_behind_what_was_there(cli: Cli, damaged: tuple[Path, int, list[str]]) -> None:
    file, _, kept = damaged
    before = file.read_bytes()
    done = cli.run_warm(
        "--provider", "scripted", "--model", "ok.json", "--session", str(file), "-p", "Go on."
    )
    assert (done.returncode, done.stdout) == (0, "OK.\n"), done.stderr
    assert file.read_bytes().startswith(before)
    told = questions(cli.run_warm("sessions", "show", "--json", str(file)).stdout)
    assert told[: len(kept)] == kept and len(told) == len(kept) + 2


def test_it_is_repaired_beside_itself(cli: Cli, damaged: tuple[Path, int, list[str]]) -> None:
    file, line, kept = damaged
    before = file.read_bytes()
    done = cli.run_warm("sessions", "repair", str(file))
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    *problems, last = done.stdout.split("\n")[:-1]
    assert any(problem.startswith(f"line {line}: ") for problem in problems), problems
    copy = Path(last.partition(": ")[0])
    assert copy.parent == file.parent and file.read_bytes() == before
    with Session.open(copy) as session:
        assert session.warnings == []
        assert [message.to_json()["content"] for message in session.context().messages] == kept
    again = cli.run_warm("sessions", "repair", str(copy))
    assert (again.returncode, again.stdout) == (0, f"{copy} is sound.\n")


def test_what_lies_behind_a_lost_header_can_be_repaired(cli: Cli) -> None:
    file = cli.cwd / "lost.jsonl"
    rows = [b"\0" * 512, json.dumps({**HEADER, "cwd": str(cli.cwd)}).encode(), json.dumps(ONE).encode()]
    file.write_bytes(b"\n".join(rows) + b"\n")
    assert cli.run_warm("sessions", "show", str(file)).stderr.endswith(", or repair it.\n")
    done = cli.run_warm("sessions", "repair", str(file))
    copy = done.stdout.split("\n")[-2].partition(": ")[0]
    assert questions(cli.run_warm("sessions", "show", "--json", copy).stdout) == ["One."]


def test_without_the_right_to_read_it(cli: Cli) -> None:
    file = cli.cwd / "secret.jsonl"
    file.write_text(json.dumps({**HEADER, "cwd": str(cli.cwd)}) + "\n", encoding="utf-8")
    file.chmod(0o000)
    for command in ("show", "stats", "export", "fork", "repair", "import"):
        done = subprocess.run(
            bound_by_permissions(cli.words("sessions", command, str(file))),
            cwd=cli.cwd,
            env=cli.environment(),
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=TIMEOUT,
        )
        assert done.returncode == 1
        assert done.stderr.startswith("cantle: ") and done.stderr.count("\n") == 1, done.stderr
        assert "secret.jsonl" in done.stderr and "permission denied" in done.stderr
