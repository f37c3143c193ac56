"""The places that the conformance tests run in."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cantle_session.storage import locks, postgres, sqlite
from packages.session.tests.storage.backends import SERVER, Place


@pytest.fixture(params=["folder", "sqlite", SERVER])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """An empty place for sessions, once for each back-end that keeps them."""
    name: str = request.param
    if name == "folder":
        made = Place(name, str(tmp_path / "sessions"), lambda: monkeypatch.setattr(locks, "WAIT", 0.05))
    elif name == "sqlite":
        shorten = lambda: monkeypatch.setattr(sqlite, "_WAIT", 0.05)  # noqa: E731
        made = Place(name, f"sqlite:{tmp_path / 'kept' / 'sessions.db'}", shorten)
    else:
        shorten = lambda: monkeypatch.setattr(postgres, "_LOCK_TIMEOUT", "50ms")  # noqa: E731
        made = Place(name, request.getfixturevalue("postgres_server").fresh(), shorten)
    yield made
    made.store.close()
