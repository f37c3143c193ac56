"""Where tools work: the folder, the shell and its variables, and what calls of one session share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    from cantle.tools.file_queue import FileQueue
    from cantle.tools.processes import Processes, RunningProcess

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
    _files: FileQueue | None = None
    _processes: Processes | None = None

    @property
    def files(self) -> FileQueue:
        """The turns of calls that change files."""
        if self._files is None:
            from cantle.tools.file_queue import FileQueue

            self._files = FileQueue()
        return self._files

    @property
    def processes(self) -> Processes:
        """The commands of the session."""
        if self._processes is None:
            from cantle.tools.processes import Processes

            self._processes = Processes()
        return self._processes

    @property
    def left_running(self) -> Sequence[RunningProcess]:
        """What commands that have ended left running, the oldest command's first."""
        return () if self._processes is None else self._processes.left_running

    async def close(self) -> None:
        """End every command that still runs and every process that one has left behind. May be called twice."""
        if self._processes is not None:
            await self._processes.close()
