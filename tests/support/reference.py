"""The reference implementation, for tests that compare with it.

They carry `@pytest.mark.reference` and use the fixture `reference` (import it, or call `reference_program`).
Without `CANTLE_REF=1` they are skipped with that reason; with it, the reference is installed from npm, once,
into a cache folder outside the repository (`CANTLE_REF_CACHE`, else `~/.cache/cantle-reference`). What is there
already in the right version is used as it is, without a network.
"""

import json
import os
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from tests.support.file_lock import locked

VERSION = "1.6.0"
"""Facts are taken over from this version, and compared with it."""

PACKAGE = "@earendil-works/pi-coding-agent"
PACKAGES = ("node@22", f"{PACKAGE}@{VERSION}")

# Read here and once: the variables are gone when a test runs, so that no command under test sees them.
_ASKED_FOR = os.environ.get("CANTLE_REF") == "1"
_CACHE = Path(os.environ.get("CANTLE_REF_CACHE") or Path.home() / ".cache" / "cantle-reference")

_SCRIPT = Path("node_modules", PACKAGE, "dist/bundle/cli.js")
_NODE = Path("node_modules/.bin/node")
_ATTEMPTS = 2
_NPM_SECONDS = 600


class Unusable(RuntimeError):
    """The reference cannot be had; the text says why."""


def reference_folder() -> Path:
    """The folder in which its packages are installed; skips the calling test where it is not asked for."""
    if not _ASKED_FOR:
        pytest.skip("compares with the reference implementation: set CANTLE_REF=1 (needs npm)")
    return _installed()


def reference_program() -> list[str]:
    """The words that start the reference; skips the calling test where it is not asked for."""
    folder = reference_folder()
    return [str(folder / _NODE), str(folder / _SCRIPT)]


def evaluated(script: str) -> Any:
    """What a module of JavaScript prints, read as JSON; it may import the reference's packages by their names.

    Skips the calling test where the reference is not asked for.
    """
    folder = reference_folder()
    run = subprocess.run(
        [str(folder / _NODE), "--input-type=module", "--eval", script],
        cwd=folder,
        env=reference_environment(folder / ".home"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def reference_environment(home: Path) -> dict[str, str]:
    """An environment in which the reference keeps everything under `home` and asks no network."""
    kept = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
    return {**kept, "HOME": str(home), "PI_CODING_AGENT_DIR": str(home / "pi"), "PI_OFFLINE": "1"}


@pytest.fixture
def reference() -> list[str]:
    """The words that start the reference, as a fixture."""
    return reference_program()


@lru_cache(maxsize=1)
def _installed() -> Path:
    return install(_CACHE)


def install(folder: Path, npm: str | None = None) -> Path:
    """`folder` with the reference in it, installed where that is still to do. Safe in several processes at once.

    `npm` is the program to install with, else the one on the path. Raises :class:`Unusable`.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Unusable(f"the folder {folder} for the reference cannot be made: {error.strerror}") from error
    with locked(folder / ".lock"):
        if (problem := _problem(folder)) is None:
            return folder
        npm = npm or shutil.which("npm")
        if npm is None:
            raise Unusable(f"CANTLE_REF=1 needs npm, and there is none on the path ({problem} in {folder})")
        for _ in range(_ATTEMPTS):
            said = _npm_install(folder, npm)
            if (problem := _problem(folder)) is None:
                return folder
        raise Unusable(f"npm could not install the reference in {folder}: {problem}\n{said}")


def _npm_install(folder: Path, npm: str) -> str:
    """Install from nothing: what an earlier attempt left half done would be kept by npm. Returns what npm said."""
    shutil.rmtree(folder / "node_modules", ignore_errors=True)
    (folder / "package-lock.json").unlink(missing_ok=True)
    (folder / "package.json").write_text('{"private": true}\n', encoding="utf-8")
    try:
        run = subprocess.run(
            [npm, "install", "--no-audit", "--no-fund", *PACKAGES],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            timeout=_NPM_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"npm install took more than {_NPM_SECONDS} seconds"
    except OSError as error:
        return f"{npm} cannot be started: {error.strerror}"
    return run.stdout[-3000:]


def _problem(folder: Path) -> str | None:
    """What is wrong with the installation, if anything: it must be there, of this version, and start."""
    try:
        found = json.loads((folder / "node_modules" / PACKAGE / "package.json").read_text("utf-8"))["version"]
    except (OSError, ValueError, KeyError):
        return "it is not there"
    if found != VERSION:
        return f"it is version {found} and not {VERSION}"
    home = folder / ".home"
    try:
        run = subprocess.run(
            [str(folder / _NODE), str(folder / _SCRIPT), "--version"],
            env=reference_environment(home),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"it does not start: {error}"
    if run.stdout.strip() != VERSION:
        return f"--version gave {run.stdout.strip()!r}: {run.stderr[-500:]}"
    return None
