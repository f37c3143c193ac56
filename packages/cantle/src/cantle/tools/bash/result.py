"""What a model reads of a command that has ended, and what programs find in the result's details.

The text is the output, then notes in brackets, then one sentence when it failed. Details, each only where it
says something:

    exitCode                    of the shell, if it is known; 128 + N when signal N ended it
    signal                      that signal's name
    timedOut, aborted           true when it was stopped
    truncation, fullOutputPath  how much of the output is shown, and where all of it is
    stillRunning                [{pid, name}] left in the background
    endedWithCommand            [{pid, name}] ended, because `shellLeftovers` is "kill"
    endedSince                  [{pid, name, exitCode?}] left by earlier commands, and gone by now
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cantle.tools.bash.output import CommandOutput, Excerpt
from cantle.tools.processes import CommandEnd, EndedProcess, RunningProcess
from cantle.tools.truncation import size_text
from cantle_agent.tool import ToolResult
from cantle_ai.codec import JsonObject

__all__ = ["bash_result", "output_details"]

_NAMED = 5
"""Processes that a note names; details have all."""


def bash_result(
    end: CommandEnd,
    output: CommandOutput,
    timeout: float | None,
    reason: str | None,
    ended: Sequence[EndedProcess],
) -> ToolResult:
    """The result of a call. `reason` is the abort's, `ended` what earlier commands had left running."""
    excerpt = output.finish()
    details = output_details(excerpt, output.path)
    notes = [excerpt.notice(output.path)] if excerpt.truncation is not None else []
    if output.failure is not None:
        notes.append(f"[The output could not be kept whole: {output.failure}.]")
    notes.extend(_process_notes(end, ended, details))
    failure = _failure(end, timeout, reason, details)
    if failure:
        notes.append(failure)
    text = excerpt.text()
    if notes:
        text = "\n\n".join([text.rstrip("\n"), *notes] if text.strip() else notes)
    if not text:
        text = f"[{size_text(output.size)} of output, none of it text.]" if output.size else "(no output)"
    return ToolResult.of(text, details=details, is_error=failure is not None)


def output_details(excerpt: Excerpt, path: Path | None) -> JsonObject:
    """The details of an output, in the end or so far."""
    if excerpt.truncation is None:
        return {}
    details: JsonObject = {"truncation": excerpt.truncation.to_json()}
    if path is not None:
        details["fullOutputPath"] = str(path)
    return details


def _process_notes(end: CommandEnd, ended: Sequence[EndedProcess], details: JsonObject) -> list[str]:
    """What is said of processes in the background; `details` get all of them."""
    notes = []
    if end.left_running:
        details["stillRunning"] = [_process_json(process) for process in end.left_running]
        who, one = _named(end.left_running)
        notes.append(
            f"[{who} still {'runs' if one else 'run'} in the background. What {'it prints' if one else 'they print'} "
            f"from now on is dropped; {'it ends' if one else 'they end'} with this session.]"
        )
    if end.ended_with_it:
        details["endedWithCommand"] = [_process_json(process) for process in end.ended_with_it]
        who, one = _named(end.ended_with_it)
        notes.append(
            f"[{who}, left in the background, {'was' if one else 'were'} ended with the command: "
            "the settings keep nothing running.]"
        )
    if ended:
        details["endedSince"] = [_ended_json(process) for process in ended]
        notes.extend(
            f"[Process {process.pid} ({process.name}) of an earlier command has ended{_how(process.exit_code)}.]"
            for process in ended[:_NAMED]
        )
        if len(ended) > _NAMED:
            notes.append(f"[{len(ended) - _NAMED} other processes of earlier commands have ended.]")
    return notes


def _process_json(process: RunningProcess) -> JsonObject:
    return {"pid": process.pid, "name": process.name}


def _ended_json(process: EndedProcess) -> JsonObject:
    raw: JsonObject = {"pid": process.pid, "name": process.name}
    if process.exit_code is not None:
        raw["exitCode"] = _shell_code(process.exit_code)
    return raw


def _named(processes: Sequence[RunningProcess]) -> tuple[str, bool]:
    """The processes as the subject of a sentence, and whether it is one."""
    known = [f"{process.pid} ({process.name})" for process in processes if process.pid]
    if not known:
        return "Something that the command started", True
    if len(processes) == 1:
        return f"Process {known[0]}", True
    more = len(processes) - len(known[:_NAMED])
    listed = ", ".join(known[:_NAMED]) + (f" and {more} more" if more else "")
    return f"Processes {listed}", False


def _how(exit_code: int | None) -> str:
    if exit_code is None:
        return ""
    if exit_code < 0:
        return f", by {_signal_text(-exit_code)}"
    return f" with exit code {exit_code}"


def _failure(end: CommandEnd, timeout: float | None, reason: str | None, details: JsonObject) -> str | None:
    """The sentence on what went wrong, None when nothing did; `details` get how the command ended."""
    if end.stopped == "timeout":
        details["timedOut"] = True
        unit = "second" if timeout == 1 else "seconds"
        return f"The command was stopped after {timeout:.15g} {unit}, its time-out."
    if end.stopped is not None:
        details["aborted"] = True
        return f"The command was stopped: {reason or 'aborted'}."
    if end.exit_code is None:
        return (
            "The exit code is not known: the program that Cantle runs in waits for all its children, or ignores "
            "their ends (SIGCHLD). Look whether the command did what it should."
        )
    details["exitCode"] = _shell_code(end.exit_code)
    if end.exit_code < 0:
        details["signal"] = _signal_name(-end.exit_code)
        return f"The command was ended by {_signal_text(-end.exit_code)}."
    if end.exit_code > 0:
        known = 129 <= end.exit_code <= 159 and _signal_name(end.exit_code - 128)
        return f"Exit code {end.exit_code}" + (f" ({known})." if known else ".")
    return None


def _shell_code(exit_code: int) -> int:
    """The exit code as shells give it."""
    return exit_code if exit_code >= 0 else 128 - exit_code


def _signal_text(number: int) -> str:
    return f"signal {number} ({name})" if (name := _signal_name(number)) else f"signal {number}"


def _signal_name(number: int) -> str:
    """The signal's name, empty for one without."""
    import signal

    try:
        return signal.Signals(number).name
    except ValueError:
        return ""
