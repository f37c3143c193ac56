"""Whether a project's own configuration is read: `trust.json`, the flags and the user's default.

    {"/home/me/work": true, "/home/me/work/vendor": false}

Paths are canonical folders; the closest one at or above the working directory decides. Trust is about what
is *loaded* from a project; it does not limit what the model's tools may touch.
"""

from __future__ import annotations

import os
from pathlib import Path

from cantle.errors import ConfigurationFileError
from cantle.json_file import read_json_file, update_json_file
from cantle.paths import is_folder, present, project_directory
from cantle.settings import ProjectTrust
from cantle_ai.codec import JsonObject

__all__ = ["decide_trust", "needs_trust", "save_decision", "saved_decision"]

PROTECTED = (
    "settings.json",
    "mcp.json",
    "extensions",
    "skills",
    "prompts",
    "themes",
    "SYSTEM.md",
    "APPEND_SYSTEM.md",
)
"""What, inside a project's `.cantle`, is loaded only with trust."""


def needs_trust(cwd: Path, config_dir: Path) -> bool:
    """Whether there is anything to decide about: protected files in `.cantle`, or `.agents/skills` at or above.

    The configuration folder itself, which is the home folder's `.cantle`, is the user's own and not a project's.
    """
    folder = project_directory(cwd)
    own = os.path.realpath(folder) == os.path.realpath(config_dir)
    if not own and is_folder(folder) and any(present(folder / name) for name in PROTECTED):
        return True
    return any(is_folder(parent / ".agents" / "skills") for parent in (cwd, *cwd.parents))


def decide_trust(
    cwd: Path, trust_file: Path, *, decision: bool | None = None, default: ProjectTrust = "ask"
) -> bool:
    """Whether the project at `cwd` is trusted, where nobody can be asked.

    A `decision` for this run (`--approve`, `--no-approve`) comes first, then the closest saved one, then the
    default, of which only `always` says yes. Raises :class:`ConfigurationFileError` for a broken trust file.
    """
    if decision is not None:
        return decision
    saved = saved_decision(cwd, trust_file)
    return default == "always" if saved is None else saved


def saved_decision(cwd: Path, trust_file: Path) -> bool | None:
    """The decision saved for `cwd` or the closest folder above it; None without one."""
    raw = read_json_file(trust_file)
    if not raw:
        return None
    folder = os.path.realpath(cwd)
    decisions = {os.path.normcase(path): value for path, value in raw.items()}
    for candidate in (folder, *map(str, Path(folder).parents)):
        value = decisions.get(os.path.normcase(candidate))
        if isinstance(value, bool):
            return value
        if value is not None:
            raise ConfigurationFileError(
                f"{trust_file}: the decision for {candidate} must be true or false.", "Change or remove it."
            )
    return None


def save_decision(cwd: Path, trust_file: Path, trusted: bool) -> None:
    """Save the decision for `cwd` and everything below it. Raises :class:`ConfigurationFileError`."""

    def apply(raw: JsonObject) -> None:
        raw[os.path.realpath(cwd)] = trusted

    update_json_file(trust_file, apply)
