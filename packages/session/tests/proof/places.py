"""Where the sessions of the proofs are kept: one row for each back-end that needs no server."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from cantle_session.session import Session
from cantle_session.storage.store import SessionStore, open_store

__all__ = ["PLACES", "Place"]


class Place(Protocol):
    """A place for one session at a time."""

    def create(self) -> Session: ...

    def again(self, session: Session) -> Session | None:
        """The session opened once more from where it is kept; None where it is kept nowhere."""

    def lines(self, session: Session) -> list[bytes]:
        """Every line that is kept, as another process would find it; none where there is no other way to look."""

    def close(self) -> None: ...


class _Stored:
    """Sessions in a store that lies in a folder of its own."""

    def __init__(self, location: Callable[[Path], str]) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="cantle-proof-"))
        self._store: SessionStore = open_store(location(self._folder))

    def create(self) -> Session:
        return Session.create("/work", self._store)

    def again(self, session: Session) -> Session | None:
        return Session.open(session.location) if session.saved else None

    def lines(self, session: Session) -> list[bytes]:
        if not session.saved:
            return []
        storage = self._store.open(session.location)
        try:
            return [line for _, line in storage.lines()]
        finally:
            storage.close()

    def close(self) -> None:
        self._store.close()
        shutil.rmtree(self._folder)


class _InMemory:
    def create(self) -> Session:
        return Session.in_memory("/work")

    def again(self, session: Session) -> Session | None:
        return None

    def lines(self, session: Session) -> list[bytes]:
        return []

    def close(self) -> None:
        """Nothing is held."""


PLACES: dict[str, Callable[[], Place]] = {
    "jsonl": lambda: _Stored(lambda folder: str(folder / "sessions")),
    "memory": _InMemory,
    "sqlite": lambda: _Stored(lambda folder: f"sqlite:{folder / 'sessions.db'}"),
}
"""By the back-end's name."""
