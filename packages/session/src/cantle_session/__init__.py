"""The history of a session: an append-only tree of entries in one readable file."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cantle_session.errors import SessionError, SessionFileError, SessionLookupError
    from cantle_session.folders import session_folder
    from cantle_session.listing import SessionInfo, find_session, latest, list_sessions
    from cantle_session.projection import SessionContext
    from cantle_session.session import Session, SessionWarning

__all__ = [
    "Session",
    "SessionContext",
    "SessionError",
    "SessionFileError",
    "SessionInfo",
    "SessionLookupError",
    "SessionWarning",
    "find_session",
    "latest",
    "list_sessions",
    "session_folder",
]

_HOMES = {
    "Session": "session",
    "SessionContext": "projection",
    "SessionError": "errors",
    "SessionFileError": "errors",
    "SessionInfo": "listing",
    "SessionLookupError": "errors",
    "SessionWarning": "session",
    "find_session": "listing",
    "latest": "listing",
    "list_sessions": "listing",
    "session_folder": "folders",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{home}"), name)
