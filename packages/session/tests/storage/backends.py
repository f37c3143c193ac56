"""The back-ends that the conformance tests run: a row is a place for sessions, or for one session's lines."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cantle_session.entries import SessionHeader
from cantle_session.lines import encode_header
from cantle_session.storage.port import Storage
from cantle_session.storage.store import SessionStore, open_store
from tests.support.postgres import needs_postgres

__all__ = ["HEADER_LINE", "SERVER", "Place", "child", "header", "in_databases", "told"]

SERVER = pytest.param("postgres", marks=needs_postgres())
in_databases = pytest.mark.parametrize("place", ["sqlite", SERVER], indirect=True)
"""For a test of what a folder does not promise."""

_PATH = os.pathsep.join(["packages/ai/src", "packages/agent/src", "packages/session/src"])
_ROOT = Path(__file__).resolve().parents[4]
_IDS = itertools.count(1)


def header(session_id: str | None = None, cwd: str = "/work", **fields: object) -> SessionHeader:
    """The header of a new session, with an id of its own."""
    number = next(_IDS)
    return SessionHeader(
        id=session_id or f"0197a000-0000-7000-8000-{number:012d}",
        timestamp="2026-01-01T00:00:00.000Z",
        cwd=cwd,
        **fields,  # type: ignore[arg-type]
    )


HEADER_LINE = encode_header(header("0197a000-0000-7000-8000-000000000000"))


class Place:
    """Where a test keeps sessions. It has nothing in it at first."""

    def __init__(self, name: str, location: str, shorten: Callable[[], None]) -> None:
        self.name = name
        self.location = location
        self.shorten_wait = shorten
        """Makes those who wait for a lock in this process give up soon."""
        self.store: SessionStore = open_store(location)

    @property
    def is_database(self) -> bool:
        return self.name in ("sqlite", "postgres")

    def session(self, *lines: bytes, **fields: object) -> Storage:
        """A session that is kept, with these lines behind its header, open for the first time."""
        new = header(**fields)  # type: ignore[arg-type]
        storage = self.store.create(new)
        with storage.locked():
            storage.append([encode_header(new), *lines])
        storage.close()
        return self.store.open(storage.location)


_CHILD = """
import sys
from cantle_session.storage.store import open_storage, open_store
location = sys.argv[1]
"""


def child(code: str, *words: str) -> subprocess.Popen[str]:
    """Another process that runs `code`, which has `location`, the first word, and both ways to open it."""
    return subprocess.Popen(
        [sys.executable, "-c", _CHILD + code, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=_ROOT,
        env={**os.environ, "PYTHONPATH": _PATH},
    )


def told(process: subprocess.Popen[str], text: str = "") -> str:
    """Say a line to the other process, if any, and give the next one of its."""
    assert process.stdin is not None and process.stdout is not None
    if text:
        process.stdin.write(text + "\n")
        process.stdin.flush()
    return process.stdout.readline().rstrip("\n")
