"""Finds the fenced blocks of a Markdown page and says what is to be done with each.

What a page can say in a block's info string, after the language:

    ```json title="hello.json"   the block is written to that file in the page's folder
    ```python                    the block is run as a script in the page's folder
    ```console                   each `$ command` is run there; what follows is what it prints
    ```text output               what the block before printed

`...` alone on a line stands for any lines, within a line for any characters. The blocks of a page run in
order in one fresh folder. A block that cannot run says why, in a comment on the line above it:

    <!-- not run: needs a key -->
"""

import re
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"(?P<indent> *)(?P<ticks>`{3,})(?P<info>.*)")
_NOT_RUN = re.compile(r"\s*<!-- not run: (?P<reason>.+) -->\s*")
_TITLE = re.compile(r'title="(?P<name>[^"]+)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block: where its text begins, its language, the rest of its info string, its text."""

    page: Path
    line: int
    language: str
    info: str
    text: str
    not_run: str | None = None

    @property
    def title(self) -> str | None:
        """The file that this block shows, if it shows one."""
        found = _TITLE.search(self.info)
        return found["name"] if found else None


@dataclass(frozen=True, slots=True)
class Command:
    """One `$ command` of a console block, and the output that the page shows for it."""

    words: str
    expected: str


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found: list[Block] = []
    lines = page.read_text(encoding="utf-8").split("\n")
    number = 0
    while number < len(lines):
        fence = _FENCE.fullmatch(lines[number])
        if fence is None:
            number += 1
            continue
        end = number + 1
        while lines[end].strip() != fence["ticks"]:
            end += 1
        reason = _NOT_RUN.fullmatch(lines[number - 1]) if number else None
        language, _, info = fence["info"].strip().partition(" ")
        indent = fence["indent"]
        text = "\n".join(line.removeprefix(indent) for line in lines[number + 1 : end])
        found.append(
            Block(
                page=page,
                line=number + 2,
                language=language,
                info=info,
                text=text + "\n",
                not_run=reason["reason"] if reason else None,
            )
        )
        number = end + 1
    return found


def commands(text: str) -> list[Command]:
    """Split a console block at its `$` lines; a command goes on after a backslash at the end of a line."""
    found: list[Command] = []
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        lines = part.split("\n")
        length = 1
        while lines[length - 1].endswith("\\"):
            length += 1
        found.append(Command("\n".join(lines[:length]), "\n".join(lines[length:])))
    return found


def matches(expected: str, printed: str) -> bool:
    """Whether the printed text is the expected one, where `...` stands for anything."""
    pattern = []
    for line in expected.strip("\n").split("\n"):
        if line.strip() == "...":
            pattern.append(r"(?:.*\n)*?")
        else:
            pattern.append(
                r".*?".join(re.escape(piece) for piece in line.rstrip().split("...")) + r"[ \t]*\n"
            )
    return re.fullmatch("".join(pattern), printed.strip("\n") + "\n") is not None
