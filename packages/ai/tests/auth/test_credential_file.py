"""Stored credentials: shape, privacy, and that they are never shown."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cantle_ai.auth.credential_file import CredentialFile
from cantle_ai.auth.credentials import (
    ApiKeyCredential,
    OAuthCredential,
    credential_from_json,
    credential_to_json,
)
from cantle_ai.errors import ConfigurationError

posix = pytest.mark.skipif(os.name == "nt", reason="POSIX modes")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "auth.json"


def raw(path: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return value


async def test_without_a_file_there_is_nothing_and_none_is_made(path: Path) -> None:
    store = CredentialFile(path)
    assert await store.get("openai") is None
    assert (store.names(), store.warning()) == ([], None)
    assert list(path.parent.iterdir()) == []


@pytest.mark.parity("config.auth-json")
async def test_a_saved_key_is_found_again_and_others_are_kept(path: Path) -> None:
    """Entries, fields and types that are not known here survive."""
    entries = {
        "anthropic": {"type": "oauth", "access": "a", "refresh": "r", "expires": 1, "account": {"id": [1]}},
        "x": {"type": "api_key", "key": "k", "env": {"A": "b"}, "note": "mine"},
        "later": {"type": "passkey", "blob": "…"},
    }
    path.write_text(json.dumps(entries), encoding="utf-8")
    path.chmod(0o600)
    store = CredentialFile(path)
    store.save("openai", ApiKeyCredential(key="sk-1"))
    assert await store.get("openai") == ApiKeyCredential(key="sk-1")
    assert await store.get("x") == ApiKeyCredential(key="k", env={"A": "b"}, extra={"note": "mine"})
    assert await store.get("later") is None
    assert await store.get("anthropic") == OAuthCredential(
        access="a", refresh="r", expires=1, extra={"account": {"id": [1]}}
    )
    assert raw(path) == {**entries, "openai": {"type": "api_key", "key": "sk-1"}}
    assert store.names() == ["anthropic", "x", "later", "openai"]
    for name in ("anthropic", "x"):
        credential = store.read(name)
        assert credential is not None
        store.save(name, credential)
    assert raw(path)["anthropic"] == entries["anthropic"] and raw(path)["x"] == entries["x"]


async def test_a_changed_file_is_read_again(path: Path) -> None:
    store = CredentialFile(path)
    store.save("openai", ApiKeyCredential(key="one"))
    assert store.peek("openai") == ApiKeyCredential(key="one")
    CredentialFile(path).save("openai", ApiKeyCredential(key="two"))
    assert store.peek("openai") == ApiKeyCredential(key="two")
    assert store.remove("openai") and not store.remove("never-there")
    assert await store.get("openai") is None
    path.unlink()
    assert await store.get("openai") is None


@posix
def test_file_and_folder_are_private_from_the_start_and_stay_so(tmp_path: Path) -> None:
    path = tmp_path / "new" / "auth.json"
    old = os.umask(0)
    try:
        CredentialFile(path).save("openai", ApiKeyCredential(key="sk-1"))
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        path.chmod(0o644)
        warning = CredentialFile(path).warning()
        assert warning is not None
        assert "0644" in warning and f"chmod 600 {path}" in warning and "sk-1" not in warning
        CredentialFile(path).save("openai", ApiKeyCredential(key="sk-2"))
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    finally:
        os.umask(old)
    assert CredentialFile(path).warning() is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"openai": "sk-secret"}', "the entry 'openai' must be an object"),
        ('{"openai": {"type": "api_key", "key": ["sk-secret"]}}', "openai.key must be a string"),
        (
            '{"openai": {"type": "api_key", "key": "k", "env": {"A": ["sk-secret"]}}}',
            "openai.env.A must be a string",
        ),
        ('{"openai": {"type": "oauth", "access": "sk-secret"}}', "missing: milliseconds since 1970. Run `c"),
        (
            '{"openai": {"type": "oauth", "expires": 1, "refresh": "sk-secret"}}',
            "openai.access must be a string",
        ),
        ('{"openai": {"type": 7, "key": "sk-secret"}}', "openai.type must be a string"),
        ('{"openai": {"key": "sk-secret"', "line 1, column"),
        ('["sk-secret"]', "does not hold a JSON object"),
    ],
)
def test_a_broken_file_is_named_without_showing_a_key(path: Path, text: str, problem: str) -> None:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        CredentialFile(path).read("openai")
    assert problem in str(caught.value) and str(path) in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
def test_a_file_that_cannot_be_looked_at_is_no_missing_one(path: Path) -> None:
    path.symlink_to(path.name)
    for _ in range(2):
        with pytest.raises(ConfigurationError, match=r"auth\.json cannot be read: "):
            CredentialFile(path).read("openai")


def test_m01_a_broken_file_is_not_replaced(path: Path) -> None:
    path.write_text("{,", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="Mend the file"):
        CredentialFile(path).save("openai", ApiKeyCredential(key="sk"))
    assert path.read_text(encoding="utf-8") == "{,"


def test_no_repr_shows_a_secret(path: Path) -> None:
    store = CredentialFile(path)
    store.save("openai", ApiKeyCredential(key="s3cr3t-1", env={"TOKEN": "s3cr3t-2"}, extra={"n": "s3cr3t-3"}))
    store.save(
        "x", OAuthCredential(access="s3cr3t-4", refresh="s3cr3t-5", expires=1, extra={"id": "s3cr3t-6"})
    )
    shown = f"{store!r} {store.read('openai')!r} {store.read('x')!r}"
    assert "s3cr3t" not in shown and "TOKEN" in shown


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(st.text(max_size=6), _JSON, max_size=4),
    st.text(max_size=5),
    st.text(max_size=5),
    st.integers(0, 2**53 - 1),
)
def test_every_entry_survives_a_rewrite(
    more: dict[str, Any], access: str, refresh: str, expires: int
) -> None:
    entry = {**more, "type": "oauth", "access": access, "refresh": refresh, "expires": expires}
    credential = credential_from_json(entry, "p")
    assert credential is not None
    assert credential_to_json(credential) == entry
