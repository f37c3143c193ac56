"""The package's face: every public name, loaded when it is used."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import cantle_ai

SOURCE = Path(cantle_ai.__file__).read_text(encoding="utf-8")


def test_names_modules_and_what_type_checkers_see_are_one_list() -> None:
    seen = {
        alias.name: node.module
        for node in ast.walk(ast.parse(SOURCE))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("cantle_ai")
        for alias in node.names
    }
    assert seen == cantle_ai._MODULES
    assert sorted(cantle_ai.__all__) == sorted(seen)
    assert cantle_ai.__all__ == sorted(cantle_ai.__all__, key=lambda name: (name[0].islower(), name))


@pytest.mark.parametrize("name", cantle_ai.__all__)
def test_a_name_is_the_one_of_its_module(name: str) -> None:
    assert getattr(cantle_ai, name) is getattr(import_module(cantle_ai._MODULES[name]), name)
    assert name in dir(cantle_ai)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        cantle_ai.nonsense  # noqa: B018


def test_importing_the_package_loads_nothing_else() -> None:
    code = "import sys, cantle_ai; print([n for n in sys.modules if n.startswith(('cantle_ai.', 'msgspec', 'asyncio'))])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout == "[]\n"
