"""`cantle sessions fork`, `import` and `repair`: sessions that are made of others, which stay as they are."""

from __future__ import annotations

import argparse
import json
from contextlib import closing

from cantle.cli.session_places import SessionPlaces, warn_of
from cantle.console import Results
from cantle.errors import SessionError
from cantle.paths import user_path
from cantle.sessions_command.table import one_line, quantity
from cantle_session.folders import is_database
from cantle_session.session import Session

__all__ = ["fork", "import_file", "repair"]


def fork(options: argparse.Namespace) -> int:
    """Copy a session to this folder, all of it or what came before a message of the user, and say what it became."""
    places = SessionPlaces.of(options.session_dir)
    try:
        if options.before is None:
            forked, text = places.copy(options.session, options.session_id), None
        else:
            forked, text = _before(places, options)
    except ValueError as error:
        raise SessionError(f"{error}.") from None
    results = Results()
    with forked:
        if options.json:
            record = {"id": forked.id, "location": forked.location, "text": text}
            results.say(json.dumps(record) + "\n")
        else:
            results.show(f"{forked.id}\n" if text is None else f"{forked.id}\n\n{text}\n")
    return results.code


def _before(places: SessionPlaces, options: argparse.Namespace) -> tuple[Session, str]:
    """A session with what comes before a message of the user, and that message's text."""
    from cantle_session.forks import fork_session

    places.check_free(options.session_id)
    with places.open(options.session) as session:
        try:
            made = fork_session(
                session, options.before, places.here, cwd=places.cwd, session_id=options.session_id
            )
        except KeyError:
            raise SessionError(
                f'The session {one_line(session.id)} has no entry "{options.before}".',
                f"`cantle sessions show --tree {one_line(session.id)}` lists them.",
            ) from None
        warn_of(session, options.session)
    if not made.session.saved:
        made.session.close()
        raise SessionError(
            f"Nothing comes before the message {options.before}.", "Begin a new session with a prompt."
        )
    return made.session, made.text


def import_file(options: argparse.Namespace) -> int:
    """Take a session file into the place where the sessions of its working directory are kept, and say where."""
    from cantle_session.imports import import_session
    from cantle_session.places import find_exactly, header_of
    from cantle_session.storage.store import open_storage

    places = SessionPlaces.of(options.session_dir)
    source = options.file if is_database(options.file) else str(user_path(options.file))
    with closing(open_storage(source, reading=True)) as storage:
        _, header = header_of(storage)
    cwd = places.cwd if options.here else header.cwd
    if not options.new_id and (there := find_exactly(places.place_for(cwd), header.id)):
        raise SessionError(
            f"The session {one_line(header.id)} is there already, and was left alone: {there}.",
            "--new-id keeps the copy beside it.",
        )
    imported = import_session(
        source, places.place_for(cwd), cwd=cwd if options.here else None, new_id=options.new_id
    )
    results = Results()
    results.say(f"{imported.id}\n")
    return results.code


def repair(options: argparse.Namespace) -> int:
    """Look at a session file, say what is wrong with it, and where the sound copy is."""
    from cantle_session.repair import repair_session

    places = SessionPlaces.of(options.session_dir)
    location = places.find(options.session)
    if is_database(location):
        raise SessionError(
            f"{location} is kept in a database, which has no spoilt lines to mend.",
            "`repair` takes the file of a session.",
        )
    found = repair_session(location, cwd=places.cwd)
    results = Results()
    for problem in found.problems:
        results.say(f"{one_line(str(problem))}\n")
    if found.copy is None:
        results.show(f"{found.file} is sound.\n")
    else:
        results.show(f"{found.copy}: a sound copy with {quantity(found.entries, 'entry')}\n")
    return results.code
