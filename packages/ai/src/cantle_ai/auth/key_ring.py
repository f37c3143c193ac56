"""Credentials in the system's key ring, with the extra `keyring`. Chosen by a setting, never by itself.

Each provider has an item of the service `cantle`, the same JSON as in `auth.json`. A key ring cannot be listed, so
the names of the providers, of their variables, and when their tokens end, lie in a file beside:
{"openai": {"type": "api_key", "key": true, "env": []}}. It tells no secret, and looking for usable models does not
unlock a key ring.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from cantle_ai.auth.credentials import (
    ApiKeyCredential,
    Credential,
    OAuthCredential,
    credential_from_json,
    credential_to_json,
)
from cantle_ai.codec import Json, JsonObject
from cantle_ai.errors import ConfigurationError
from cantle_ai.fields import FieldError
from cantle_ai.json_file import check_json_file, read_json_file, update_json_file

if TYPE_CHECKING:
    from cantle_ai.auth.credentials import CredentialStore

__all__ = ["KeyRing"]

_SERVICE = "cantle"
_HIDDEN = "(in the key ring)"
_T = TypeVar("_T")


class KeyRing:
    """The system's key ring. Methods raise :class:`ConfigurationError` when it is locked or refuses."""

    def __init__(self, index: Path) -> None:
        """`index` is the file with the names. Raises :class:`ConfigurationError` when there is no key ring here."""
        self._index = index
        _require_back_end()

    def __repr__(self) -> str:
        return f"KeyRing({str(self._index)!r})"

    @property
    def place(self) -> str:
        return "the system's key ring"

    async def get(self, provider_id: str) -> Credential | None:
        return await asyncio.to_thread(self.read, provider_id)

    def peek(self, provider_id: str) -> Credential | None:
        """What the index says: of a key, that there is one."""
        entry = self._index_entries().get(provider_id)
        if not isinstance(entry, dict):
            return None
        expires = entry.get("expires")
        if isinstance(expires, int):
            return OAuthCredential(access="", expires=expires)
        names = entry.get("env")
        variables = (
            {name: _HIDDEN for name in names if isinstance(name, str)} if isinstance(names, list) else {}
        )
        return ApiKeyCredential(key=_HIDDEN if entry.get("key") else None, env=variables)

    def names(self) -> Sequence[str]:
        return list(self._index_entries())

    def read(self, provider_id: str) -> Credential | None:
        import keyring

        text = _asked(lambda: keyring.get_password(_SERVICE, provider_id))
        if text is None:
            return None
        try:
            entry: Json = msgspec.json.decode(text)
            return credential_from_json(entry, provider_id)
        except (msgspec.MsgspecError, UnicodeError, FieldError):
            raise ConfigurationError(
                None,
                f"The item {provider_id} of the service {_SERVICE} in the key ring is damaged. "
                f"Run `cantle auth login {provider_id}`",
            ) from None

    def check_writable(self) -> None:
        import keyring

        _asked(lambda: keyring.get_password(_SERVICE, _SERVICE))
        check_json_file(self._index)

    def save(self, provider_id: str, credential: Credential) -> None:
        import keyring

        text = msgspec.json.encode(credential_to_json(credential)).decode()
        _asked(lambda: keyring.set_password(_SERVICE, provider_id, text))

        def change(raw: JsonObject) -> None:
            raw[provider_id] = _listed(credential)

        update_json_file(self._index, change, mode=0o600)

    def replace(self, provider_id: str, old: Credential, new: Credential) -> bool:
        """The same. A key ring has no means against somebody who saves in between."""
        if self.read(provider_id) != old:
            return False
        self.save(provider_id, new)
        return True

    def remove(self, provider_id: str) -> bool:
        import keyring

        if provider_id not in self._index_entries():
            return False
        if _asked(lambda: keyring.get_password(_SERVICE, provider_id)) is not None:
            _asked(lambda: keyring.delete_password(_SERVICE, provider_id))

        def change(raw: JsonObject) -> None:
            raw.pop(provider_id, None)

        update_json_file(self._index, change, mode=0o600)
        return True

    def renewing(self, patience: float) -> AbstractContextManager[None]:
        from cantle_ai.file_lock import held_lock

        return held_lock(self._index.with_name(self._index.name + ".renewing.lock"), patience=patience)

    def _index_entries(self) -> JsonObject:
        return read_json_file(self._index) or {}


def _listed(credential: Credential) -> JsonObject:
    """What the index says of a credential."""
    if isinstance(credential, OAuthCredential):
        return {"type": "oauth", "expires": credential.expires}
    return {"type": "api_key", "key": bool(credential.key), "env": list(credential.env)}


def _require_back_end() -> None:
    try:
        import keyring
        from keyring.backends.fail import Keyring as NoKeyring
    except ImportError:
        raise ConfigurationError(
            None,
            "The key ring needs the package keyring, which is not installed: pip install 'cantle[keyring]'",
        ) from None
    try:
        chosen = keyring.get_keyring()
    except Exception as error:  # noqa: BLE001 - it imports what a variable or a file of the user names
        raise ConfigurationError(
            None,
            f"The key ring cannot be started ({type(error).__name__}). "
            "Check PYTHON_KEYRING_BACKEND and keyring's configuration file",
        ) from None
    if isinstance(chosen, NoKeyring):
        raise ConfigurationError(
            None,
            "This machine offers no key ring: there is no desktop session, or no service such as GNOME Keyring, "
            "KWallet, Keychain or the Windows Credential Locker",
        )


def _asked(question: Callable[[], _T]) -> _T:
    """The key ring's answer. Raises :class:`ConfigurationError` in the place of whatever it raises."""
    try:
        return question()
    except OSError as error:  # Windows refuses what is too long
        reason = error.strerror or type(error).__name__
    except Exception as error:  # noqa: BLE001 - back ends raise what their systems do, and may quote what is kept
        reason = type(error).__name__
    raise ConfigurationError(None, f"The key ring refused ({reason}). Unlock it, and try again")


if TYPE_CHECKING:
    _proof: type[CredentialStore] = KeyRing
