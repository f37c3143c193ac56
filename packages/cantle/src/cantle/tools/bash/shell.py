"""Which shell runs commands, and which environment variables they see."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from cantle_agent.tool import ToolError

__all__ = ["SESSION_VARIABLES", "command_variables", "find_shell"]

SESSION_VARIABLES = (
    "CANTLE_SESSION_ID",
    "CANTLE_SESSION_FILE",
    "CANTLE_PROVIDER",
    "CANTLE_MODEL",
    "CANTLE_REASONING_LEVEL",
)
"""What a command may learn of the session that runs it."""


def find_shell(setting: str | None) -> str:
    """The shell to use: the one of the settings, else bash, else sh. Raises :class:`ToolError`."""
    if setting is not None:
        path = Path(os.path.expanduser(setting))  # noqa: PTH111 - pathlib raises for a user who does not exist
        if not os.path.isfile(path) or not os.access(path, os.X_OK):  # noqa: PTH113 - nor may it for odd names
            raise ToolError(
                f"The shell of the settings, {path}, is not a program that can be run. "
                "Correct shellPath, or remove it to use bash."
            )
        return str(path)
    for place in _places():
        if place is not None and os.access(place, os.X_OK):
            return place
    raise ToolError(
        "There is no shell: bash was not found, and sh neither. Name one in the setting shellPath."
    )


def _places() -> Iterator[str | None]:
    if sys.platform == "win32":
        for variable in ("ProgramFiles", "ProgramFiles(x86)"):
            if folder := os.environ.get(variable):
                yield str(Path(folder) / "Git" / "bin" / "bash.exe")
    else:
        yield "/bin/bash"
    import shutil  # with it come all compressors; /bin/bash is nearly always there

    yield shutil.which("bash")
    yield shutil.which("sh")


def command_variables(inherited: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """The environment of a command: ours, with what `given` says.

    What another session told *us* about itself is left out, so that no command takes it for its own.
    """
    variables = {name: value for name, value in inherited.items() if name not in SESSION_VARIABLES}
    variables.update(given)
    return variables
