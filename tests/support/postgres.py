"""A PostgreSQL server for tests: a real one, started by the first test that asks, with its data in a temporary folder.

It listens on a Unix socket only. One serves all tests of a run, each of which gets a schema of its own.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from urllib.parse import quote

import pytest

__all__ = ["PostgresServer", "needs_postgres", "postgres_server"]

_PLACES = ("/usr/local/bin", "/usr/lib/postgresql/*/bin", "/usr/local/pgsql/bin", "/opt/homebrew/bin")
_START_TIME = 60


def needs_postgres() -> pytest.MarkDecorator:
    """The mark of a test that talks to a server: it is skipped, with the reason, where none can be started."""
    missing = [name for name in ("initdb", "postgres") if _program(name) is None]
    if find_spec("psycopg") is None:
        missing.append("the package psycopg")
    if sys.platform == "win32":
        missing.append("a system with Unix sockets")
    if missing:
        return pytest.mark.skip(reason=f"needs {', '.join(missing)}")
    return pytest.mark.extra("postgres")


class PostgresServer:
    """A server that runs. `stop` and `start` as a test likes; it has the same address again."""

    def __init__(self, folder: Path, user: str | None) -> None:
        self._folder = folder
        self._user = user
        self._process: subprocess.Popen[bytes] | None = None
        self._schemas = count(1)

    def start(self) -> None:
        """Start it, unless it runs."""
        if self._process is not None:
            return
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(_needed("postgres"), "-D", str(self._folder / "data"), "-k", str(self._folder)),
                    *("-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=50"),
                    *("-c", "shared_buffers=16MB", "-c", "log_min_messages=fatal", "-c", "autovacuum=off"),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                user=self._user,
                cwd=self._folder,
            )
        self._wait_until_it_answers(self._process)

    def _wait_until_it_answers(self, process: subprocess.Popen[bytes]) -> None:
        import psycopg

        deadline = time.monotonic() + _START_TIME
        while True:
            try:
                psycopg.connect(self.address, connect_timeout=5).close()
                return
            except psycopg.OperationalError:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError((self._folder / "log").read_text("utf-8", "replace")) from None
            # There is nothing to be told by: the server only begins to answer.
            time.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """End it at once, as `pg_ctl stop -m fast` does."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(_START_TIME)
            self._process = None

    @property
    def address(self) -> str:
        """The database, with whatever the schemas of tests hold."""
        return f"postgresql://cantle@/postgres?host={quote(str(self._folder), safe='')}"

    def fresh(self) -> str:
        """The address of an empty place: a new schema, the only one that a connection sees."""
        import psycopg

        name = f"test_{next(self._schemas)}"
        with psycopg.connect(self.address, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        return f"{self.address}&options={quote(f'-csearch_path={name}', safe='')}"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A server with an empty database, gone afterwards."""
    # A socket's path has about 100 characters; a test's own folder can be deeper.
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    user = _other_user()
    try:
        if user is not None:
            shutil.chown(folder, user)
        made = subprocess.run(
            [
                *(_needed("initdb"), "-D", str(folder / "data"), "-U", "cantle", "-A", "trust"),
                *("--no-sync", "--encoding=UTF8", "--locale=C", "--no-instructions"),
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_START_TIME,
            user=user,
            cwd=folder,
        )
        if made.returncode:
            raise RuntimeError(made.stderr.decode("utf-8", "replace"))
        server = PostgresServer(folder, user)
        try:
            server.start()
            yield server
        finally:
            # Without putting in order what is thrown away.
            server.stop(signal.SIGQUIT)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _other_user() -> str | None:
    """Whom the server runs as: it refuses the super-user."""
    if os.geteuid() != 0:
        return None
    import pwd

    names = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in names)


def _needed(name: str) -> str:
    found = _program(name)
    assert found is not None, name
    return found


def _program(name: str) -> str | None:
    if found := shutil.which(name):
        return found
    for place in _PLACES:
        for folder in sorted(Path("/").glob(place.lstrip("/")), reverse=True):
            if os.access(folder / name, os.X_OK):
                return str(folder / name)
    return None
