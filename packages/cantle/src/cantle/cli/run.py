"""A run from the command line: options in, a session of prompts, an exit code out."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cantle.cli.arguments import parse_arguments
from cantle.cli.inputs import collect_prompts, piped_stdin, text_or_file
from cantle.paths import working_directory

if TYPE_CHECKING:
    from cantle.modes.print_mode import Prompt
    from cantle_ai.models import Models
    from cantle_session.session import Session

__all__ = ["run"]

NO_PROMPT = (
    'cantle: there is nothing to do. Give a prompt: cantle "explain this project"; or pipe one in. '
    "See `cantle --help`.\n"
)


def run(arguments: Sequence[str]) -> int:
    """Run what the command line asks for. Raises UserError for what the user can mend."""
    options = parse_arguments(arguments)
    os.environ.update(AI_AGENT="cantle", CANTLE_CODING_AGENT="true")
    if options.offline:
        os.environ["CANTLE_OFFLINE"] = "1"
    if options.list_models is not None:
        from cantle.cli.model_list import list_models

        return list_models(options)
    prompts = collect_prompts(options.prompts, options.files, piped_stdin(), working_directory())
    if not prompts:
        sys.stderr.write(NO_PROMPT)
        return 2
    from cantle.modes.output import take_stdout

    return asyncio.run(_run(options, prompts, take_stdout()))


async def _run(options: argparse.Namespace, prompts: Sequence[Prompt], descriptor: int) -> int:
    from cantle.modes.output import Output
    from cantle.modes.print_mode import run_prompts
    from cantle.sdk import create_agent_session

    session = await create_agent_session(**session_options(options))
    try:
        for warning in session.warnings:
            sys.stderr.write(f"cantle: warning: {warning}\n")
        if options.name:
            session.set_name(options.name)
        return await run_prompts(session, prompts, Output(descriptor), json_mode=options.mode == "json")
    finally:
        await session.close()


def session_options(options: argparse.Namespace) -> dict[str, object]:
    """The keyword arguments of `create_agent_session` that the command line's options mean."""
    from cantle.cli.sessions import choose_session

    models, model = _scripted(options)
    return {
        "models": models,
        "provider": None if models is not None else options.provider,
        "model": options.model if model is None else model,
        "thinking_level": options.thinking,
        "api_key": options.api_key,
        "session": choose_session(options),
        "tools": [] if options.no_tools else _names(options.tools),
        "exclude_tools": _names(options.exclude_tools) or (),
        "system_prompt": None if options.system_prompt is None else text_or_file(options.system_prompt),
        "append_system_prompt": [text_or_file(text) for text in options.append_system_prompt],
        "context_files": not options.no_context_files,
        "project_trusted": True if options.approve else False if options.no_approve else None,
    }


def _scripted(options: argparse.Namespace) -> tuple[Models | None, object | None]:
    return None, None


def _names(listed: str | None) -> list[str] | None:
    return None if listed is None else [name.strip() for name in listed.split(",") if name.strip()]


def _session(options: argparse.Namespace) -> Session | None:
    return None
