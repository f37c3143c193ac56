"""What the tests of the searching tools share: both ways of reading, and a search without a model."""

import asyncio
import os
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest

from cantle.tools.grep.search import Request, search
from cantle.tools.search.content import Content
from cantle.tools.search.nodes import Node
from cantle.tools.search.pattern import parse_pattern
from cantle.tools.search.ripgrep import Halt, find_ripgrep
from cantle.tools.search.walk import Unreadable, walk
from cantle_agent.tool import ToolError, ToolResult
from packages.cantle.tests.tools.harness import text_of
from tests.support.extras import needs

BACK_ENDS = [
    pytest.param(None, id="own"),
    pytest.param(find_ripgrep(), marks=needs("search"), id="ripgrep"),
]
both = pytest.mark.parametrize("program", BACK_ENDS)
"""Runs a test with our own reading and with ripgrep's."""


def unchecked() -> None:
    """A check that lets everything go on."""


def grep(folder: Path, pattern: str, program: str | None, path: str = ".", **more: object) -> ToolResult:
    """What `grep` gives, by the program or by ourselves."""
    settings: dict[str, object] = {
        "glob": None, "ignore_case": False, "literal": False, "context": 0, "limit": 100, **more
    }  # fmt: skip
    request = Request(pattern=pattern, path=path, **settings)  # type: ignore[arg-type]
    return search(folder, request, program, Halt(), unchecked)


def grep_text(folder: Path, pattern: str, program: str | None, path: str = ".", **more: object) -> str:
    return text_of(grep(folder, pattern, program, path, **more))


def refusal(work: Callable[[], object]) -> str:
    """What a model reads of a call that can't be done."""
    with pytest.raises(ToolError) as problem:
        work()
    return str(problem.value)


def walked(folder: Path, kinds: str = "file") -> list[bytes]:
    """The paths that the walk gives, of those kinds."""
    return [entry.path for entry in walk(str(folder.resolve()), [], unchecked) if entry.kind in kinds]


Found = list[tuple[bytes, list[tuple[int, bytes, bool]]]]


def found_in(
    folder: Path, node: Node | str, program: str | None, *, context: int = 0, most: int = 2_000
) -> Found:
    """Every file with a match below the folder, with its first lines."""
    unreadable: list[Unreadable] = []
    content = Content(
        root=str(folder),
        node=parse_pattern(node) if isinstance(node, str) else node,
        context=context,
        most=most,
        check=unchecked,
        halt=Halt(),
        unreadable=unreadable,
        program=program,
    )
    return [
        (file.path, [(line.number, line.data, line.is_match) for line in islice(file.lines, most)])
        for file in content.search(walked(folder))
    ]


def write_files(folder: Path, files: dict[str, str | bytes]) -> None:
    """Write files, with the folders that are missing."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def program_that(folder: Path, script: str) -> str:
    """A program of that name which runs a shell script instead of searching."""
    if os.name == "nt":
        pytest.skip("the stand-in for ripgrep is a shell script")
    path = folder / "rg"
    path.write_text(f"#!/bin/sh\n{script}\n", "utf-8")
    path.chmod(0o755)
    return str(path)


async def until(condition: Callable[[], bool]) -> None:
    """Let other tasks and threads go on until something is the case."""
    for _ in range(2_000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not come to be")
