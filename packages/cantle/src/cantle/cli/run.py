"""A run from the command line: options in, a session of prompts, an exit code out."""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cantle.cli.arguments import SCRIPTED
from cantle.cli.inputs import collect_prompts, piped_stdin, text_or_file
from cantle.console import notice, warn
from cantle.errors import UserError
from cantle.paths import working_directory

if TYPE_CHECKING:
    from cantle.hub.agent_session import AgentSession
    from cantle_ai.content import UserContent
    from cantle_ai.models import Models
    from cantle_session.session import Session

__all__ = ["run"]

NO_PROMPT: Final = (
    'there is nothing to do. Give a prompt: cantle "explain this project"; or pipe one in. '
    "See `cantle --help`."
)


def run(options: argparse.Namespace) -> int:
    """Run what the options ask for and return the exit code. Raises UserError for what the user can mend."""
    os.environ.update(AI_AGENT="cantle", CANTLE_CODING_AGENT="true")
    if options.offline:
        os.environ["CANTLE_OFFLINE"] = "1"
    if options.list_models is not None:
        from cantle.cli.model_list import list_models

        return list_models(options)
    if options.models_schema:
        from cantle.cli.models_schema import print_schema

        return print_schema()
    if options.export is not None:
        from cantle.sessions_command.export import export_page

        return export_page(options)
    prompts = collect_prompts(options.prompts, options.files, piped_stdin(), working_directory())
    if not prompts:
        notice(NO_PROMPT)
        return 2
    if options.resume:  # before the event loop, which would keep Ctrl-C from whoever is asked
        from cantle.cli.resume import ask_which

        options.session = ask_which(options.session_dir)
    from cantle.modes.output import take_stdout

    return asyncio.run(_run(options, prompts, take_stdout()))


async def _run(
    options: argparse.Namespace, prompts: Sequence[str | Sequence[UserContent]], descriptor: int
) -> int:
    from cantle.modes.leaving import leave_in_time
    from cantle.modes.output import Output
    from cantle.modes.print_mode import run_prompts
    from cantle.modes.signals import Signals
    from cantle.sdk import create_agent_session

    session = await create_agent_session(**session_options(options))
    if not gc.isenabled():  # it waited for the start to be over
        gc.freeze()
        gc.enable()
    for warning in session.warnings:
        warn(warning)
    output, code = Output(descriptor), 0
    with Signals(session.request_abort, output.abandon) as signals:
        try:
            async with session:
                if options.name:
                    session.set_name(options.name)
                code = await run_prompts(
                    session,
                    prompts,
                    output,
                    signals,
                    json_mode=options.mode == "json",
                    go_on=_go_on(options),
                )
                _tell_what_ends(session)
        except asyncio.CancelledError:
            if signals.received is None:
                raise
    if signals.received is not None:
        notice(f"stopped by {signals.received.name}.")
        code = signals.exit_code
    leave_in_time(code)
    return code


def _tell_what_ends(session: AgentSession) -> None:
    """Say what commands left running, which nobody would expect to be gone."""
    left = [f"{process.pid} ({process.name})" for process in session.left_running if process.pid]
    if left:
        one = len(left) == 1
        notice(
            f"{'process' if one else 'processes'} {', '.join(left)}, left in the background by a command, "
            f"{'ends' if one else 'end'} with this session."
        )


def session_options(options: argparse.Namespace) -> dict[str, Any]:
    """The keyword arguments of `create_agent_session` that the command line's options mean."""
    chosen: dict[str, Any] = {"model": options.model, "provider": options.provider}
    if options.provider == SCRIPTED:
        chosen = _scripted(options.model, alone=options.fallback_model is None)
    return {
        **chosen,
        "thinking_level": options.thinking,
        "fallback_model": options.fallback_model,
        "api_key": options.api_key,
        "session": _session(options),
        "tools": [] if options.no_tools else _names(options.tools),
        "exclude_tools": _names(options.exclude_tools) or (),
        "system_prompt": None if options.system_prompt is None else text_or_file(options.system_prompt),
        "append_system_prompt": [text_or_file(text) for text in options.append_system_prompt],
        "context_files": not options.no_context_files,
        "project_trusted": True if options.approve else False if options.no_approve else None,
    }


def _session(options: argparse.Namespace) -> Session | None:
    """The session that the options ask for; None for a new one in its usual place."""
    named = (options.session, options.session_id, options.fork, options.session_dir)
    if not any(name is not None for name in named) and not (options.continue_ or options.no_session):
        return None
    from cantle.cli.sessions import choose_session

    return choose_session(options)


def _scripted(file: str, *, alone: bool) -> dict[str, Any]:
    """A model that plays a file; beside it, unless it is `alone`, the configured ones.

    Raises UserError when it cannot be read or is no script.
    """
    from cantle_ai.errors import ConfigurationError
    from cantle_ai.models import Models
    from cantle_ai.testing.script_file import load_script

    try:
        script = load_script(Path(file))
    except ConfigurationError as error:
        raise UserError(f"{error}.") from None
    models = Models() if alone else _configured()
    script.register(models)
    return {"models": models, "model": script.model}


def _configured() -> Models:
    from cantle.paths import ConfigPaths, config_directory
    from cantle.sdk import configured_models

    warnings: list[str] = []
    models = configured_models(ConfigPaths(config_directory()), warnings)
    for warning in warnings:
        warn(warning)
    return models


def _go_on(options: argparse.Namespace) -> str | None:
    """The command that goes on with the session of this one; None when it is not kept."""
    if options.no_session:
        return None
    if not (options.session or options.session_dir or options.session_id):
        return 'cantle -c "go on"'
    from shlex import join

    from cantle_session.addresses import without_passwords

    where = ["--session-dir", options.session_dir] if options.session_dir else []
    which = ["-c"]
    if options.session or options.session_id:
        which = ["--session", options.session] if options.session else ["--session-id", options.session_id]
    return f'{join(["cantle", *map(without_passwords, [*where, *which])])} "go on"'


def _names(listed: str | None) -> list[str] | None:
    return None if listed is None else [name.strip() for name in listed.split(",") if name.strip()]
