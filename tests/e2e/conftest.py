"""A command line with its own configuration folder, and a project for it to work on."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import cantle.demo
from tests.support.cli import Cli

SOURCE = Path(cantle.demo.__file__).parent / "project"


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """`cantle` in an empty folder."""
    home, cwd = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    cwd.mkdir()
    return Cli(home, cwd)


@pytest.fixture
def shop(cli: Cli) -> Cli:
    """`cantle` in a copy of the demo's project, whose tests fail."""
    shutil.copytree(SOURCE, cli.cwd, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    return cli
