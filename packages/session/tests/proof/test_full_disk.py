"""A disk that is full: what was kept stays, what was refused is known to be, and room again is all it takes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from cantle_ai.messages import UserMessage
from cantle_session.errors import SessionFileError
from cantle_session.session import Session
from cantle_session.storage.store import open_store
from packages.session.tests.proof.doomed_writer import operate
from packages.session.tests.proof.strict_request import APIS, check_request
from tests.support.samples import samples

pytestmark = [
    pytest.mark.root,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        os.name == "nt" or os.geteuid() != 0, reason="only the super-user can mount a small file system"
    ),
]

STORES = {"jsonl": "{}/sessions", "sqlite": "sqlite:{}/sessions.db"}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    words = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(tmp_path)]
    mounted = subprocess.run(words, capture_output=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"a small file system cannot be mounted here: {mounted.stderr.decode().strip()}")
    yield tmp_path
    subprocess.run(["umount", "--lazy", str(tmp_path)], check=True)


def fill(disk: Path) -> Path:
    """Takes all the room that is left; gives the file that has it."""
    filler = disk / "filler"
    with filler.open("ab", buffering=0) as file:
        for size in (65536, 4096, 1):
            try:
                while file.write(b"x" * size):
                    pass
            except OSError:
                continue
    return filler


def contents(session: Session) -> list[object]:
    return [entry.to_json() for entry in session.entries()]


@pytest.mark.parametrize("name", STORES)
def test_what_does_not_fit_is_refused_and_nothing_else_is_lost(name: str, small_disk: Path) -> None:
    store = open_store(STORES[name].format(small_disk))
    session = Session.create("/work", store)
    session.append_message(UserMessage("hi"))
    random = Random(f"full {name}")
    kept, refused, added = contents(session), 0, 0
    for number in range(samples(300, 60)):
        filler = fill(small_disk) if number % 4 == 1 else None
        leaf = session.leaf_id
        try:
            entry = operate(session, random, number)
        except SessionFileError as problem:
            refused += 1
            assert "space" in str(problem) or "full" in str(problem)
            assert session.leaf_id is not None
        else:
            added += 1
            assert session.leaf_id == entry.id != leaf
            kept.append(entry.to_json())
        assert contents(session) == kept
        if filler is not None:
            filler.unlink()
        if number % 5 == 0:
            with Session.open(session.location) as again:
                assert contents(again) == kept
        if sum(path.stat().st_size for path in small_disk.rglob("*") if path.is_file()) > 500_000:
            break
    assert refused > 0
    assert added > refused
    session.append_compaction("sum", None, 90_000)
    check_request(session.context().messages, APIS[0])
    session.close()
    with Session.open(session.location) as again:
        assert contents(again)[:-1] == kept
        assert [warning for warning in again.warnings if warning.line is not None] == []
    store.close()


@pytest.mark.parametrize("name", STORES)
def test_a_session_that_cannot_be_begun_is_begun_when_there_is_room(name: str, small_disk: Path) -> None:
    store = open_store(STORES[name].format(small_disk))
    filler = fill(small_disk)
    session = Session.create("/work", store)
    session.append_model_change("p", "m")
    for _ in range(2):
        with pytest.raises(SessionFileError):
            session.append_message(UserMessage("x" * 10_000))
        assert not session.saved
        assert len(session.entries()) == 1
    filler.unlink()
    assert store.sessions() == []
    session.append_message(UserMessage("hi"))
    session.close()
    with Session.open(session.location) as again:
        assert [entry.type for entry in again.entries()] == ["model_change", "message"]
    store.close()
