"""Both programs, set up against one loopback server."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.interop.recorded import Recorder
from tests.support.cli import Cli
from tests.support.reference import reference_environment, reference_program

MODEL = ["--provider", "loop", "--model", "m"]


@dataclass
class Reference:
    """Runs the reference in `cwd`, with everything that it keeps under `home`."""

    program: Sequence[str]
    home: Path
    cwd: Path

    def configure(self, base_url: str) -> None:
        """The same provider `loop` with model `m` as :meth:`Cli.configure` gives Cantle."""
        row = {"id": "m", "contextWindow": 100_000, "maxTokens": 4096}
        provider = {"baseUrl": base_url, "api": "openai-completions", "apiKey": "sk-loop", "models": [row]}
        folder = self.home / "pi"
        folder.mkdir(exist_ok=True)
        (folder / "models.json").write_text(json.dumps({"providers": {"loop": provider}}), "utf-8")

    def run(self, *words: str) -> str:
        """Run to the end and return what it printed; fails if it does."""
        done = subprocess.run(
            [*self.program, *MODEL, *words],
            cwd=self.cwd,
            env=reference_environment(self.home),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=50,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def records(self, *words: str) -> list[dict[str, Any]]:
        """The records of a run in JSON mode."""
        return [json.loads(line) for line in self.run("--mode", "json", *words).split("\n") if line]

    def sessions(self) -> list[Path]:
        return sorted((self.home / "pi" / "sessions").glob("*/*.jsonl"))


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    home, cwd = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    cwd.mkdir()
    return Cli(home, cwd)


@pytest.fixture
def reference(cli: Cli) -> Reference:
    """The reference, in the same folder as `cli`. Skips where it is not asked for."""
    return Reference(reference_program(), cli.home, cli.cwd)


@pytest.fixture(scope="session")
def recorder(tmp_path_factory: pytest.TempPathFactory) -> Recorder:
    """What was played in this test run, by whichever of its workers."""
    words = reference_program()
    folder = tmp_path_factory.getbasetemp()
    if folder.name.startswith("popen-"):
        folder = folder.parent
    return Recorder(folder / "reference-cases", words)
