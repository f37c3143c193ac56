"""Runs a case through one program: a home and a project of its own, the same answers, everything written down."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cantle_ai.testing.server.server import StrictServer
from cantle_ai.testing.server.strictness import Strictness
from tests.interop.case import Case, Run, Step
from tests.support.cli import Cli
from tests.support.reference import reference_environment

__all__ = ["MODEL", "Program", "cantle", "reference", "run_case"]

MODEL = ["--provider", "loop", "--model", "m"]

_USAGE = {"input": 100, "output": 10}
"""Counted by the server, it would depend on how long each program's own prompt is."""

_KEPT_APART = {"sessions", "__pycache__"}


@dataclass(frozen=True)
class Program:
    """A command line, and where it keeps its files. `prefix` begins its environment variables."""

    name: str
    words: Sequence[str]
    environment: Mapping[str, str]
    config: Path
    prefix: str

    def configure(self, address: Callable[[str], str], case: Case) -> None:
        """Write `models.json` and `settings.json`. `address` gives the base URL of a wire API."""
        self.config.mkdir(parents=True, exist_ok=True)
        row = {"id": "m", "contextWindow": 100_000, "maxTokens": 4096, **case.model}
        providers = {
            f"loop{number if number > 1 else ''}": {
                "baseUrl": address(api),
                "api": api,
                "apiKey": "sk-loop",
                "models": [row],
                **case.provider,
            }
            for number, api in enumerate(case.apis, 1)
        }
        (self.config / "models.json").write_text(json.dumps({"providers": providers}), "utf-8")
        if case.settings:
            (self.config / "settings.json").write_text(json.dumps(case.settings), "utf-8")

    def sessions(self) -> list[Path]:
        """The session files in the program's own store, oldest first."""
        return sorted((self.config / "sessions").glob("*/*.jsonl"))

    def variables(self, case: Case) -> dict[str, str]:
        """What the case adds to the environment."""
        return {
            **case.environment,
            **{f"{self.prefix}_{name}": value for name, value in case.variables.items()},
        }

    def run(self, words: Sequence[str], cwd: Path, variables: Mapping[str, str], stdin: str = "") -> Step:
        """Run one command to its end."""
        done = subprocess.run(
            [*self.words, *words],
            cwd=cwd,
            env={**self.environment, **variables},
            input=stdin.encode(),
            capture_output=True,
            timeout=50,
            check=False,
        )
        stdout = done.stdout.decode()
        return Step(
            code=done.returncode, stdout=stdout, stderr=done.stderr.decode(), records=_records(stdout)
        )


def cantle(home: Path) -> Program:
    """Cantle from this checkout."""
    cli = Cli(home, home)
    return Program("cantle", Cli.words(), cli.environment(), home / "cantle", "CANTLE")


def reference(home: Path, words: Sequence[str]) -> Program:
    """The reference; `words` start it."""
    return Program("reference", words, reference_environment(home), home / "pi", "PI")


def run_case(case: Case, program: Program, project: Path) -> Run:
    """Play the case. `project` is an empty folder for the program to work in."""
    for name, content in case.files.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    answers = [_with_usage(answer) for answer in case.answers]
    strictness = Strictness(extra_fields=tuple(case.extra_fields))
    steps: list[Step] = []
    variables = program.variables(case)
    with StrictServer(answers, strictness=strictness, prefix=case.prefix) as server:
        program.configure(server.base_url_for, case)
        for number, line in enumerate(case.command_lines()):
            words = [*(MODEL if case.choose_model else ()), *_filled(line, program.sessions())]
            steps.append(program.run(words, project, variables, case.stdin if number == 0 else ""))
    return Run(
        program=program.name,
        places=_places(program, project, server.base_url),
        steps=steps,
        requests=[
            {
                "method": one.call.method,
                "path": one.call.path,
                "headers": dict(one.call.headers),
                "body": json.loads(one.body),
                "rule": one.rule,
            }
            for one in server.requests
        ],
        sessions=[_lines(file) for file in [*program.sessions(), *sorted(project.glob("sessions/*.jsonl"))]],
        files={
            str(path.relative_to(project)): path.read_bytes().decode("latin-1")
            for path in sorted(project.rglob("*"))
            if path.is_file() and not _KEPT_APART & set(path.relative_to(project).parts)
        },
    )


def _with_usage(answer: Any) -> Any:
    given = {"content": answer} if isinstance(answer, str) else dict(answer)
    return given if given.keys() & {"usage", "error", "http"} else {**given, "usage": _USAGE}


def _filled(words: Sequence[str], sessions: Sequence[Path]) -> list[str]:
    if not sessions:
        return list(words)
    file = sessions[-1]
    identity = json.loads(file.read_text("utf-8").partition("\n")[0])["id"]
    return [word.replace("{file}", str(file)).replace("{id}", identity) for word in words]


def _places(program: Program, project: Path, base_url: str) -> dict[str, str]:
    """The longest paths come first, so that no place hides inside another."""
    home = program.environment["HOME"]
    return {
        "config": str(program.config),
        "project-folder": "--" + str(project).strip("/").replace("/", "-") + "--",
        "project": str(project),
        "home": home,
        "server": base_url.removesuffix("/v1"),
        "python": sys.executable,
        "temporary": os.environ.get("TMPDIR", "/tmp"),
    }


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").split("\n") if line]


def _records(stdout: str) -> list[dict[str, Any]]:
    try:
        found = [json.loads(line) for line in stdout.split("\n") if line]
    except ValueError:
        return []
    return found if all(isinstance(one, dict) for one in found) else []
