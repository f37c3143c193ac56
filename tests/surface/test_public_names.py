"""Public names are a list that changes on purpose."""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator

import pytest

from tests.surface.surface import PACKAGES, public_names, recorded

NAMES = public_names()


def test_public_names_are_the_recorded_ones() -> None:
    assert recorded("public_names.json") == NAMES


def test_every_package_says_what_is_public() -> None:
    assert [package for package in PACKAGES if package not in NAMES] == []


@pytest.mark.parametrize("package", NAMES)
def test_no_public_name_is_also_a_module(package: str) -> None:
    # Importing the module would put it in the place of the name.
    modules = {info.name for info in pkgutil.iter_modules(importlib.import_module(package).__path__)}
    assert modules & set(NAMES[package]) == set()


@pytest.mark.parametrize("package", NAMES)
def test_every_public_name_exists_and_has_a_docstring_or_a_value(package: str) -> None:
    module = importlib.import_module(package)
    for name in NAMES[package]:
        thing = getattr(module, name)
        if callable(thing) and getattr(thing, "__module__", "").startswith("cantle"):
            assert thing.__doc__, f"{package}.{name} has no docstring"


@pytest.mark.parametrize("package", NAMES)
def test_no_public_signature_has_any(package: str) -> None:
    module = importlib.import_module(package)
    found = [
        f"{name}: {where}"
        for name in NAMES[package]
        for where, annotation in _annotations(getattr(module, name))
        if re.search(r"\bAny\b", annotation)
    ]
    assert found == []


def _annotations(thing: object) -> Iterator[tuple[str, str]]:
    """Where, and what it says: the signature of a function; the fields and public methods of a class of ours."""
    if inspect.isfunction(thing):
        for where, annotation in inspect.get_annotations(thing).items():
            yield where, str(annotation)
    elif inspect.isclass(thing) and thing.__module__.startswith("cantle"):
        for field, annotation in inspect.get_annotations(thing).items():
            if not field.startswith("_"):
                yield field, str(annotation)
        for name, member in vars(thing).items():
            function = getattr(member, "fget", None) or getattr(member, "__func__", member)
            if inspect.isfunction(function) and (not name.startswith("_") or name == "__init__"):
                for where, annotation in _annotations(function):
                    yield f"{name}.{where}", annotation
