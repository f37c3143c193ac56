"""Credentials in the system's key ring, which a setting chooses."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.support.authorisation import AuthorisationServer, can_stand_for_vendors, expired
from tests.support.cli import Cli
from tests.support.extras import needs
from tests.support.paths import ROOT

MISSING = "import sys; sys.modules['keyring'] = None; from cantle.cli import main; sys.exit(main())"


@pytest.fixture
def ring(cli: Cli, tmp_path: Path) -> Path:
    """The file that stands for the key ring; the settings choose it."""
    path = tmp_path / "ring.json"
    cli.variables.update(
        PYTHON_KEYRING_BACKEND="tests.support.file_keyring.FileKeyring",
        PYTHONPATH=str(ROOT),
        TEST_KEYRING=str(path),
    )
    (cli.config / "settings.json").write_text('{"credentialStorage": "keyring"}', "utf-8")
    return path


@needs("keyring")
def test_keys_lie_in_the_ring_and_nowhere_else(cli: Cli, ring: Path) -> None:
    done = cli.run("auth", "login", "groq", stdin="gsk-s3cret")
    assert (done.returncode, done.stdout) == (0, "Saved the key of groq in the system's key ring\n"), (
        done.stderr
    )
    assert json.loads(ring.read_text()) == {"cantle/groq": '{"type":"api_key","key":"gsk-s3cret"}'}
    kept = {path.name: path.read_text("utf-8") for path in cli.config.iterdir() if path.is_file()}
    assert json.loads(kept["keyring.json"]) == {"groq": {"type": "api_key", "key": True, "env": []}}
    assert not any("s3cret" in text for text in kept.values()) and "auth.json" not in kept
    done = cli.run("auth", "check", "groq")
    assert (done.returncode, done.stdout) == (0, "groq  key in the system's key ring\n")
    workers = "cloudflare-workers-ai"
    assert (
        cli.run("auth", "login", workers, "--env", "CLOUDFLARE_ACCOUNT_ID=a-s3cret", stdin="k").returncode
        == 0
    )
    assert cli.run("auth", "check", workers).returncode == 0
    assert "s3cret" not in (cli.config / "keyring.json").read_text("utf-8")
    assert cli.run("auth", "logout", workers).returncode == 0
    assert cli.run("auth", "logout", "--all").stdout == "Removed groq from the system's key ring\n"
    assert json.loads(ring.read_text()) == {}
    assert cli.run("auth", "check", "groq").returncode == 1


@needs("keyring")
@pytest.mark.skipif(not can_stand_for_vendors, reason="openssl makes the certificates")
def test_a_login_in_the_ring_is_renewed(cli: Cli, ring: Path, tmp_path: Path) -> None:
    from tests.e2e.test_auth import HOSTS, MODEL, answered

    with AuthorisationServer(vendor_names=HOSTS, folder=tmp_path / "vendors", other=answered) as server:
        cli.variables.update(server.variables)
        entry = expired(server.tokens(), note="kept")
        ring.write_text(json.dumps({"cantle/anthropic": json.dumps(entry)}), "utf-8")
        (cli.config / "keyring.json").write_text(
            json.dumps({"anthropic": {"type": "oauth", "expires": 1}}), "utf-8"
        )
        done = cli.run(*MODEL, "-p", "hi")
        assert (done.returncode, done.stdout, done.stderr) == (0, "Hello.\n", "")
        assert server.renewals == 1
        renewed = json.loads(json.loads(ring.read_text())["cantle/anthropic"])
        assert renewed["access"] in server.issued and renewed["note"] == "kept"
        index = json.loads((cli.config / "keyring.json").read_text("utf-8"))
        assert index == {"anthropic": {"type": "oauth", "expires": renewed["expires"]}}


@needs("keyring")
@pytest.mark.parametrize(("state", "reason"), [("locked", "KeyringLocked"), ("gone", "RuntimeError")])
def test_a_locked_or_damaged_ring_is_one_sentence(cli: Cli, ring: Path, state: str, reason: str) -> None:
    assert cli.run("auth", "login", "groq", stdin="k").returncode == 0
    lock = ring.with_name(f"{ring.name}.{state}")
    lock.touch()
    assert cli.run("auth", "check", "groq").returncode == 0  # that there is a key can be told without it
    for arguments in (
        ("auth", "login", "groq"),
        ("auth", "logout", "groq"),
        ("--provider", "groq", "-p", "hi"),
    ):
        done = cli.run(*arguments, stdin="k")
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.count("\n") == 1 and "s3cret" not in done.stderr
        assert f"key ring refused ({reason}). Unlock it, and try again" in done.stderr
    lock.unlink()
    ring.write_text(json.dumps({"cantle/groq": "{"}))
    done = cli.run("--provider", "groq", "-p", "hi")
    assert done.returncode == 1 and "is damaged. Run `cantle auth login groq`" in done.stderr
    assert cli.run("auth", "login", "groq", stdin="k2").returncode == 0
    assert cli.run("auth", "check", "groq").returncode == 0


@needs("keyring")
@pytest.mark.parametrize("name", ["nosuch.Ring", "json.NoSuch", "nodots"])
def test_a_back_end_that_cannot_be_loaded_is_one_sentence(cli: Cli, ring: Path, name: str) -> None:
    cli.variables["PYTHON_KEYRING_BACKEND"] = name
    done = cli.run("auth", "check")
    assert (done.returncode, done.stdout) == (1, "")
    assert "cannot be started" in done.stderr and "PYTHON_KEYRING_BACKEND" in done.stderr
    assert done.stderr.count("\n") == 1


@needs("keyring")
def test_a_machine_without_a_key_ring_says_so(cli: Cli, ring: Path) -> None:
    cli.variables["PYTHON_KEYRING_BACKEND"] = "keyring.backends.fail.Keyring"
    done = cli.run("auth", "login", "groq", stdin="k")
    assert (done.returncode, done.stdout) == (1, "")
    assert (
        done.stderr.startswith("cantle: this machine offers no key ring: ") and done.stderr.count("\n") == 1
    )
    assert (
        f'Or remove "credentialStorage" from {cli.config / "settings.json"}, to use auth.json.' in done.stderr
    )


def test_without_the_package_the_message_says_what_to_install(cli: Cli, ring: Path) -> None:
    class Without(Cli):
        @staticmethod
        def words(*arguments: str) -> list[str]:
            return [sys.executable, "-c", MISSING, *arguments]

    done = Without(cli.home, cli.cwd, cli.variables).run("auth", "check")
    assert (done.returncode, done.stdout) == (1, "")
    assert "pip install 'cantle[keyring]'" in done.stderr and done.stderr.count("\n") == 1


def test_a_project_cannot_choose_the_store(cli: Cli) -> None:
    (cli.cwd / ".cantle").mkdir()
    (cli.cwd / ".cantle" / "settings.json").write_text('{"credentialStorage": "keyring"}', "utf-8")
    cli.configure("http://127.0.0.1:9/v1")
    done = cli.run("--approve", "--provider", "loop", "-p", "hi")
    assert "key ring" not in done.stderr
