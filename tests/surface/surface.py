"""What this code shows and what it costs to start: public names, and the modules that a start imports."""

import importlib
import json
import os
import pkgutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
PACKAGES = ("cantle_ai", "cantle_agent", "cantle_session", "cantle")

WATCHED = frozenset(
    """
    argparse asyncio base64 concurrent.futures ctypes dataclasses datetime decimal difflib email hashlib
    html http.client importlib.metadata importlib.resources inspect json locale logging mimetypes
    multiprocessing pathlib pickle platform random re secrets select selectors shutil signal socket sqlite3
    ssl subprocess tempfile threading tomllib traceback typing unittest urllib.parse urllib.request uuid
    xml zipfile zoneinfo
    """.split()
)
"""Modules of the standard library that cost enough to be looked at."""

_FOUND_BY_CHANCE = {"typing_extensions", "_wmi"}
"""What a dependency takes if it happens to be there; and, on Windows alone, `platform` of Python 3.12."""

HELLO = json.dumps({"responses": [{"content": [{"type": "text", "text": "Hello."}]}]})


@dataclass(frozen=True, slots=True)
class Imports:
    """What one start imported beyond what Python itself brings."""

    own: list[str]
    third_party: list[str]
    stdlib: list[str]


def public_names() -> dict[str, list[str]]:
    """Each package, and each of its sub-packages that has an `__all__` -> the names in it."""
    found: dict[str, list[str]] = {}
    for package in PACKAGES:
        root = importlib.import_module(package)
        names = [package]
        names += [f"{package}.{info.name}" for info in pkgutil.iter_modules(root.__path__) if info.ispkg]
        for name in names:
            public = getattr(importlib.import_module(name), "__all__", None)
            if public is not None:
                found[name] = sorted(public)
    return found


def starts(folder: Path) -> dict[str, list[str]]:
    """The kinds of start that have a budget -> their words; a scripted model's file is put into `folder`."""
    script = folder / "hello.json"
    script.write_text(HELLO, encoding="utf-8")
    model = ["--provider", "scripted", "--model", str(script)]
    return {
        "version": ["--version"],
        "help": ["--help"],
        "print": [*model, "-p", "Hi"],
        "json": [*model, "--mode", "json", "Hi"],
    }


def imports(words: list[str], folder: Path) -> Imports:
    """What `cantle WORDS` imports, in an empty home. Raises `AssertionError` if it fails."""
    start = "import sys; from cantle.cli import main; sys.exit(main())"
    loaded = _loaded(["-c", start, *words], folder) - _loaded(["-c", "import sys"], folder)
    outer = {name for name in loaded if name.partition(".")[0] not in sys.stdlib_module_names}
    own = {name for name in outer if name.partition(".")[0] in PACKAGES}
    third_party = {name.partition(".")[0] for name in outer - own} - _FOUND_BY_CHANCE
    return Imports(sorted(own), sorted(third_party), sorted(loaded & WATCHED))


def _loaded(words: list[str], folder: Path) -> set[str]:
    home = folder / "home"
    home.mkdir(exist_ok=True)
    env = {"HOME": str(home), "USERPROFILE": str(home), "PATH": os.environ["PATH"], "CANTLE_OFFLINE": "1"}
    run = subprocess.run(
        [sys.executable, "-X", "importtime", *words],
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    lines = run.stderr.splitlines()
    assert run.returncode == 0, "\n".join(line for line in lines if not line.startswith("import time:"))
    return {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}


def all_imports() -> dict[str, Imports]:
    """The imports of each kind of start."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        return {kind: imports(words, folder) for kind, words in starts(folder).items()}


def recorded(name: str) -> Mapping[str, object]:
    """A data file of this folder."""
    found: Mapping[str, object] = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    return found
