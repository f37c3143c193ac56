"""One call of `bash`: from the command's text to the result that a model reads."""

from __future__ import annotations

import asyncio
import os

from cantle.tools.bash.output import CommandOutput
from cantle.tools.bash.shell import command_variables, find_shell
from cantle.tools.environment import ToolEnvironment
from cantle.tools.paths import unencodable
from cantle.tools.processes import Command, CommandEnd, StartError
from cantle.tools.truncation import size_text
from cantle_agent.tool import ToolContext, ToolError, ToolResult
from cantle_ai.codec import JsonObject

__all__ = ["run_command"]


async def run_command(
    environment: ToolEnvironment, text: str, timeout: float | None, context: ToolContext
) -> ToolResult:
    """Run `text` with the shell of `environment` and wait for the shell to end.

    An abort or a cancellation ends it with everything that it started. Raises :class:`ToolError` when it can't
    be started at all.
    """
    context.signal.raise_if_aborted()
    if not environment.cwd.is_dir():
        raise ToolError(
            f"The working directory {environment.cwd} does not exist any more; no command can run."
        )
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
    )
    remove = context.signal.add_callback(lambda: command.stop("aborted"))
    try:
        end = await environment.processes.run(command)
    except StartError as problem:
        raise ToolError(f"The command could not be started: {problem}") from None
    finally:
        remove()
        output.close()
    return _result(end, output, timeout, context.signal.reason)


def _check_text(text: str) -> None:
    """Refuse what no system passes on to a shell, in words rather than as it would be refused further down."""
    if "\0" in text:
        raise ToolError("The command holds a NUL character, which no command may.")
    try:
        os.fsencode(text)
    except UnicodeEncodeError as problem:
        raise ToolError(f"The command {unencodable(problem)}") from None


def _partial(output: CommandOutput) -> ToolResult:
    tail = output.tail()
    details: JsonObject = {}
    if tail.truncation is not None:
        details["truncation"] = tail.truncation.to_json()
        if output.path is not None:
            details["fullOutputPath"] = str(output.path)
    return ToolResult.of(tail.text, details=details)


def _result(end: CommandEnd, output: CommandOutput, timeout: float | None, reason: str | None) -> ToolResult:
    tail = output.finish()
    details: JsonObject = {}
    notes: list[str] = []
    if tail.truncation is not None:
        details["truncation"] = tail.truncation.to_json()
        notes.append(tail.notice(output.path))
        if output.path is not None:
            details["fullOutputPath"] = str(output.path)
    if output.failure is not None:
        notes.append(f"[The output could not be kept whole: {output.failure}.]")
    if end.left_running:
        details["stillRunning"] = list(end.left_running)
        notes.append(_running_note(end))
    failure = _failure(end, timeout, reason, details)
    if failure:
        notes.append(failure)
    text = tail.text
    if notes:
        text = "\n\n".join([text.rstrip("\n"), *notes] if text.strip() else notes)
    if not text:
        text = f"[{size_text(output.size)} of output, none of it text.]" if output.size else "(no output)"
    return ToolResult.of(text, details=details, is_error=failure is not None)


def _running_note(end: CommandEnd) -> str:
    named = [str(pid) for pid in end.left_running if pid]
    who = f" (process {', '.join(named[:5])})" if named else ""
    return (
        f"[Something that the command started still runs{who}. What it prints from now on is dropped; it ends with "
        "this session.]"
    )


def _failure(end: CommandEnd, timeout: float | None, reason: str | None, details: JsonObject) -> str | None:
    if end.stopped == "timeout":
        details["timedOut"] = True
        unit = "second" if timeout == 1 else "seconds"
        return f"The command was stopped after {timeout:g} {unit}, its time-out."
    if end.stopped is not None:
        details["aborted"] = True
        return f"The command was stopped: {reason or 'aborted'}."
    details["exitCode"] = end.exit_code
    if end.exit_code < 0:
        name = _signal_name(-end.exit_code)
        details["signal"] = name
        return f"The command was ended by {name}."
    if end.exit_code > 0:
        hint = _signal_name(end.exit_code - 128) if 129 <= end.exit_code <= 159 else ""
        return f"Exit code {end.exit_code}" + (f" ({hint})." if hint.startswith("SIG") else ".")
    return None


def _signal_name(number: int) -> str:
    import signal

    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
