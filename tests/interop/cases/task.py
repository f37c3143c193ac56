"""The job of the demo: six tool calls mend a project whose tests fail."""

from __future__ import annotations

from pathlib import Path

import cantle.demo
from cantle.demo.script import PROMPT, responses
from tests.interop.case import Case

_PROJECT = Path(cantle.demo.__file__).parent / "project"
_FILES = {
    path.relative_to(_PROJECT).as_posix(): path.read_bytes()
    for path in sorted(_PROJECT.rglob("*"))
    if path.is_file() and "__pycache__" not in path.parts
}

CASES = [
    Case(
        name="six-calls",
        answers=responses(),
        words=("--mode", "json", PROMPT),
        files=_FILES,
        volatile=(r"in \d+\.\d+s",),
    ),
]
