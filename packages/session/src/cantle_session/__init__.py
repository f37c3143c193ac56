"""The history of a session: an append-only tree of entries in one readable file."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cantle_session.errors import SessionError, SessionFileError, SessionLookupError, UnknownEntryError
    from cantle_session.exports import export_jsonl
    from cantle_session.folders import session_folder
    from cantle_session.forks import clone_session, copy_session, fork_session
    from cantle_session.imports import import_session
    from cantle_session.listing import SessionInfo, find_session, latest, list_sessions
    from cantle_session.moves import move_session
    from cantle_session.projection import SessionContext
    from cantle_session.repair import repair_session
    from cantle_session.session import Session, SessionWarning
    from cantle_session.stats import session_stats
    from cantle_session.storage.search import SearchHit
    from cantle_session.storage.store import SessionStore, open_store

__all__ = [
    "SearchHit",
    "Session",
    "SessionContext",
    "SessionError",
    "SessionFileError",
    "SessionInfo",
    "SessionLookupError",
    "SessionStore",
    "SessionWarning",
    "UnknownEntryError",
    "clone_session",
    "copy_session",
    "export_jsonl",
    "find_session",
    "fork_session",
    "import_session",
    "latest",
    "list_sessions",
    "move_session",
    "open_store",
    "repair_session",
    "session_folder",
    "session_stats",
]

_HOMES = {
    "SearchHit": "cantle_session.storage.search",
    "Session": "cantle_session.session",
    "SessionContext": "cantle_session.projection",
    "SessionError": "cantle_session.errors",
    "SessionFileError": "cantle_session.errors",
    "SessionInfo": "cantle_session.listing",
    "SessionLookupError": "cantle_session.errors",
    "SessionStore": "cantle_session.storage.store",
    "SessionWarning": "cantle_session.session",
    "UnknownEntryError": "cantle_session.errors",
    "clone_session": "cantle_session.forks",
    "copy_session": "cantle_session.forks",
    "export_jsonl": "cantle_session.exports",
    "find_session": "cantle_session.listing",
    "fork_session": "cantle_session.forks",
    "import_session": "cantle_session.imports",
    "latest": "cantle_session.listing",
    "list_sessions": "cantle_session.listing",
    "move_session": "cantle_session.moves",
    "repair_session": "cantle_session.repair",
    "open_store": "cantle_session.storage.store",
    "session_folder": "cantle_session.folders",
    "session_stats": "cantle_session.stats",
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
