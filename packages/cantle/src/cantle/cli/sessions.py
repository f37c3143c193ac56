"""Which session a command line means: a new one, the last one here, one by name, a copy, or none that is kept."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from cantle.cli.session_places import SessionPlaces, as_user_errors
from cantle.console import notice
from cantle.errors import SessionError
from cantle.paths import working_directory
from cantle_session.errors import SessionLookupError
from cantle_session.session import Session
from cantle_session.stamps import check_session_id

__all__ = ["choose_session"]

_NAMED = ("session", "session_id", "fork", "session_dir")
_NAMED_AT_ONCE = 5


def choose_session(options: argparse.Namespace) -> Session | None:
    """The session that the options ask for; None leaves it to `create_agent_session`, which makes a new one.

    Raises SessionError when it is not there or cannot be opened.
    """
    for name in _NAMED:
        if getattr(options, name) == "":
            raise SessionError(f"--{name.replace('_', '-')} needs a name, and an empty one was given.")
    if options.at == "":
        raise SessionError("--at needs the id of an entry, and an empty one was given.")
    session_id = _checked_id(options.session_id)
    if options.no_session:
        return Session.in_memory(working_directory(), session_id=session_id)
    if not (options.continue_ or any(getattr(options, name) for name in _NAMED)):
        return None
    places = SessionPlaces.of(options.session_dir)
    with as_user_errors():
        if options.session:
            return _at(options.at, _named(options.session, places))
        if options.continue_:
            return _at(options.at, _last(places, begin=options.at is None))
        if options.fork:
            return places.copy(options.fork, session_id)
        return _with_id(session_id, places) or places.new_session(session_id)


def _checked_id(text: str | None) -> str | None:
    if text is None:
        return None
    try:
        return check_session_id(text)
    except ValueError as error:
        raise SessionError(f"{error}.") from None


def _named(text: str, places: SessionPlaces) -> Session:
    session = Session.open(places.find(text))
    if not places.names_place(text):
        _check_folder(session, places)
    return session


def _check_folder(session: Session, places: SessionPlaces) -> None:
    """Raises SessionError, and closes the session, when it belongs to another folder than this one."""
    home, where = session.header.cwd, session.location
    if _same_folder(home, places.cwd):
        return
    session.close()
    raise SessionError(
        f"The session {session.id} belongs to {home}.",
        f"Go on with it there, give its file, or copy it to this folder with --fork: {where}",
    )


def _last(places: SessionPlaces, *, begin: bool) -> Session:
    """The last session of this folder; where there is none a new one, if one may be begun."""
    location = places.latest()
    if location is None:
        if not begin:
            raise SessionError(
                f"There is no earlier session in {places.cwd}, and so no entry to go on from.",
                "Leave --at out.",
            )
        notice(f"there is no earlier session in {places.cwd}; this starts a new one.")
        return places.new_session()
    return Session.open(location)


def _at(text: str | None, session: Session) -> Session:
    """The session, standing at the entry whose id is `text` or begins with it; before it where the user speaks there.

    Raises SessionError, and closes the session, when there is no such entry, or more than one.
    """
    if text is None:
        return session
    from cantle.hub.branching import place_of

    try:
        leaf, _ = place_of(session.entry(_entry_id(text, session)))
        if leaf is None:
            session.reset_leaf()
        else:
            session.branch(leaf)
    except BaseException:  # raised again, whatever it is: the file is let go of
        session.close()
        raise
    return session


def _entry_id(text: str, session: Session) -> str:
    ids = {link.id for link in session.links()}
    found = [text] if text in ids else sorted(each for each in ids if each.startswith(text))
    if len(found) == 1:
        return found[0]
    if found:
        listed = ", ".join(found[:_NAMED_AT_ONCE]) + (", …" if len(found) > _NAMED_AT_ONCE else "")
        raise SessionError(
            f'"{text}" fits {len(found)} entries of the session {session.id}: {listed}.',
            "Give more of the id.",
        )
    raise SessionError(
        f'The session {session.id} has no entry "{text}".',
        f"`cantle sessions show --tree {session.id}` lists them.",
    )


def _with_id(session_id: str | None, places: SessionPlaces) -> Session | None:
    """The session of this folder that has exactly this id."""
    if session_id is None:
        return None
    try:
        session = Session.open(places.find_here(session_id))
    except SessionLookupError:
        return None
    if session.id != session_id:
        session.close()
        return None
    _check_folder(session, places)
    return session


def _same_folder(recorded: str, cwd: Path) -> bool:
    return os.path.normcase(os.path.realpath(recorded)) == os.path.normcase(os.path.realpath(cwd))
