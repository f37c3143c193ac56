"""Where things lie: the configuration folder, a project's folder, sessions, and our own documentation.

$CANTLE_DIR, or ~/.cantle
    settings.json  models.json  auth.json  trust.json
    SYSTEM.md  APPEND_SYSTEM.md  AGENTS.md
    sessions/  weights/
<working directory>/.cantle
    settings.json  SYSTEM.md  APPEND_SYSTEM.md
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from cantle.errors import UserError, WorkingDirectoryError

__all__ = [
    "ConfigPaths",
    "Documentation",
    "config_directory",
    "documentation",
    "is_file",
    "is_folder",
    "present",
    "project_directory",
    "user_path",
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

    @property
    def weights(self) -> Path:
        """Where `cantle local setup` puts the weights of a model."""
        return self.root / "weights"


class Documentation(Struct, frozen=True):
    """The three places where Cantle's own documentation lies."""

    readme: Path
    docs: Path
    examples: Path


def config_directory(environ: Mapping[str, str] | None = None) -> Path:
    """`CANTLE_DIR` (a leading `~` is the home folder), or `~/.cantle`. It need not exist.

    Raises :class:`UserError` when a home folder or the working directory is needed to tell, and not known.
    """
    configured = (os.environ if environ is None else environ).get("CANTLE_DIR")
    if configured:
        path = user_path(configured)
        return path if path.is_absolute() else working_directory() / path
    try:
        return Path.home() / ".cantle"
    except RuntimeError:
        raise UserError(
            "Your home folder is not known.", "Set HOME, or CANTLE_DIR to a folder for the configuration."
        ) from None


def user_path(text: str) -> Path:
    """`text` as a path, a leading `~` or `~name` replaced by that home folder. Raises :class:`UserError`."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise UserError(
            f"The home folder that {text} begins with is not known.", "Write the path out."
        ) from None


def is_folder(path: Path) -> bool:
    """Whether `path` is a folder. False, too, for what is out of reach or can be no path."""
    return stat.S_ISDIR(_mode(path))


def is_file(path: Path) -> bool:
    """Whether `path` is a regular file. False, too, for what is out of reach or can be no path."""
    return stat.S_ISREG(_mode(path))


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode
    except (OSError, ValueError):
        return 0


def present(path: Path) -> bool:
    """Whether there is something at `path`, which may be out of reach: reading it will say so."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def project_directory(cwd: Path) -> Path:
    """A project's own configuration folder, `.cantle` in its working directory."""
    return cwd / PROJECT_DIRECTORY


def working_directory(path: str | Path | None = None) -> Path:
    """`path`, or the process's working directory, as an absolute path.

    Raises :class:`WorkingDirectoryError` when it is gone, is not a folder or out of reach.
    """
    try:
        absolute = Path(os.path.realpath(Path.cwd() if path is None else user_path(str(path))))
    except ValueError:
        raise WorkingDirectoryError(
            f"No folder can have the name {str(path)!r}.", "Choose another folder."
        ) from None
    except FileNotFoundError:
        raise WorkingDirectoryError(
            "The current working directory no longer exists.", "Change to a folder that exists and try again."
        ) from None
    if not is_folder(absolute):
        problem = "is not a folder" if present(absolute) else "does not exist"
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
