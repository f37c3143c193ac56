"""Saved keys: shape, privacy, and that they are never shown."""

import json
import os
import stat
from pathlib import Path

import pytest

from cantle.credentials import CredentialFile
from cantle.errors import ConfigurationFileError

posix = pytest.mark.skipif(os.name == "nt", reason="POSIX modes")


async def test_without_a_file_there_is_no_key_and_none_is_made(tmp_path: Path) -> None:
    credentials = CredentialFile(tmp_path / "auth.json")
    assert await credentials.get("openai") is None
    assert credentials.warning() is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parity("config.auth-json")
async def test_a_saved_key_is_found_again_and_others_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "auth.json"
    oauth = {"type": "oauth", "access": "a", "refresh": "r", "expires": 1}
    path.write_text(
        json.dumps({"anthropic": oauth, "x": {"type": "api_key", "key": "k", "env": {"A": "b"}}}),
        encoding="utf-8",
    )
    path.chmod(0o600)
    credentials = CredentialFile(path)
    credentials.save("openai", "sk-1")
    assert await credentials.get("openai") == "sk-1"
    assert await credentials.get("x") == "k"
    assert await credentials.get("anthropic") is None
    raw = json.loads(path.read_text(encoding="utf-8"))
    assert raw["openai"] == {"type": "api_key", "key": "sk-1"}
    assert raw["anthropic"] == oauth
    assert raw["x"]["env"] == {"A": "b"}


async def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "auth.json"
    credentials = CredentialFile(path)
    credentials.save("openai", "one")
    assert await credentials.get("openai") == "one"
    CredentialFile(path).save("openai", "two")
    assert await credentials.get("openai") == "two"
    credentials.remove("openai")
    credentials.remove("never-there")
    assert await credentials.get("openai") is None
    path.unlink()
    assert await credentials.get("openai") is None


@posix
def test_the_file_is_private_from_the_start_and_stays_so(tmp_path: Path) -> None:
    path = tmp_path / "auth.json"
    old = os.umask(0)
    try:
        CredentialFile(path).save("openai", "sk-1")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        path.chmod(0o644)
        warning = CredentialFile(path).warning()
        assert warning is not None
        assert "0644" in warning
        assert f"chmod 600 {path}" in warning
        assert "sk-1" not in warning
        CredentialFile(path).save("openai", "sk-2")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    finally:
        os.umask(old)
    assert CredentialFile(path).warning() is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"openai": "sk-secret"}', "the entry 'openai' must be an object"),
        ('{"openai": {"type": "api_key", "key": ["sk-secret"]}}', "openai.key must be a string"),
        ('{"openai": {"key": "sk-secret"', "line 1, column"),
    ],
)
def test_a_broken_file_is_named_without_showing_a_key(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "auth.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationFileError) as caught:
        CredentialFile(path).key("openai")
    assert problem in str(caught.value)
    assert str(path) in str(caught.value)
    assert "secret" not in str(caught.value)


def test_m01_a_broken_file_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "auth.json"
    path.write_text("{,", encoding="utf-8")
    with pytest.raises(ConfigurationFileError):
        CredentialFile(path).save("openai", "sk")
    assert path.read_text(encoding="utf-8") == "{,"


def test_keys_do_not_show_in_a_repr(tmp_path: Path) -> None:
    credentials = CredentialFile(tmp_path / "auth.json")
    credentials.save("openai", "sk-secret")
    credentials.key("openai")
    assert "secret" not in repr(credentials)
