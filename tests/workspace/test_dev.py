"""`tools/dev.py`: clear sentences on machines that lack something, and the right words for uv."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tools import dev


@pytest.mark.parametrize("version", [(3, 8, 10), (3, 10, 14)])
def test_an_old_python_is_named_and_what_is_needed_said(version: tuple[int, ...]) -> None:
    with pytest.raises(dev.Unable, match=r"needs Python 3\.11 or newer; this is Python 3\.(8\.10|10\.14)"):
        dev.check_python(version)


def test_uv_on_the_path_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: "/somewhere/uv" if name == "uv" else None)
    assert dev.find_uv(tmp_path) == "/somewhere/uv"


@pytest.mark.parametrize("place", ["bin/uv", "Scripts/uv.exe"])
def test_the_checkouts_own_uv_is_found_again(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    installed = tmp_path / ".tools/uv" / place
    installed.parent.mkdir(parents=True)
    installed.touch()
    assert dev.find_uv(tmp_path) == str(installed)


def test_without_venv_and_pip_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr(dev, "_has_module", lambda name: False)
    with pytest.raises(dev.Unable, match="apt install python3-venv"):
        dev.find_uv(tmp_path)


def test_a_failing_index_is_reported_without_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr("subprocess.call", lambda command: 1)
    with pytest.raises(dev.Unable, match="exit status 1"):
        dev.find_uv(tmp_path)


def test_no_python_is_downloaded_and_a_first_run_uses_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dev, "_machine_has_authorities", lambda: False)
    env = dev.environment(tmp_path, {"VIRTUAL_ENV": "elsewhere", "PATH": "p"})
    assert env == {"PATH": "p", "UV_PYTHON_DOWNLOADS": "never", "UV_PYTHON": sys.executable}
    (tmp_path / ".venv").mkdir()
    assert "UV_PYTHON" not in dev.environment(tmp_path, {})


def test_uv_trusts_whom_pip_and_the_machine_trust(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dev, "_machine_has_authorities", lambda: True)
    env = dev.environment(tmp_path, {"PIP_CERT": "/our/authorities.pem"})
    assert (env["SSL_CERT_FILE"], env["UV_SYSTEM_CERTS"]) == ("/our/authorities.pem", "1")
    env = dev.environment(tmp_path, {"PIP_CERT": "a", "SSL_CERT_FILE": "b", "UV_SYSTEM_CERTS": "0"})
    assert (env["SSL_CERT_FILE"], env["UV_SYSTEM_CERTS"]) == ("b", "0")


def test_the_words_for_uv() -> None:
    root = Path("checkout")
    here, there = ["--project", "checkout", "--no-dev"], ["--directory", "checkout"]
    assert dev.commands(["demo", "--json"], root) == [[*here, "cantle", "demo", "--json"]]
    assert dev.commands(["run", "--", "--", "-x"], root) == [[*here, "cantle", "--", "-x"]]
    assert dev.commands(["test", "-k", "loop"], root) == [[*there, "pytest", "-k", "loop"]]
    optional = ["--group", "local", "--group", "oracles"]
    assert dev.commands(["test-all", "-q"], root) == [[*optional, *there, "pytest", "-q"]]
    assert [line[2] for line in dev.commands(["check"], root)] == [
        "ruff",
        "ruff",
        "mypy",
        "mypy",
        "mypy",
        "lint-imports",
    ]


@pytest.mark.parametrize(
    ("words", "code", "said"), [([], 2, "tools/dev.py demo"), (["tset"], 2, "There are: demo")]
)
def test_wrong_words_are_answered_in_a_sentence(words: list[str], code: int, said: str) -> None:
    command = [sys.executable, str(ROOT / "tools/dev.py"), *words]
    run = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert run.returncode == code
    assert said in run.stderr
    assert "Traceback" not in run.stderr
    assert run.stdout == ""
