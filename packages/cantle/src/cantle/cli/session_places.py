"""Where a command line looks for sessions: in the place for those of this folder, and in those of other folders."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cantle.console import notice, warn
from cantle.errors import SessionError
from cantle.paths import ConfigPaths, config_directory, present, user_path, working_directory
from cantle.session_place import sessions_directory
from cantle.settings import load_settings
from cantle_session.errors import SessionFileError, SessionLookupError
from cantle_session.folders import is_database, session_folder
from cantle_session.session import Session
from cantle_session.storage.store import open_store

if TYPE_CHECKING:
    from cantle_session.listing import SessionInfo
    from cantle_session.storage.store import SessionStore

__all__ = ["SessionPlaces", "as_user_errors", "warn_of"]


class SessionPlaces:
    """Stores of sessions, this folder's first.

    `here` is the location of the store for the working directory `cwd`. `root` has a folder for each working
    directory; it is None where one store holds them all, because a folder or a database was named.
    """

    def __init__(self, cwd: Path, here: str | Path, root: Path | None) -> None:
        self.cwd = cwd
        self.here = here
        self.root = root

    @classmethod
    def of(cls, explicit: str | None) -> SessionPlaces:
        """Those that `--session-dir`, the environment and the settings name. Raises UserError."""
        if explicit == "":
            raise SessionError("--session-dir needs a name, and an empty one was given.")
        cwd = working_directory()
        paths = ConfigPaths(config_directory())
        here = sessions_directory(cwd, paths, load_settings(paths), explicit=explicit)
        own = here == session_folder(cwd, paths.sessions)
        return cls(cwd, here, paths.sessions if own else None)

    # --- which sessions there are

    def sessions(self, *, everywhere: bool = False) -> list[SessionInfo]:
        """The sessions of this folder, or of every one: the one with the latest message first."""
        with self.store(everywhere=everywhere) as store:
            return store.sessions(cwd=None if everywhere else self.cwd)

    def latest(self) -> str | None:
        """The location of the session of this folder whose last message is the latest."""
        if not is_database(self.here):
            from cantle_session.listing import latest

            path = latest(self.here, cwd=self.cwd)
            return None if path is None else str(path)
        infos = self.sessions()
        return infos[0].location if infos else None

    def find(self, text: str) -> str:
        """The location of the session that `text` means: a file, a database's session, an id or its beginning.

        Ids are looked for here first, then in the other folders. Raises SessionLookupError, or SessionError when
        there is no such file.
        """
        if is_database(text):
            from cantle_session.addresses import without_passwords

            store, mark, session_id = text.rpartition("#")
            if not mark or not session_id:
                raise SessionError(
                    f"{without_passwords(text)} names a place and no session in it.",
                    "Put # and an id behind it.",
                )
            return f"{open_store(store).location}#{session_id}"  # without the password, which is remembered
        if self.names_place(text):
            path = user_path(text)
            if not present(path):
                raise SessionError(
                    f"There is no session file {path}.",
                    "Give an existing one; `cantle sessions list` lists them.",
                )
            return str(path)
        if self.root is None:
            return self.find_here(text)
        from cantle_session.listing import find_session

        return str(find_session(text, self.here, root=self.root))

    def open(self, text: str | None) -> Session:
        """The session that `text` means, for reading; without one, the latest of this folder."""
        if text is not None:
            return Session.open(self.find(text), reading=True)
        latest = self.latest()
        if latest is None:
            raise SessionError(
                f"There is no session of {self.cwd}.",
                "`cantle sessions list --all` lists those of all folders.",
            )
        return Session.open(latest, reading=True)

    def find_here(self, text: str) -> str:
        """The location of the session in the store for this folder whose id is `text`, or begins with it.

        Raises SessionLookupError.
        """
        with self.store() as store:
            return store.find(text)

    @staticmethod
    def names_place(text: str) -> bool:
        """Whether `text` says where a session is, rather than what its id is."""
        return (
            is_database(text)
            or "/" in text
            or os.sep in text
            or text.startswith("~")
            or text.endswith(".jsonl")
        )

    # --- new ones

    def new_session(self, session_id: str | None = None) -> Session:
        """A session of this folder, which is kept from its first message on."""
        return Session.create(self.cwd, self.here, session_id=session_id)

    def copy(self, text: str | None, session_id: str | None) -> Session:
        """A copy of the session that `text` means, or the latest, with all its branches; it belongs to this folder."""
        from cantle_session.forks import copy_session

        self.check_free(session_id)
        with self.open(text) as original:
            copy = copy_session(original, self.here, cwd=self.cwd, session_id=session_id)
            for warning in original.warnings:
                warn(f"{original.location}: {warning}.")
        return copy

    def check_free(self, session_id: str | None) -> None:
        """Raises SessionError when this folder has a session with this id."""
        if session_id is None:
            return
        from cantle_session.places import find_exactly

        there = find_exactly(self.here, session_id)
        if there is not None:
            raise SessionError(
                f"The session {session_id} is there already: {there}.", "Give the new one another id."
            )

    # --- where they are kept

    def place_for(self, cwd: str | Path) -> str | Path:
        """Where the sessions of the working directory `cwd` are kept."""
        return self.here if self.root is None else session_folder(cwd, self.root)

    @contextmanager
    def store(self, *, everywhere: bool = False) -> Iterator[SessionStore]:
        """The store for this folder, or the one for all, until the end."""
        if everywhere and self.root is not None:
            from cantle_session.storage.folder_store import FolderStore

            yield FolderStore(self.root, by_directory=True)
            return
        with closing(open_store(self.here)) as store:
            yield store


@contextmanager
def as_user_errors() -> Iterator[None]:
    """Let what is wrong with a session, or with finding one, be an error that a person reads."""
    try:
        yield
    except (SessionFileError, SessionLookupError) as error:
        text = str(error)
        if text.partition(" ")[0].isalpha():  # and no path or address
            text = text[0].upper() + text[1:]
        raise SessionError(f"{text.rstrip('.')}.") from None


def warn_of(session: Session, named: str | None) -> None:
    """Tell what is wrong with a session, and what mends it where that is damage. `named` is how the user called it."""
    for warning in session.warnings:
        warn(f"{warning}.")
    if session.file is not None and any(warning.line is not None for warning in session.warnings):
        notice(f"`cantle sessions repair {shlex.quote(named or session.id)}` writes a sound copy beside it.")
