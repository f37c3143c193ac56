"""One auth.json serves both programs: each reads what the other wrote, and keeps what it does not know."""

from __future__ import annotations

import json
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest

from cantle_ai.auth.credential_file import CredentialFile
from cantle_ai.auth.credentials import ApiKeyCredential
from tests.support.cli import Cli
from tests.support.reference import reference, reference_environment

__all__ = ["reference"]

pytestmark = [pytest.mark.reference, pytest.mark.slow]


def run(words: list[str], home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*words, "auth", *arguments],
        env=reference_environment(home),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=50,
        check=False,
    )


def ready(words: list[str], home: Path, provider: str) -> dict[str, Any]:
    done = run(words, home, "check", "--provider", provider, "--json", "--credentials", "--no-refresh")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parity("config.auth-json")
def test_each_reads_what_the_other_wrote(cli: Cli, reference: list[str]) -> None:
    assert cli.run("auth", "login", "groq", stdin="gsk-1").returncode == 0
    path = cli.config / "auth.json"
    entries = json.loads(path.read_text("utf-8"))
    entries["anthropic"] = {
        "type": "oauth",
        "access": "at-1",
        "refresh": "rt-1",
        "expires": round((time.time() + 3600) * 1000),
        "note": {"kept": True},
    }
    entries["mistral"] = {"type": "api_key", "key": "m", "env": {"A": "b"}, "note": "kept"}
    path.write_text(json.dumps(entries), "utf-8")

    home = cli.home / "reference"
    (home / "pi").mkdir(parents=True)
    (home / "pi" / "auth.json").write_bytes(path.read_bytes())
    key = ready(reference, home, "groq")
    assert (key["status"], key["authType"]) == ("ready", "api_key") and "gsk-1" in json.dumps(key)
    login = ready(reference, home, "anthropic")
    assert (login["status"], login["authType"]) == ("ready", "oauth") and "at-1" in json.dumps(login)
    assert run(reference, home, "logout", "groq").returncode == 0

    path.write_bytes((home / "pi" / "auth.json").read_bytes())
    assert cli.run("auth", "check", "groq").returncode == 1
    for provider in ("anthropic", "mistral"):
        assert cli.run("auth", "check", provider).returncode == 0
    assert cli.run("auth", "login", "xai", "--api-key", stdin="x").returncode == 0
    rewritten = json.loads(path.read_text("utf-8"))
    assert rewritten["anthropic"] == entries["anthropic"] and rewritten["mistral"] == entries["mistral"]


@pytest.mark.parity("config.auth-json")
def test_both_write_one_file_at_once_and_lose_nothing(cli: Cli, reference: list[str]) -> None:
    """Each waits for the other's lock, and finds none that is left behind."""
    home = cli.home / "reference"
    path = home / "pi" / "auth.json"
    path.parent.mkdir(parents=True)
    names = [f"taken-{number}" for number in range(3)]
    path.write_text(json.dumps({name: {"type": "api_key", "key": name} for name in names}), "utf-8")
    store = CredentialFile(path)
    store.save("before", ApiKeyCredential(key="k"))
    with ThreadPoolExecutor() as pool:
        leaving = [pool.submit(run, reference, home, "logout", name) for name in names]
        saved = 0
        while not all(future.done() for future in leaving):
            store.save(f"saved-{saved}", ApiKeyCredential(key="k"))
            saved += 1
            wait(leaving, timeout=0.05)  # it looks at the lock a few times a second only
    assert [future.result().returncode for future in leaving] == [0] * 3, [f.result() for f in leaving]
    entries = json.loads(path.read_text("utf-8"))
    assert sorted(entries) == sorted(["before", *(f"saved-{number}" for number in range(saved))])
    assert not path.with_name("auth.json.lock").exists()
