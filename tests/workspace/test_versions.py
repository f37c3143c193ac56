"""One version for all, and packages that can be published."""

import tomllib
from typing import Any

import pytest

from tests.support.paths import PACKAGES, ROOT


def metadata(distribution: str) -> dict[str, Any]:
    with (PACKAGES[distribution] / "pyproject.toml").open("rb") as file:
        return tomllib.load(file)["project"]


def test_all_packages_have_one_version() -> None:
    assert len({metadata(name)["version"] for name in PACKAGES}) == 1


@pytest.mark.parametrize("name", PACKAGES)
def test_siblings_are_pinned_to_this_version(name: str) -> None:
    project = metadata(name)
    siblings = [line for line in project["dependencies"] if line.startswith("cantle")]
    assert all(line.split("==") == [line.split("==")[0], project["version"]] for line in siblings)


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_has_what_publishing_needs(name: str) -> None:
    project = metadata(name)
    folder = PACKAGES[name]
    assert project["license"] == "MIT"
    assert (folder / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert (folder / project["readme"]).is_file()
    assert (folder / "src" / name.replace("-", "_") / "py.typed").is_file()
