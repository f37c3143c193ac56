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
    "Session": "cantle_session.session",
    "SessionContext": "cantle_session.projection",
    "SessionError": "cantle_session.errors",
    "SessionFileError": "cantle_session.errors",
    "SessionInfo": "cantle_session.listing",
    "SessionLookupError": "cantle_session.errors",
    "SessionWarning": "cantle_session.session",
    "find_session": "cantle_session.listing",
    "latest": "cantle_session.listing",
    "list_sessions": "cantle_session.listing",
    "session_folder": "cantle_session.folders",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
