"""Every example in the documentation does what its page says."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.docs.blocks import Block, blocks, commands, matches
from tests.support.paths import ROOT, own_files

PAGES = [path for path in own_files() if path.suffix == ".md" and "tests" not in path.relative_to(ROOT).parts]
BLOCKS = [block for page in PAGES for block in blocks(page)]

RUNNABLE = {"python", "console", "sh", "bash"}
SHOWN = {"json", "jsonl", "toml", "text", "markdown"}

# Blocks that say why they are not run, for each page. A new one is a decision: change this table with it.
NOT_RUN: dict[str, int] = {
    "README.md": 3,
    "docs/formats/models.md": 1,
    "docs/guide/auth.md": 2,
    "docs/guide/getting-started.md": 3,
    "docs/guide/local.md": 3,
    "docs/guide/models.md": 1,
    "docs/guide/providers/README.md": 1,
    "docs/guide/providers/gateways.md": 1,
    "docs/guide/providers/google.md": 1,
    "docs/guide/providers/local-servers.md": 1,
    "docs/guide/providers/bedrock.md": 1,
    "docs/guide/providers/mistral.md": 1,
    "packages/cantle/README.md": 1,
}


def page_name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def place(block: Block) -> str:
    return f"{page_name(block.page)}:{block.line}"


def environment(home: Path) -> dict[str, str]:
    """A person's environment with nothing in it: no keys, no settings, no network needed."""
    programs = Path(sys.executable).parent
    kept = {name: os.environ[name] for name in ("SYSTEMROOT", "TMPDIR", "TEMP") if name in os.environ}
    return {
        **kept,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(home),
        "USERPROFILE": str(home),
        "CANTLE_OFFLINE": "1",
        "COLUMNS": "100",
        "PYTHONUTF8": "1",
    }


def run(words: list[str], folder: Path, home: Path) -> tuple[int, str]:
    done = subprocess.run(
        words,
        cwd=folder,
        env=environment(home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=50,
        check=False,
    )
    return done.returncode, done.stdout


def carry_out(block: Block, folder: Path, home: Path) -> str | None:
    """Do what a block says; what a script printed, for the output block that may follow."""
    if block.title is not None:
        target = folder / block.title
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(block.text, encoding="utf-8")
    elif block.language == "python":
        code, printed = run([sys.executable, "-c", block.text], folder, home)
        assert code == 0, f"{place(block)}: exit status {code}\n{printed}"
        return printed
    elif block.language == "console":
        found = commands(block.text)
        assert found, f"{place(block)}: a console block without a `$ command`"
        for command in found:
            _, printed = run(["bash", "-c", command.words], folder, home)
            if not matches(command.expected, printed):
                raise AssertionError(
                    f"{place(block)}: $ {command.words}\n--- the page\n{command.expected}\n--- printed\n{printed}"
                )
    return None


@pytest.mark.skipif(os.name == "nt", reason="the pages speak to a POSIX shell")
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=page_name)
def test_the_examples_of_a_page_work(page: Path, tmp_path: Path) -> None:
    folder, home = tmp_path / "project", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    printed: str | None = None
    for block in blocks(page):
        if block.info == "output":
            assert printed is not None, f"{place(block)}: nothing ran before this output"
            assert matches(block.text, printed), f"{place(block)}: printed\n{printed}"
        elif block.not_run is None:
            printed = carry_out(block, folder, home)


@pytest.mark.parametrize("block", BLOCKS, ids=place)
def test_a_block_is_of_a_known_kind(block: Block) -> None:
    assert block.language in RUNNABLE | SHOWN
    if block.language in {"sh", "bash"}:
        assert block.not_run, "use a console block, or say why the commands can't run here"
    if block.language == "json" and block.not_run is None:
        json.loads(block.text)
    if block.language == "jsonl":
        for line in block.text.strip().split("\n"):
            json.loads(line)
    if block.language == "toml" and block.not_run is None:
        tomllib.loads(block.text)


def test_the_blocks_that_are_not_run_are_counted() -> None:
    counted: dict[str, int] = {}
    for block in BLOCKS:
        if block.not_run is not None:
            counted[page_name(block.page)] = counted.get(page_name(block.page), 0) + 1
    assert counted == NOT_RUN


def test_every_link_between_pages_leads_somewhere() -> None:

    broken = [
        f"{page_name(page)}: {target}"
        for page in PAGES
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8"))
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert broken == []
