"""The reference implementation, for tests that compare with it.

They carry `@pytest.mark.reference` and use the fixture `reference` (import it, or call `reference_program`).
Without `CANTLE_REF=1` they are skipped with that reason; with it, the reference is installed from npm, once,
into a cache folder outside the repository (`CANTLE_REF_CACHE`, else `~/.cache/cantle-reference`).
"""

import os
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path

import pytest

PACKAGES = ("node@22", "@earendil-works/pi-coding-agent@1.6.0")

# Read here and once: the variables are gone when a test runs, so that no command under test sees them.
_ASKED_FOR = os.environ.get("CANTLE_REF") == "1"
_CACHE = Path(os.environ.get("CANTLE_REF_CACHE") or Path.home() / ".cache" / "cantle-reference")

_SCRIPT = Path("node_modules/@earendil-works/pi-coding-agent/dist/bundle/cli.js")
_NODE = Path("node_modules/.bin/node")


def reference_program() -> list[str]:
    """The words that start the reference; skips the calling test where it is not asked for."""
    if not _ASKED_FOR:
        pytest.skip("compares with the reference implementation: set CANTLE_REF=1 (needs npm)")
    folder = _installed()
    return [str(folder / _NODE), str(folder / _SCRIPT)]


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
    folder = _CACHE
    if (folder / _SCRIPT).is_file() and (folder / _NODE).exists():
        return folder
    npm = shutil.which("npm")
    if npm is None:
        raise RuntimeError("CANTLE_REF=1 needs npm, and there is none on the path")
    folder.mkdir(parents=True, exist_ok=True)
    manifest = folder / "package.json"
    if not manifest.exists():
        manifest.write_text('{"private": true}\n', encoding="utf-8")
    subprocess.run([npm, "install", "--no-audit", "--no-fund", *PACKAGES], cwd=folder, check=True)
    return folder
