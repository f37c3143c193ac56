"""The first commands of a checkout, for a machine with Python and nothing else.

    python3 tools/dev.py demo [ARGS]      run `cantle demo`
    python3 tools/dev.py test [ARGS]      run the tests (ARGS go to pytest)
    python3 tools/dev.py test-all [ARGS]  the same, with what is optional: a local model, images, ripgrep
    python3 tools/dev.py check            formatting, lint, types, import contracts
    python3 tools/dev.py run -- ARGS      run `cantle ARGS` from this checkout

The workspace is managed by uv. Where uv is not on the path, a pinned one goes to `.tools/uv` inside the
checkout; nothing else on the machine changes. Needs Python 3.11 or newer and, the first time, a network.
Only the standard library is imported, and the syntax stays readable to Python 3.7, so that an old one can say
what is wrong.
"""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Mapping, Sequence  # noqa: UP035 - read by Pythons older than ours, too

UV_VERSION = "0.13.9"
MINIMUM = (3, 11)
ROOT = Path(__file__).resolve().parent.parent

OPTIONAL = ("--group", "local", "--group", "oracles")

SOURCES = tuple(f"packages/{name}/src" for name in ("ai", "agent", "session", "cantle"))

CHECKS = (
    ("ruff", "format", "--check"),
    ("ruff", "check"),
    ("mypy",),
    ("mypy", "--platform", "win32", *SOURCES),
    ("mypy", "--platform", "darwin", *SOURCES),
    ("lint-imports",),
)


class Unable(Exception):
    """What stands in the way, and what to do about it, in words for the person at the keyboard."""

    status = 1


class Misused(Unable):
    """The words after `dev.py` mean nothing."""

    status = 2


def check_python(version: Sequence[int] = tuple(sys.version_info[:3])) -> None:
    """Refuse a Python that the packages don't support."""
    if tuple(version[:2]) < MINIMUM:
        raise Unable(
            "Cantle needs Python 3.11 or newer; this is Python {}. "
            "Run this file with a newer one, for example: python3.12 tools/dev.py demo".format(
                ".".join(str(part) for part in version)
            )
        )


def find_uv(root: Path = ROOT) -> str:
    """The path of a usable uv: the one on PATH, else the checkout's own, installed on first use."""
    on_path = shutil.which("uv")
    if on_path:
        return on_path
    home = root / ".tools" / "uv"
    return _uv_in(home) or _install_uv(home)


def _uv_in(home: Path) -> str | None:
    for folder in ("bin", "Scripts"):
        for name in ("uv", "uv.exe"):
            candidate = home / folder / name
            if candidate.is_file():
                return str(candidate)
    return None


def _install_uv(home: Path) -> str:
    say(f"uv is not on the path: installing uv {UV_VERSION} into {home}")
    install = ("install", "--quiet", "--disable-pip-version-check", f"uv=={UV_VERSION}")
    if _has_module("ensurepip"):
        _step([sys.executable, "-m", "venv", str(home)], "make a virtual environment for uv")
        python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        _step([str(python), "-m", "pip", *install], "install uv from the package index")
    elif _has_module("pip"):
        command = [sys.executable, "-m", "pip", *install, "--target", str(home)]
        _step(command, "install uv from the package index")
    else:
        raise Unable(
            "This Python has neither venv nor pip, so uv can't be installed. Install one of them (on Debian "
            "and Ubuntu: apt install python3-venv) or uv itself (https://docs.astral.sh/uv/), then try again."
        )
    found = _uv_in(home)
    if found is None:
        raise Unable(
            f"uv was installed into {home}, but there is no uv in it. Delete the folder and try again."
        )
    return found


def _has_module(name: str) -> bool:
    probe = [sys.executable, "-c", f"import {name}"]
    return (
        subprocess.run(probe, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
        == 0
    )


def _step(command: Sequence[str], purpose: str) -> None:
    try:
        code = subprocess.call(command)
    except OSError as error:
        raise Unable(f"Could not {purpose}: {error}.") from error
    if code != 0:
        raise Unable(
            f"Could not {purpose} (exit status {code}, see above). "
            "If the network or the package index was not reachable, try again when it is."
        )


def environment(root: Path = ROOT, base: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment for uv: no Python is downloaded, and a first run uses the Python that runs this.

    uv trusts the authorities that pip was told to trust, or else the machine's own: without that it would
    know only those that it brings along, and fail behind a proxy where pip does not.
    """
    env = dict(os.environ if base is None else base)
    env.pop("VIRTUAL_ENV", None)
    env["UV_PYTHON_DOWNLOADS"] = "never"
    if "PIP_CERT" in env:
        env.setdefault("SSL_CERT_FILE", env["PIP_CERT"])
    if _machine_has_authorities():
        env.setdefault("UV_SYSTEM_CERTS", "1")
    if "UV_PYTHON" not in env and not (root / ".venv").exists():
        env["UV_PYTHON"] = sys.executable
    return env


def _machine_has_authorities() -> bool:
    if sys.platform in ("win32", "darwin"):
        return True
    paths = ssl.get_default_verify_paths()
    return bool(paths.cafile or (paths.capath and any(Path(paths.capath).iterdir())))


def commands(arguments: Sequence[str], root: Path = ROOT) -> list[list[str]]:
    """The words after `uv run --frozen`, one list for each command, for the words after `dev.py`.

    Cantle runs where the user stands; the checks run in the checkout.
    """
    verb, rest = arguments[0], list(arguments[1:])
    here = ["--project", str(root), "--no-dev"]
    checkout = ["--directory", str(root)]
    if verb == "demo":
        return [[*here, "cantle", "demo", *rest]]
    if verb == "run":
        return [[*here, "cantle", *(rest[1:] if rest[:1] == ["--"] else rest)]]
    if verb == "test":
        return [[*checkout, "pytest", *rest]]
    if verb == "test-all":
        return [[*OPTIONAL, *checkout, "pytest", *rest]]
    if verb == "check":
        return [[*checkout, *check] for check in CHECKS]
    raise Misused(f"{verb!r} is not a command of this file. There are: demo, test, test-all, check, run.")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _run(command: Sequence[str], env: Mapping[str, str]) -> int:
    with subprocess.Popen(command, env=env) as process:
        while True:
            try:
                code = process.wait()
                return code if code >= 0 else 128 - code  # ended by a signal: as a shell reports it
            except KeyboardInterrupt:
                continue  # the child got the same interrupt; wait for how it ends


def main(arguments: Sequence[str]) -> int:
    """Run one command; its exit status is ours."""
    if not arguments or arguments[0] in ("-h", "--help"):
        say((__doc__ or "").strip())
        return 0 if arguments else 2
    try:
        check_python()
        planned = commands(arguments)
        uv = find_uv()
        env = environment()
        if arguments[0] in ("test", "test-all"):
            env["PYTHONWARNDEFAULTENCODING"] = (
                "1"  # our modules name their encodings; a warning fails the test
            )
        codes = [_run([uv, "run", "--frozen", *command], env) for command in planned]
    except Unable as problem:
        say(str(problem))
        return problem.status
    except OSError as error:
        say(f"Could not run: {error}.")
        return 1
    except KeyboardInterrupt:
        return 130
    return next((code for code in codes if code != 0), 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
