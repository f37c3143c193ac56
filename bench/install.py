"""What is measured: Cantle from its wheels, and the reference from npm."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.trouble import Unable
from tools.dev import Unable as NoUv
from tools.dev import environment, find_uv

__all__ = ["REFERENCE_PACKAGES", "Installed", "find_peers", "install_cantle"]

ROOT = Path(__file__).resolve().parent.parent

REFERENCE_PACKAGES = ("node@22", "@earendil-works/pi-coding-agent@1.6.0")
_REFERENCE_FILES = (
    "node_modules/.bin/node",
    "node_modules/@earendil-works/pi-coding-agent/dist/bundle/cli.js",
)


@dataclass(frozen=True, slots=True)
class Installed:
    """An environment with Cantle in it, as a user has it."""

    command: Path
    home: Path
    python: str
    """What its Python calls itself."""


def install_cantle(folder: Path, python: str) -> Installed:
    """Build the wheels of this checkout and install them, without extras, with compiled bytecode."""
    try:
        uv = find_uv()
    except NoUv as problem:
        raise Unable(str(problem)) from None
    env = environment()
    wheels, home = folder / "wheels", folder / "venv"

    def run(purpose: str, *words: str) -> None:
        _run([uv, "--quiet", *words], f"{purpose} failed", cwd=ROOT, env=env)

    run("Building the wheels", "build", "--all-packages", "--wheel", "--out-dir", str(wheels))
    run("Making a virtual environment", "venv", "--python", python, str(home))
    programs = home / ("Scripts" if os.name == "nt" else "bin")
    interpreter = programs / "python"
    built = sorted(str(path) for path in wheels.glob("*.whl"))
    # Without compiled bytecode the first start would measure the compiler.
    run("Installing the wheels", "pip", "install", "--compile-bytecode", "--python", str(interpreter), *built)
    said = _run([str(interpreter), "--version"], "The new environment's Python does not start")
    return Installed(programs / "cantle", home, said.strip())


def find_peers(given: str | None, environ: Mapping[str, str]) -> Path:
    """The folder that holds the reference as `pi`; it is installed there when it is missing.

    `given`, else `$BENCH_PEERS`, else `~/peers`, where the bench looks by itself.
    """
    folder = Path(given or environ.get("BENCH_PEERS") or Path.home() / "peers").expanduser().resolve()
    home = folder / "pi"
    if all((home / name).exists() for name in _REFERENCE_FILES):
        return folder
    npm = shutil.which("npm", path=environ.get("PATH"))
    if npm is None:
        raise Unable(
            f"The reference is not in {home}, and there is no npm on the path to install it with. "
            "Install npm, or name the folder that has it as pi with --peers DIR or in $BENCH_PEERS."
        )
    print(f"Installing the reference into {home} …", file=sys.stderr, flush=True)
    home.mkdir(parents=True, exist_ok=True)
    manifest = home / "package.json"
    if not manifest.exists():
        manifest.write_text('{"private": true}\n', encoding="utf-8")
    words = [npm, "install", "--no-audit", "--no-fund", *REFERENCE_PACKAGES]
    _run(words, "npm could not install the reference", cwd=home, env=environ)
    return folder


def _run(
    words: Sequence[str], failed: str, *, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> str:
    """What the command wrote. Raises :class:`Unable` with its last lines when it fails."""
    try:
        done = subprocess.run(
            words,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise Unable(f"{failed}: {error}.") from None
    if done.returncode:
        last = "\n".join(done.stdout.strip().splitlines()[-10:])
        raise Unable(f"{failed} (exit status {done.returncode}):\n{last}")
    return done.stdout
