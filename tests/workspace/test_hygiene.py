"""The repository speaks of itself alone and names public places only."""

import re
import tomllib
from urllib.parse import urlsplit

import pytest

from tests.support.paths import ROOT, own_files

# Written in pieces, so that this file passes its own test.
_MACHINE_PATHS = [
    "/wo" + r"rk/(main|sha" + r"red|\.lib)",
    "/ro" + "ot/",
    "/opt/" + "(pypi|wheels)",
]
_SURROUNDINGS = ["work" + "place", r"\.\./sh" + "ared/", r"\bissues " + r"show\b"]
_FORBIDDEN = re.compile("|".join(_MACHINE_PATHS + _SURROUNDINGS), re.IGNORECASE)
_PUBLIC_REGISTRIES = {"pypi.org", "files.pythonhosted.org"}


def lines_of_text() -> list[tuple[str, int, str]]:
    found = []
    for path in own_files():
        data = path.read_bytes()
        if b"\0" in data:
            continue
        for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
            found.append((str(path.relative_to(ROOT)), number, line))
    return found


def test_no_file_names_a_machine_or_the_place_where_it_was_written() -> None:
    hits = [
        f"{name}:{number}: {line[:160]}" for name, number, line in lines_of_text() if _FORBIDDEN.search(line)
    ]
    assert hits == []


def test_the_lock_file_names_public_registries_only() -> None:
    text = (ROOT / "uv.lock").read_text(encoding="utf-8")
    hosts = {urlsplit(address).hostname for address in re.findall(r"[a-z+]+://[^\s\"]+", text)}
    assert hosts == _PUBLIC_REGISTRIES
    packages = tomllib.loads(text)["package"]
    assert {key for package in packages for key in package["source"]} <= {"registry", "editable", "virtual"}


@pytest.mark.parametrize("name", ["pip.conf", ".npmrc", "uv.toml", "package-lock.json"])
def test_no_package_client_is_configured(name: str) -> None:
    assert [path for path in own_files() if path.name == name] == []


def test_the_agent_loop_is_short_enough_to_be_read_at_a_sitting() -> None:
    loop = ROOT / "packages/agent/src/cantle_agent/loop.py"
    assert len(loop.read_text(encoding="utf-8").splitlines()) < 250
