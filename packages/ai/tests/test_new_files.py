"""Files that take another's place: whole or not at all, and what a killed writer leaves is cleared up."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cantle_ai import new_files
from cantle_ai.new_files import NewFile, new_file

WRITER = """
import sys
from pathlib import Path
from cantle_ai.new_files import new_file

with new_file(Path(sys.argv[1]), 0o600) as file:
    file.write(b"half of it")
    print(file.path, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def fresh_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test looks through its folders as a process does that has just started."""
    monkeypatch.setattr(new_files, "_cleared", set())


@contextmanager
def writer(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """Another process in the middle of a file, and that file."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        try:
            yield process, Path(process.stdout.readline().decode().strip())
        finally:
            process.kill()


def killed_writer(folder: Path) -> Path:
    with writer(folder) as (process, left):
        process.kill()
        process.wait()
    assert left.read_bytes() == b"half of it"
    return left


def write(target: Path, data: bytes = b"new") -> None:
    with new_file(target.parent, 0o644) as file:
        file.write(data)
        file.replace(target)


def test_a_file_takes_the_place_of_another(tmp_path: Path) -> None:
    target = tmp_path / "a"
    target.write_bytes(b"old")
    with new_file(tmp_path, 0o640) as file:
        file.write(b"new")
        assert target.read_bytes() == b"old"
        file.replace(target)
    assert target.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [target]


def test_a_file_becomes_one_that_must_not_exist(tmp_path: Path) -> None:
    with new_file(tmp_path, 0o644) as file:
        file.write(b"first")
        file.become(tmp_path / "a")
    with pytest.raises(FileExistsError), new_file(tmp_path, 0o644) as file:
        file.become(tmp_path / "a")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a", b"first")]


def test_where_a_file_has_one_name_only_it_moves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*paths: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    with new_file(tmp_path, 0o644) as file:
        file.write(b"moved")
        file.become(tmp_path / "a")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a", b"moved")]


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt])
def test_a_failure_leaves_nothing(tmp_path: Path, failure: type[BaseException]) -> None:
    with pytest.raises(failure), new_file(tmp_path, 0o644):
        raise failure
    assert list(tmp_path.iterdir()) == []


def test_no_descriptor_is_left(tmp_path: Path) -> None:
    with new_file(tmp_path, 0o644) as file:
        descriptor = file.descriptor
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL on Windows")
class TestKilledWriters:
    def test_what_one_left_is_removed_by_the_next_in_its_folder(self, tmp_path: Path) -> None:
        left = killed_writer(tmp_path)
        (tmp_path / "sub").mkdir()
        write(tmp_path / "sub" / "a")
        assert left.exists()
        write(tmp_path / "a")
        assert not left.exists()

    def test_the_file_of_a_live_one_stays(self, tmp_path: Path) -> None:
        with writer(tmp_path) as (process, live):
            killed = killed_writer(tmp_path)
            write(tmp_path / "a")
            assert live.exists() and not killed.exists()
            process.communicate(b"")
        assert process.returncode == 0
        assert not live.exists()

    def test_a_stopped_one_is_alive(self, tmp_path: Path) -> None:
        with writer(tmp_path) as (process, live):
            process.send_signal(signal.SIGSTOP)
            write(tmp_path / "a")
            assert live.exists()

    def test_another_file_of_this_process_stays(self, tmp_path: Path) -> None:
        with new_file(tmp_path, 0o644) as first:
            new_files._cleared.clear()
            write(tmp_path / "a")
            assert first.path.exists()

    def test_only_files_of_this_kind_are_touched(self, tmp_path: Path) -> None:
        outside = tmp_path / "outside"
        outside.write_bytes(b"kept")
        folder = tmp_path / "folder"
        folder.mkdir()
        (folder / ".cantle-mine.tmp").write_bytes(b"kept")
        (folder / ".cantle-0123456789ab.tmp.bak").write_bytes(b"kept")
        (folder / ".cantle-0123456789aa.tmp").symlink_to(outside)
        (folder / ".cantle-0123456789ac.tmp").mkdir()
        os.mkfifo(folder / ".cantle-0123456789ad.tmp")
        before = sorted(os.listdir(folder))
        write(folder / "a")
        assert sorted(os.listdir(folder)) == sorted([*before, "a"])
        assert outside.read_bytes() == b"kept"

    def test_a_folder_is_looked_through_once(self, tmp_path: Path) -> None:
        write(tmp_path / "a")
        left = killed_writer(tmp_path)
        write(tmp_path / "a")
        assert left.exists()

    def test_a_file_that_was_cleared_away_before_it_was_locked_is_made_anew(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        keep, tries = new_files._keep, []

        def keep_too_late(file: NewFile) -> bool:
            tries.append(file.path)
            if len(tries) == 1:
                new_files._remove_left(file.path)
            return keep(file)

        monkeypatch.setattr(new_files, "_keep", keep_too_late)
        write(tmp_path / "a")
        assert len(tries) == 2
        assert os.listdir(tmp_path) == ["a"]

    def test_without_locks_nothing_is_removed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        left = killed_writer(tmp_path)

        def refuse(*words: object) -> None:
            raise OSError(95, "Operation not supported")

        monkeypatch.setattr("fcntl.flock", refuse)
        write(tmp_path / "a")
        assert left.exists() and (tmp_path / "a").read_bytes() == b"new"

    @pytest.mark.root
    def test_what_somebody_else_left_stays(self, tmp_path: Path) -> None:
        if os.geteuid() != 0:
            pytest.skip("only the super-user can give a file away")
        left = killed_writer(tmp_path)
        os.chown(left, 12345, -1)
        write(tmp_path / "a")
        assert left.exists()
