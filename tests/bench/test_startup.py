"""The profile of a start: what it counts is there, and what is missing is said."""

import importlib.util
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from bench.startup import STEPS, instructions, own_modules, serving
from bench.trouble import Unable
from tests.support.paths import ROOT


def test_the_modules_that_are_counted_exist() -> None:
    names = own_modules()
    assert "cantle.cli.run" in names
    assert [name for name in names if importlib.util.find_spec(name) is None] == []
    for _, modules in STEPS:
        assert all(importlib.util.find_spec(name.strip()) for name in modules.split(","))


def test_its_server_answers_as_a_model_does() -> None:
    with serving(None) as address:
        request = urllib.request.Request(f"{address}/chat/completions", data=b"{}")
        with urllib.request.urlopen(request) as response:
            assert response.headers["content-type"] == "text/event-stream"
            assert response.read().endswith(b"data: [DONE]\n\n")


def test_without_valgrind_it_says_what_to_install(tmp_path: Path) -> None:
    words = [sys.executable, str(ROOT / "bench/startup.py")]
    done = subprocess.run(
        words, env={"PATH": str(tmp_path)}, capture_output=True, encoding="utf-8", check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "valgrind counts the instructions" in done.stderr


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind counts the instructions")
def test_a_command_that_fails_is_no_count(tmp_path: Path) -> None:
    environ = {"PATH": "/usr/bin:/bin"}
    assert instructions(["/bin/true"], cwd=tmp_path, environ=environ) > 10_000
    with pytest.raises(Unable, match="failed under valgrind"):
        instructions(["/bin/false"], cwd=tmp_path, environ=environ)
