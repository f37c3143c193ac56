"""Both programs, set up against one loopback server."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.interop import programs
from tests.interop.case import Case
from tests.interop.programs import MODEL, Program
from tests.interop.recorded import Recorder
from tests.support.cli import Cli
from tests.support.reference import reference_program


@dataclass(frozen=True)
class Reference:
    """Runs the reference in `cwd` to a good end."""

    program: Program
    cwd: Path

    def configure(self, base_url: str) -> None:
        """The same provider `loop` with model `m` as :meth:`Cli.configure` gives Cantle."""
        self.program.configure(lambda api: base_url, Case(name="reference"))

    def run(self, *words: str) -> str:
        """Run to the end and return what it printed; fails if it does."""
        step = self.program.run([*MODEL, *words], self.cwd, {})
        assert step.code == 0, step.stdout + step.stderr
        return step.stdout

    def records(self, *words: str) -> list[dict[str, Any]]:
        """The records of a run in JSON mode."""
        step = self.program.run([*MODEL, "--mode", "json", *words], self.cwd, {})
        assert step.code == 0 and step.records, step.stdout + step.stderr
        return step.records

    def sessions(self) -> list[Path]:
        return self.program.sessions()


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    home, cwd = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    cwd.mkdir()
    return Cli(home, cwd)


@pytest.fixture
def reference(cli: Cli) -> Reference:
    """The reference, in the same folder as `cli`. Skips where it is not asked for."""
    return Reference(programs.reference(cli.home, reference_program()), cli.cwd)


@pytest.fixture(scope="session")
def recorder(tmp_path_factory: pytest.TempPathFactory) -> Recorder:
    """What was played in this test run, by whichever of its workers."""
    words = reference_program()
    folder = tmp_path_factory.getbasetemp()
    if folder.name.startswith("popen-"):
        folder = folder.parent
    return Recorder(folder / "reference-cases", words)
