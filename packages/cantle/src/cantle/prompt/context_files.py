"""Instructions that people leave in their folders: `AGENTS.md`, `CLAUDE.md`, and files that shape the prompt.

One context file per folder, the first of :data:`CONTEXT_NAMES` that is there: from the configuration folder,
then from the outermost parent of the working directory down to itself. They need no trust; the files in a
project's `.cantle` do.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from cantle.errors import ConfigurationFileError
from cantle.paths import is_file, project_directory
from cantle_ai.system_errors import reason_of

__all__ = ["CONTEXT_NAMES", "ContextFile", "load_context_files", "prompt_file"]

CONTEXT_NAMES = ("AGENTS.override.md", "AGENTS.md", "AGENTS.MD", "CLAUDE.md", "CLAUDE.MD")


class ContextFile(Struct, frozen=True):
    """One file of instructions."""

    path: Path
    text: str


def load_context_files(cwd: Path, config_dir: Path) -> list[ContextFile]:
    """The context files that apply in `cwd`, outermost first, none of them twice. Empty files are left out.

    Raises :class:`ConfigurationFileError` for one that is there but cannot be read.
    """
    found: dict[str, ContextFile] = {}
    for folder in (config_dir, *reversed(cwd.parents), cwd):
        path = _first(folder)
        if path is not None and (real := os.path.realpath(path)) not in found:
            found[real] = ContextFile(path, read_text(path))
    return [file for file in found.values() if file.text.strip()]


def prompt_file(name: str, *, cwd: Path, config_dir: Path, trusted: bool) -> str | None:
    """The text of `SYSTEM.md` or `APPEND_SYSTEM.md`: a trusted project's, or else the user's; None without one."""
    folders: Iterable[Path] = (project_directory(cwd), config_dir) if trusted else (config_dir,)
    for folder in folders:
        path = folder / name
        if is_file(path):
            return read_text(path)
    return None


def read_text(path: Path) -> str:
    """A text file as UTF-8, odd bytes as U+FFFD. Raises :class:`ConfigurationFileError`."""
    try:
        return path.read_bytes().decode("utf-8-sig", "replace")
    except OSError as error:
        raise ConfigurationFileError(
            f"{path} cannot be read: {reason_of(error)}.", "Check its permissions."
        ) from None


def _first(folder: Path) -> Path | None:
    return next((path for name in CONTEXT_NAMES if is_file(path := folder / name)), None)
