"""From the first word to what runs: a built-in sub-command, another distribution's, or a prompt."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from cantle.errors import UserError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["dispatch"]

ENTRY_POINTS: Final = "cantle.commands"
"""Entry-point group of other distributions' sub-commands: functions from arguments to an exit code."""

_COMMANDS_OF_PI: Final = frozenset({"install", "remove", "uninstall", "update", "list", "config", "mcp"})
"""Words that its users type out of habit: here they would be prompts, with all that an agent may do."""

_WORD: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")


def dispatch(arguments: Sequence[str]) -> int:
    """Run what the command line asks for and return the exit code."""
    from cantle.console import notice

    try:
        command = _command(arguments[0]) if arguments else None
        if command is not None:
            from cantle.cli.signals import interrupts_raise

            interrupts_raise()
            gc.enable()
            return command(list(arguments[1:]))
        from cantle.cli.arguments import parse_arguments

        options = parse_arguments(arguments)
        from cantle.cli.run import run

        return run(options)
    except UserError as error:
        notice(str(error))
        return error.exit_code


def _command(word: str) -> Callable[[list[str]], int] | None:
    """The sub-command of that name, if there is one. A prompt of several words never looks for one.

    Raises UserError for a command that the reference has and nobody has installed here.
    """
    if not (word[:1].isalpha() and _WORD.issuperset(word)):
        return None
    if word == "demo":
        from cantle.demo import main

        return main
    if word == "local":
        from cantle.local import main

        return main
    if word == "auth":
        from cantle.auth import main

        return main
    if word == "sessions":
        from cantle.sessions_command import main

        return main
    from importlib.metadata import entry_points

    for entry_point in entry_points(group=ENTRY_POINTS, name=word):
        return _loaded(entry_point)
    if word in _COMMANDS_OF_PI:
        raise UserError(
            f"There is no command {word}.",
            f"If you mean it as a prompt, put -- before it: cantle -- {word} …",
        )
    return None


def _loaded(entry_point: EntryPoint) -> Callable[[list[str]], int]:
    """The function that an entry point names. Raises UserError when it cannot be had."""
    try:
        command: Callable[[list[str]], int] = entry_point.load()
    except Exception as error:  # noqa: BLE001 - foreign code, whose import may raise anything
        owner = entry_point.dist.name if entry_point.dist is not None else entry_point.value
        raise UserError(
            f"The command {entry_point.name} of {owner} does not load: "
            f"{type(error).__name__}: {' '.join(str(error).split()).rstrip('.')}.",
            "Update that distribution, or uninstall it.",
        ) from None
    return command
