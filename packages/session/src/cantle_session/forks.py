"""Sessions that come from others: a branch of one, or the whole of it, as a session of its own.

fork      what came before a message of the user; its text is handed back, to be changed and sent
clone     a branch as it stands
copy      all branches, for another working directory

The new session has an id of its own and names the file that it came from in `parentSession`. It is there whole
or not at all, and the one that it came from is not touched.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING

from msgspec import Struct

from cantle_ai.messages import UserMessage
from cantle_session.branch_lines import branch_lines
from cantle_session.entries import MessageEntry
from cantle_session.folders import absolute_directory
from cantle_session.lines import encode_header, sound_line
from cantle_session.places import keep
from cantle_session.session import Session, new_header

if TYPE_CHECKING:
    from cantle_session.places import Place
__all__ = ["Fork", "ForkPoint", "clone_session", "copy_session", "fork_points", "fork_session"]


class ForkPoint(Struct, frozen=True):
    """A message of the user that a session can be forked at."""

    entry_id: str
    text: str


class Fork(Struct, frozen=True):
    """A session that stands where the user's `message` has not been sent yet."""

    session: Session
    message: UserMessage

    @property
    def text(self) -> str:
        return self.message.text


def fork_points(session: Session) -> list[ForkPoint]:
    """The user's messages on every branch, in the order in which they were written."""
    return [
        ForkPoint(entry.id, entry.message.text)
        for entry in session.walk(whole=True, kind="message")
        if isinstance(entry, MessageEntry) and isinstance(entry.message, UserMessage) and entry.message.text
    ]


def fork_session(
    session: Session,
    entry_id: str,
    place: Place,
    *,
    cwd: str | os.PathLike[str] | None = None,
    session_id: str | None = None,
) -> Fork:
    """A session at `place` with what came before the user's message `entry_id`, and that message.

    `cwd` is its working directory, by default the same one. Where nothing came before, it is a new session,
    which is kept from its first message on. Raises UnknownEntryError when there is no such entry, ValueError when it is
    no message of the user, or `session_id` cannot be part of a file name.
    """
    entry = session.entry(entry_id)
    if not isinstance(entry, MessageEntry) or not isinstance(entry.message, UserMessage):
        raise ValueError(f"{entry_id!r} is no message of the user; a session is forked at one")
    if session.parent(entry_id) is not None:
        forked = _made(session, place, branch_lines(session, entry_id, before=True), cwd, session_id)
        return Fork(forked, entry.message)
    home = session.header.cwd if cwd is None else cwd
    empty = Session.create(home, place, session_id=session_id, parent=_origin(session))
    return Fork(empty, entry.message)


def clone_session(
    session: Session,
    place: Place,
    *,
    leaf: str | None = None,
    cwd: str | os.PathLike[str] | None = None,
    session_id: str | None = None,
) -> Session:
    """A session at `place` with the branch that ends at the entry `leaf`; by default, where the session stands.

    Raises UnknownEntryError when there is no such entry, ValueError as :func:`fork_session`.
    """
    return _made(session, place, branch_lines(session, leaf), cwd, session_id)


def copy_session(
    session: Session,
    place: Place,
    *,
    cwd: str | os.PathLike[str] | None = None,
    session_id: str | None = None,
) -> Session:
    """A session at `place` with all branches of another one, standing at its last entry."""
    lines = (found[1] for line in session.lines(whole=True) if (found := sound_line(line)) is not None)
    return _made(session, place, lines, cwd, session_id)


def _made(
    session: Session,
    place: Place,
    lines: Iterable[bytes],
    cwd: str | os.PathLike[str] | None,
    session_id: str | None,
) -> Session:
    """A session of these lines that was made from `session`."""
    home = session.header.cwd if cwd is None else absolute_directory(cwd)
    header = new_header(home, session_id, _origin(session))
    return Session.open(keep(place, header, chain([encode_header(header)], lines)))


def _origin(session: Session) -> str | None:
    """What the header of a session names that is made from this one."""
    return session.location if session.saved else None
