"""Which session a command line means: a new one, the last one here, one by name, or none that is kept."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from cantle.console import notice
from cantle.errors import SessionError
from cantle.paths import ConfigPaths, config_directory, present, user_path, working_directory
from cantle.sdk import sessions_directory
from cantle.settings import load_settings
from cantle_session.errors import SessionFileError, SessionLookupError
from cantle_session.session import Session

__all__ = ["choose_session"]


def choose_session(options: argparse.Namespace) -> Session | None:
    """The session that the options ask for; None leaves it to `create_agent_session`, which makes a new one.

    Raises SessionError when it is not there or cannot be opened.
    """
    if options.session == "" or options.session_dir == "":
        raise SessionError("--session and --session-dir need a name, and an empty one was given.")
    if options.no_session:
        return Session.in_memory(working_directory())
    if not (options.continue_ or options.session or options.session_dir):
        return None
    cwd = working_directory()
    paths = ConfigPaths(config_directory())
    directory = sessions_directory(cwd, paths, load_settings(paths), explicit=options.session_dir)
    try:
        if options.session:
            return _named(options.session, directory, paths.sessions, cwd)
        if options.continue_:
            return _last(directory, cwd)
    except (SessionFileError, SessionLookupError) as error:
        text = str(error)
        raise SessionError(f"{text[:1].upper()}{text[1:].rstrip('.')}.") from None
    return Session.create(cwd, directory)


def _named(text: str, directory: Path, root: Path, cwd: Path) -> Session:
    from cantle_session.listing import find_session

    named = user_path(text)
    path = find_session(str(named), directory, root=root)
    if not present(path):
        raise SessionError(
            f"There is no session file {path}.", "Give an existing one, or start without --session."
        )
    session = Session.open(path)
    if path != named and not _same_folder(session.header.cwd, cwd):
        home = session.header.cwd
        session.close()
        raise SessionError(
            f"The session {session.id} belongs to {home}.", f"Go on with it there, or give its file: {path}"
        )
    return session


def _last(directory: Path, cwd: Path) -> Session:
    from cantle_session.listing import latest

    path = latest(directory, cwd=cwd)
    if path is None:
        notice(f"there is no earlier session in {cwd}; this starts a new one.")
        return Session.create(cwd, directory)
    return Session.open(path)


def _same_folder(recorded: str, cwd: Path) -> bool:
    return os.path.normcase(os.path.realpath(recorded)) == os.path.normcase(os.path.realpath(cwd))
