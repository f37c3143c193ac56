"""Plays each case once in a test run, through both programs at the same time, for all tests and workers."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.interop.case import Case, Run
from tests.interop.programs import Program, cantle, reference, run_case
from tests.support.file_lock import locked

__all__ = ["Recorder"]


class Recorder:
    """Keeps what was played in `folder`. `words` start the reference."""

    def __init__(self, folder: Path, words: Sequence[str]) -> None:
        self._folder = folder
        self._words = words

    def runs(self, case: Case) -> tuple[Run, Run]:
        """What Cantle did with the case, and what the reference did."""
        place = self._folder / case.name
        place.mkdir(parents=True, exist_ok=True)
        with locked(place / "lock"):
            kept = place / "runs.json"
            if not kept.exists():
                runs = self._play(case, place)
                kept.write_text(json.dumps([run.to_json() for run in runs]), "utf-8")
            ours, theirs = (Run.from_json(text) for text in json.loads(kept.read_text("utf-8")))
            return ours, theirs

    def _play(self, case: Case, place: Path) -> list[Run]:
        programs = [cantle(place / "ours"), reference(place / "theirs", self._words)]
        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(lambda program: _play(case, program), programs))


def _play(case: Case, program: Program) -> Run:
    home = Path(program.environment["HOME"])
    shutil.rmtree(home, ignore_errors=True)  # what is left of an attempt that failed
    project = home / "project"
    project.mkdir(parents=True)
    return run_case(case, program, project)
