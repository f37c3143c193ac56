"""`cantle --resume` without a screen of its own: a list on stderr, and an answer from the terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cantle.cli.session_places import SessionPlaces, as_user_errors
from cantle.console import say_aside
from cantle.errors import SessionError

if TYPE_CHECKING:
    from cantle_session.listing import SessionInfo

__all__ = ["ask_which"]

_SHOWN = 20
_ALL = "a"


def ask_which(session_dir: str | None) -> str:
    """Let a person choose a session, of this folder or of all, and give its location.

    Raises SessionError when there is nobody to ask, nothing to choose from, or nothing is chosen.
    """
    if sys.stdin is None or not sys.stdin.isatty():
        raise SessionError(
            "--resume needs a terminal to choose on.",
            'Name a session instead: cantle --session ID "go on"; `cantle sessions list` lists them.',
        )
    places = SessionPlaces.of(session_dir)
    with as_user_errors():
        offered = places.sessions()
        everywhere = not offered
        if everywhere:
            offered = places.sessions(everywhere=True)
        if not offered:
            raise SessionError("There is no session to resume.", "Start one with a prompt.")
        shown = offered
        while True:
            _offer(shown, all_folders=everywhere)
            answer = _answer(everywhere=everywhere)
            if answer == _ALL and not everywhere:
                everywhere = True
                shown = offered = places.sessions(everywhere=True)
            elif answer.isdecimal() and 1 <= int(answer) <= min(len(shown), _SHOWN):
                return shown[int(answer) - 1].location
            else:
                shown = [info for info in offered if _fits(info, answer)]
                if not shown:
                    say_aside(f'No session fits "{answer}".')
                    shown = offered


def _offer(infos: Sequence[SessionInfo], *, all_folders: bool) -> None:
    from cantle.sessions_command.lists import rows_of, short_ids
    from cantle.sessions_command.table import edge, table

    ids = short_ids(info.id for info in infos)
    rows = rows_of(infos[:_SHOWN], ids, all_folders=all_folders)
    numbered = [(f"{number}", *row) for number, row in enumerate(rows, 1)]
    say_aside(table(numbered, right=(0, 3), columns=edge(2)), end="")
    if len(infos) > _SHOWN:
        say_aside(f"… and {len(infos) - _SHOWN:,} more")


def _answer(*, everywhere: bool) -> str:
    others = "" if everywhere else f", {_ALL} for those of all folders"
    say_aside(f"Number of the session, or words to look for{others}: ", end="")
    line = sys.stdin.readline()
    if not line.strip():
        if not line:
            say_aside("")
        raise SessionError("No session was chosen.")
    return line.strip()


def _fits(info: SessionInfo, words: str) -> bool:
    """Whether all words are in what a list shows of a session."""
    text = " ".join((info.id, info.name or "", info.first_message, info.cwd)).casefold()
    return all(word in text for word in words.casefold().split())
