"""Where tools work: the folder, the shell and its variables, and what calls of one session share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct, field

from cantle.tools.file_queue import FileQueue
from cantle.tools.processes import Processes

__all__ = ["ShellLeftovers", "ToolEnvironment"]

ShellLeftovers: TypeAlias = Literal["keep", "kill"]
"""Whether what a command leaves in the background runs on until the session ends, or ends with the command."""


def _no_variables() -> Mapping[str, str]:
    return {}


class ToolEnvironment(Struct):
    """What the tools of one session have in common. Closed by whoever made it."""

    cwd: Path
    """The working directory, absolute: relative paths start here, and so do commands."""
    variables: Callable[[], Mapping[str, str]] = _no_variables
    """Environment variables for a command, asked for at the moment it starts."""
    shell_path: str | None = None
    """The shell for commands; `~` is expanded. None looks for bash, then sh."""
    command_prefix: str | None = None
    """Shell text that runs before each command, on lines of its own."""
    shell_leftovers: ShellLeftovers = "keep"
    """What becomes of processes that a command leaves in the background."""
    temp_dir: Path | None = None
    """Where long output is kept; None for the system's folder for temporary files."""
    files: FileQueue = field(default_factory=FileQueue)
    processes: Processes = field(default_factory=Processes)

    async def close(self) -> None:
        """End every command that still runs and every process that one has left behind. May be called twice."""
        await self.processes.close()
