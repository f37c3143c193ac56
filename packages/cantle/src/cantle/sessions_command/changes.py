"""`cantle sessions move`, `rename` and `delete`: what changes a session's place or name, or takes it away."""

from __future__ import annotations

import argparse
import sys
from contextlib import closing
from pathlib import Path

from cantle.cli.session_places import SessionPlaces
from cantle.console import Results, say_aside
from cantle.errors import SessionError, UserError
from cantle.paths import user_path, working_directory
from cantle.sessions_command.table import local_time, one_line
from cantle_session.errors import still_open
from cantle_session.folders import is_database
from cantle_session.places import header_of
from cantle_session.storage.store import open_storage, store_of

__all__ = ["delete", "move", "rename"]


def move(options: argparse.Namespace) -> int:
    """Give a session to another working directory, or another place, and say where it is now."""
    from cantle_session.moves import move_session

    if options.folder is None and options.to is None:
        raise UserError("Where to was not said: name a folder, or a place with --to.")
    places = SessionPlaces.of(options.session_dir)
    location = places.find(options.session)
    folder = None if options.folder is None else working_directory(user_path(options.folder))
    if options.to is not None:
        place: str | Path = options.to if is_database(options.to) else user_path(options.to).absolute()
    else:
        assert folder is not None
        place = places.place_for(folder)
    moved = move_session(location, place, cwd=folder)
    results = Results()
    results.show(f"{moved}\n")
    return results.code


def rename(options: argparse.Namespace) -> int:
    """Give a session a name, or take it away."""
    location = SessionPlaces.of(options.session_dir).find(options.session)
    with closing(store_of(location)) as store:
        store.rename(location, options.name)
    return 0


def delete(options: argparse.Namespace) -> int:
    """Put sessions into the bin, or take them away for good where there is none, and say which it was."""
    places = SessionPlaces.of(options.session_dir)
    locations = list(dict.fromkeys(map(places.find, options.sessions)))
    for location in locations:  # all of them, before any of them goes
        with closing(open_storage(location)) as storage:
            header_of(storage)
            if storage.shared():
                raise still_open(storage.path or storage.location, "nothing was deleted")
    if not options.yes:
        _ask(locations)
    results = Results()
    for location in locations:
        with closing(store_of(location)) as store:
            deletion = store.delete(location)
        how = "is in the bin" if deletion.to_bin else "is gone for good: there is no bin here"
        results.show(f"{location} {how}\n")
    return results.code


def _ask(locations: list[str]) -> None:
    """Raises SessionError unless somebody says that these sessions may go."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise SessionError("Deleting asks first, and here is nobody to ask.", "Add --yes.")
    for location in locations:
        say_aside(_described(location))
    these = "this session" if len(locations) == 1 else f"these {len(locations)} sessions"
    say_aside(f"Delete {these}? [y/N] ", end="")
    if sys.stdin.readline().strip().casefold() not in ("y", "yes"):
        raise SessionError("Nothing was deleted.")


def _described(location: str) -> str:
    """A session as somebody knows it who is asked whether it may go."""
    with closing(store_of(location)) as store:
        for info in store.sessions():
            if info.location == location:
                said = one_line(info.name or info.first_message)
                return f"  {one_line(info.id)}  {local_time(info.last_message_at)}  {said}"
    return f"  {one_line(location)}"
