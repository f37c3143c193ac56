"""What stands in the way of a measurement is said in words, with what to do."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bench.harness import find_harness
from bench.install import REFERENCE_PACKAGES, find_peers, install_cantle
from bench.run import main
from bench.trouble import Unable
from tests.support.paths import ROOT
from tests.support.reference import PACKAGES

HARNESS = ("run.py", "report.py", "peers.py", "mock.py")


def harness(folder: Path, run: str = "") -> Path:
    """A folder that looks like the shared bench; `run` is what its run.py does."""
    folder.mkdir()
    for name in HARNESS:
        (folder / name).write_text(run if name == "run.py" else "", encoding="utf-8")
    return folder


def test_the_harness_is_found_where_it_is_named(tmp_path: Path) -> None:
    one, two = harness(tmp_path / "one"), harness(tmp_path / "two")
    assert find_harness(str(one), {"CANTLE_BENCH": str(two)}) == one
    assert find_harness(None, {"CANTLE_BENCH": str(two)}) == two


def test_a_missing_harness_says_how_to_name_it(tmp_path: Path) -> None:
    with pytest.raises(Unable, match=r"there is no run\.py.*--harness DIR or in \$CANTLE_BENCH"):
        find_harness(str(tmp_path), {})


def test_the_reference_is_used_where_it_is(tmp_path: Path) -> None:
    for name in ("node_modules/.bin/node", "node_modules/@earendil-works/pi-coding-agent/dist/bundle/cli.js"):
        path = tmp_path / "pi" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert find_peers(str(tmp_path), {}) == tmp_path
    assert find_peers(None, {"BENCH_PEERS": str(tmp_path)}) == tmp_path


def test_without_npm_a_missing_reference_is_a_clear_word(tmp_path: Path) -> None:
    with pytest.raises(Unable, match=r"no npm on the path.*--peers DIR"):
        find_peers(str(tmp_path), {"PATH": str(tmp_path)})


def test_a_reference_that_npm_cannot_install_shows_why(tmp_path: Path) -> None:
    npm = tmp_path / "npm"
    npm.write_text("#!/bin/sh\necho no such registry\nexit 3\n", encoding="utf-8")
    npm.chmod(0o755)
    with pytest.raises(Unable, match=r"npm could not install the reference \(exit status 3\):\nno such reg"):
        find_peers(str(tmp_path / "peers"), {"PATH": f"{tmp_path}{os.pathsep}{os.defpath}"})


def test_both_places_install_the_same_reference() -> None:
    assert REFERENCE_PACKAGES == PACKAGES


def test_a_python_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uv = tmp_path / "uv"
    uv.write_text(
        '#!/bin/sh\n[ "$2" = venv ] && echo "no interpreter $4" && exit 2\nexit 0\n', encoding="utf-8"
    )
    uv.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.defpath}")
    with pytest.raises(
        Unable, match=r"Making a virtual environment failed \(exit status 2\):\nno interp.* p9"
    ):
        install_cantle(tmp_path, "p9")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--suites", "print,nosuch"], "There is no suite 'nosuch'. There are: version, print"),
        (["--rounds", "0"], "--rounds must be at least 1"),
        (["--harness", os.devnull], "The shared bench, which is not part of this repository, is not in"),
        (["--record", "--quick"], "--record needs all suites"),
        (["--record", "--rounds", "3"], "--record needs at least 7 rounds"),
        (["--judge", "no-such-file"], "no-such-file can't be read: No such file"),
        (["--judge", str(ROOT / "bench/budgets.toml")], "budgets.toml does not hold results of the bench"),
    ],
)
def test_a_wrong_option_ends_with_one_sentence(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert said in capsys.readouterr().err


def test_it_starts_with_the_standard_library_alone() -> None:
    words = [sys.executable, "-I", "-S", str(ROOT / "bench/run.py"), "--help"]
    done = subprocess.run(words, capture_output=True, encoding="utf-8", check=True)
    assert "--rounds" in done.stdout


def test_the_driver_adds_its_tests_to_the_bench(tmp_path: Path) -> None:
    run = (
        "import sys\nSUITES = {'bigarg': [('bigarg-p',)], 'resume': [('resume10k',)]}\n"
        "def stream_test(scenario, deltas, json_mode): return scenario, deltas, json_mode\n"
        "def resume_test(entries, compact): return entries, compact\n"
        "def main(): print(SUITES['bigarg'], SUITES['resume'], sys.argv[1:])\n"
    )
    words = [
        sys.executable,
        str(ROOT / "bench/driver.py"),
        str(harness(tmp_path / "bench", run)),
        "--runs",
        "1",
    ]
    said = subprocess.run(words, capture_output=True, encoding="utf-8", check=True).stdout
    assert re.findall(r"bigarg\d*-\w+", said)[:3] == ["bigarg-p", "bigarg400-p", "bigarg-400000"]
    assert "('resume10k',), ('resume20k', 'resume', (20000, 0), 1)" in said
    assert said.rstrip().endswith("['--runs', '1']")
