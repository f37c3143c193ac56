"""One call of `bash`: from the command's text to the result that a model reads."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from cantle.tools.bash.output import CommandOutput
from cantle.tools.bash.result import bash_result, output_details
from cantle.tools.bash.shell import command_variables, find_shell
from cantle.tools.environment import ToolEnvironment
from cantle.tools.paths import unencodable
from cantle.tools.process_command import Command
from cantle.tools.processes import StartError
from cantle_agent.tool import ToolContext, ToolError, ToolResult

__all__ = ["run_command"]


async def run_command(
    environment: ToolEnvironment, text: str, timeout: float | None, context: ToolContext
) -> ToolResult:
    """Run `text` with the shell of `environment` and wait for the shell to end.

    An abort or a cancellation ends it with everything that it started. Raises :class:`ToolError` when it can't
    be started at all.
    """
    context.signal.raise_if_aborted()
    _check_folder(environment.cwd)
    _check_text(text)
    if environment.command_prefix:
        text = f"{environment.command_prefix}\n{text}"
    loop = asyncio.get_running_loop()
    output = CommandOutput(environment.temp_dir)

    def show() -> None:
        try:
            loop.call_soon_threadsafe(context.progress, _partial(output))
        except RuntimeError:
            command.stop("its event loop is closed")

    command = Command(
        [find_shell(environment.shell_path), "-c", text],
        environment.cwd,
        command_variables(os.environ, environment.variables()),
        feed=output.feed,
        show=show,
        timeout=timeout,
        ends_leftovers=environment.shell_leftovers == "kill",
    )
    remove = context.signal.add_callback(lambda: command.stop("aborted"))
    try:
        end = await environment.processes.run(command)
    except StartError as problem:
        raise ToolError(f"The command could not be started: {problem}") from None
    finally:
        remove()
        output.close()
    ended = environment.processes.take_ended()
    return bash_result(end, output, timeout, context.signal.reason, ended)


def _check_folder(cwd: Path) -> None:
    if not os.path.isdir(cwd):  # noqa: PTH112 - pathlib raises where nobody may look
        raise ToolError(
            f"The working directory {cwd} does not exist any more, or may not be entered; no command can run."
        )


def _check_text(text: str) -> None:
    """Refuse what no system passes on to a shell, in words rather than as it would be refused further down."""
    if "\0" in text:
        raise ToolError("The command holds a NUL character, which no command may.")
    try:
        os.fsencode(text)
    except UnicodeEncodeError as problem:
        raise ToolError(f"The command {unencodable(problem)}") from None


def _partial(output: CommandOutput) -> ToolResult:
    excerpt = output.tail()
    return ToolResult.of(excerpt.text(), details=output_details(excerpt, output.path))
