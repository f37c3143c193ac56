"""What can go wrong with sessions, as a person reads it.

SessionError
├── SessionFileError      a file that cannot be read, written or understood; names it
├── SessionLookupError    no session, or several, fit what was asked for
└── UnknownEntryError     a session has no entry of this id; a KeyError, too
"""

from __future__ import annotations

from pathlib import Path

__all__ = [
    "SessionError",
    "SessionFileError",
    "SessionLookupError",
    "UnknownEntryError",
    "no_session",
    "still_open",
]


class SessionError(Exception):
    """Something about a session that a person has to know."""


class SessionFileError(SessionError):
    """`path` cannot be used as it is; `text` says why and what to do. What was on disk is still there.

    `path` is a file, a folder, or the location of a database, of which a password is left out.

    The text stands inside a sentence: it ends without a full stop, which the door that prints it adds.
    """

    def __init__(self, path: Path | str, text: str) -> None:
        if isinstance(path, str):
            from cantle_session.addresses import without_passwords

            path = without_passwords(path)
        super().__init__(f"{path}: {text}")
        self.path = path
        self.text = text


class SessionLookupError(SessionError):
    """What was asked for names no session, or more than one."""


class UnknownEntryError(SessionError, KeyError):
    """A session has no entry `entry_id`."""

    def __init__(self, entry_id: object) -> None:
        super().__init__(entry_id)
        self.entry_id = entry_id

    def __str__(self) -> str:
        return f"there is no entry {self.entry_id!r} in this session"


def no_session(where: Path | str, first_line: bytes) -> SessionFileError:
    """The error for lines that begin with no header, or for none. One that was lost need not cost the rest."""
    if not first_line:
        return SessionFileError(where, "it is empty; it was left as it is, give the path of a session file")
    text = "its first line is not the header of a session; it was left as it is, give the path of a session file, or repair it"
    return SessionFileError(where, text)


def still_open(where: Path | str, left: str) -> SessionFileError:
    """The error for what cannot be done to a session that somebody has open. `left` is how it was left."""
    return SessionFileError(
        where, f"this session is open, here or in another process, so {left}; close it there first"
    )
