"""Saved credentials: `auth.json` in the configuration folder, or the system's key ring where that was chosen."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from cantle.errors import UserError
from cantle.json_file import as_user_errors
from cantle.paths import ConfigPaths
from cantle.settings import Settings
from cantle_ai.auth.credential_file import CredentialFile
from cantle_ai.auth.credentials import Credential, CredentialStore, DamagedCredentialError

__all__ = ["SavedCredentials", "saved_credentials"]


class SavedCredentials:
    """A store whose errors are for the user to mend."""

    def __init__(self, store: CredentialStore) -> None:
        self._store = store

    def __repr__(self) -> str:
        return f"SavedCredentials({self._store!r})"

    @property
    def place(self) -> str:
        return self._store.place

    async def get(self, provider_id: str) -> Credential | None:
        with as_user_errors():
            return await self._store.get(provider_id)

    def peek(self, provider_id: str) -> Credential | None:
        damage: DamagedCredentialError | None = None
        with as_user_errors():
            try:
                return self._store.peek(provider_id)
            except DamagedCredentialError as error:
                damage = error  # of this provider alone: for whoever asks to make a list without it
        raise damage

    def names(self) -> Sequence[str]:
        with as_user_errors():
            return self._store.names()

    def read(self, provider_id: str) -> Credential | None:
        with as_user_errors():
            return self._store.read(provider_id)

    def check_writable(self) -> None:
        with as_user_errors():
            self._store.check_writable()

    def save(self, provider_id: str, credential: Credential) -> None:
        with as_user_errors():
            self._store.save(provider_id, credential)

    def replace(self, provider_id: str, old: Credential, new: Credential) -> bool:
        with as_user_errors():
            return self._store.replace(provider_id, old, new)

    def remove(self, provider_id: str) -> bool:
        with as_user_errors():
            return self._store.remove(provider_id)

    def renewing(self, patience: float) -> AbstractContextManager[None]:
        return self._store.renewing(patience)

    def warning(self) -> str | None:
        """What the user should know about how they are kept, as a sentence; None when there is nothing."""
        return self._store.warning() if isinstance(self._store, CredentialFile) else None


def saved_credentials(paths: ConfigPaths, settings: Settings) -> SavedCredentials:
    """The store that the settings choose. Raises :class:`UserError` when there is no such one here."""
    if settings.credential_storage == "file":
        return SavedCredentials(CredentialFile(paths.auth))
    from cantle_ai.auth.key_ring import KeyRing
    from cantle_ai.errors import ConfigurationError

    try:
        return SavedCredentials(KeyRing(paths.root / "keyring.json"))
    except ConfigurationError as error:
        raise UserError(
            f"{error}.", f'Or remove "credentialStorage" from {paths.settings}, to use {paths.auth.name}.'
        ) from None


if TYPE_CHECKING:
    _proof: type[CredentialStore] = SavedCredentials
