"""Where things lie: the configuration folder, a project's folder, sessions, and our own documentation.

$CANTLE_DIR, or ~/.cantle
    settings.json  models.json  auth.json  trust.json
    SYSTEM.md  APPEND_SYSTEM.md  AGENTS.md
    sessions/
<working directory>/.cantle
    settings.json  SYSTEM.md  APPEND_SYSTEM.md
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from cantle.errors import WorkingDirectoryError

__all__ = [
    "ConfigPaths",
    "Documentation",
    "config_directory",
    "documentation",
    "project_directory",
    "working_directory",
]

PROJECT_DIRECTORY = ".cantle"


class ConfigPaths(Struct, frozen=True):
    """The files of one configuration folder. None of them has to exist."""

    root: Path

    @property
    def settings(self) -> Path:
        return self.root / "settings.json"

    @property
    def models(self) -> Path:
        return self.root / "models.json"

    @property
    def auth(self) -> Path:
        return self.root / "auth.json"

    @property
    def trust(self) -> Path:
        return self.root / "trust.json"

    @property
    def sessions(self) -> Path:
        return self.root / "sessions"


class Documentation(Struct, frozen=True):
    """The three places where Cantle's own documentation lies."""

    readme: Path
    docs: Path
    examples: Path


def config_directory(environ: Mapping[str, str] | None = None) -> Path:
    """`CANTLE_DIR` (a leading `~` is the home folder), or `~/.cantle`. It need not exist."""
    configured = (os.environ if environ is None else environ).get("CANTLE_DIR")
    if configured:
        return Path(configured).expanduser().absolute()
    return Path.home() / ".cantle"


def project_directory(cwd: Path) -> Path:
    """A project's own configuration folder, `.cantle` in its working directory."""
    return cwd / PROJECT_DIRECTORY


def working_directory(path: str | Path | None = None) -> Path:
    """`path`, or the process's working directory, as an absolute path.

    Raises :class:`WorkingDirectoryError` when it is gone or is not a folder.
    """
    try:
        absolute = (Path.cwd() if path is None else Path(path).expanduser()).resolve()
    except FileNotFoundError:
        raise WorkingDirectoryError(
            "The current working directory no longer exists.", "Change to a folder that exists and try again."
        ) from None
    if not absolute.is_dir():
        problem = "is not a folder" if absolute.exists() else "does not exist"
        raise WorkingDirectoryError(
            f"The working directory {absolute} {problem}.", "Create it, or choose another folder."
        )
    return absolute


def documentation() -> Documentation:
    """README, docs and examples: inside the package once it is installed, at the root of a checkout otherwise."""
    package = Path(__file__).parent
    root = package / "_share"
    if not root.is_dir():
        root = package.parents[3]
    return Documentation(root / "README.md", root / "docs", root / "examples")
