"""Every distribution builds a wheel, and the wheels work in an empty environment."""

import json
import os
import posixpath
import re
import subprocess
import zipfile
from pathlib import Path, PurePosixPath

import pytest

from tests.support.paths import PACKAGES, ROOT, own_files
from tools.dev import environment, find_uv

LINK = re.compile(r"\]\((?![a-z]+:|#)([^)#\s]+)[^)]*\)")
"""The file that a Markdown link within the repository leads to."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def run(words: list[str], *, cwd: Path, env: dict[str, str], check: bool = True) -> str:
    done = subprocess.run(words, cwd=cwd, env=env, capture_output=True, encoding="utf-8", check=False)
    if check and done.returncode != 0:
        raise AssertionError(
            f"{' '.join(words)}: exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
        )
    return done.stdout


def uv(*words: str, cwd: Path = ROOT) -> str:
    return run([find_uv(), "--quiet", *words], cwd=cwd, env=environment())


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("wheels")
    uv("build", "--all-packages", "--wheel", "--out-dir", str(folder))
    return {path.name.split("-")[0].replace("_", "-"): path for path in folder.glob("*.whl")}


@pytest.fixture(scope="module")
def installed(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an environment that holds the wheels and what they need."""
    home = tmp_path_factory.mktemp("installed") / "venv"
    uv("venv", str(home))
    uv("pip", "install", "--compile-bytecode", "--python", str(home), *map(str, wheels.values()))
    return home / ("Scripts" if os.name == "nt" else "bin")


def cantle(programs: Path, *words: str, folder: Path) -> str:
    """Run the installed program with an environment that knows nothing of the checkout."""
    env = {"HOME": str(folder), "PATH": f"{programs}{os.pathsep}{os.defpath}"}
    return run([str(programs / "cantle"), *words], cwd=folder, env=env)


def members(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if not name.endswith("/")}


def test_every_package_has_a_wheel(wheels: dict[str, Path]) -> None:
    assert set(wheels) == set(PACKAGES)


@pytest.mark.parametrize("name", PACKAGES)
def test_a_wheel_holds_its_package_with_its_types_and_licence(name: str, wheels: dict[str, Path]) -> None:
    module = name.replace("-", "_")
    held = members(wheels[name])
    assert f"{module}/py.typed" in held
    assert any(entry.endswith(".dist-info/licenses/LICENSE") for entry in held)
    outside = {entry for entry in held if not entry.startswith((f"{module}/", f"{module}-0"))}
    assert outside == set()


def test_the_wheel_carries_readme_docs_and_examples(wheels: dict[str, Path]) -> None:
    held = members(wheels["cantle"])
    shared = {
        path.relative_to(ROOT).as_posix()
        for path in own_files()
        if path.relative_to(ROOT).parts[0] in {"README.md", "docs", "examples"}
    }
    assert shared
    assert {f"cantle/_share/{name}" for name in shared} - held == set()


def test_links_between_the_pages_in_the_wheel_lead_somewhere(wheels: dict[str, Path]) -> None:
    with zipfile.ZipFile(wheels["cantle"]) as archive:
        held = {name.removeprefix("cantle/_share/") for name in archive.namelist() if "/_share/" in name}
        pages = {
            name: archive.read(f"cantle/_share/{name}").decode() for name in held if name.endswith(".md")
        }
    links = [(page, link) for page, text in pages.items() for link in LINK.findall(text)]
    assert ("README.md", "packages/ai/README.md") in links
    folders = {str(parent) for name in held for parent in PurePosixPath(name).parents}
    dead = [
        (page, link)
        for page, link in links
        if posixpath.normpath(posixpath.join(posixpath.dirname(page), link)) not in held | folders
    ]
    assert dead == []


def test_a_wheel_from_the_source_distribution_is_the_same(wheels: dict[str, Path], tmp_path: Path) -> None:
    uv("build", "--package", "cantle", "--out-dir", str(tmp_path))
    (rebuilt,) = tmp_path.glob("*.whl")
    assert members(rebuilt) == members(wheels["cantle"])


def test_it_starts_and_the_demo_runs_from_the_wheels(installed: Path, tmp_path: Path) -> None:
    assert cantle(installed, "--version", folder=tmp_path).strip().endswith("0.1.0")
    assert "usage: cantle" in cantle(installed, "--help", folder=tmp_path)
    told = json.loads(cantle(installed, "demo", "--json", folder=tmp_path))
    assert (told["testsBefore"]["failed"], told["testsAfter"]["failed"]) == (3, 0)


def test_a_person_can_install_only_the_lower_layers(wheels: dict[str, Path], tmp_path: Path) -> None:
    home = tmp_path / "venv"
    uv("venv", str(home))
    uv("pip", "install", "--python", str(home), str(wheels["cantle-ai"]), str(wheels["cantle-agent"]))
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    check = "import cantle_ai, cantle_agent, importlib.util as u; assert u.find_spec('cantle') is None"
    run([str(python), "-c", check], cwd=tmp_path, env={"HOME": str(tmp_path)})
