"""Credentials in a file, `auth.json`, which its owner alone can read. It is written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from cantle_ai.auth.credentials import (
    Credential,
    DamagedCredentialError,
    credential_from_json,
    credential_to_json,
)
from cantle_ai.codec import Json, JsonObject
from cantle_ai.errors import ConfigurationError
from cantle_ai.system_errors import reason_of

if TYPE_CHECKING:
    from cantle_ai.auth.credentials import CredentialStore

__all__ = ["CredentialFile"]

_PRIVATE = 0o600
_OTHERS = 0o077


class CredentialFile:
    """The credentials of one `auth.json`, read anew when it has changed, so that a new key needs no restart.

    Methods raise :class:`ConfigurationError` for a file that cannot be used; no error quotes what is in it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp: tuple[int, int, int] | None = None
        self._entries: JsonObject = {}

    def __repr__(self) -> str:
        return f"CredentialFile({str(self.path)!r})"

    @property
    def place(self) -> str:
        return str(self.path)

    async def get(self, provider_id: str) -> Credential | None:
        return self.read(provider_id)

    def peek(self, provider_id: str) -> Credential | None:
        return self.read(provider_id)

    def names(self) -> Sequence[str]:
        return list(self._read())

    def read(self, provider_id: str) -> Credential | None:
        entry = self._read().get(provider_id)
        if entry is None:
            return None
        from cantle_ai.fields import FieldError

        try:
            if not isinstance(entry, dict):
                raise FieldError(f"the entry {provider_id!r}", "must be an object")
            return credential_from_json(entry, provider_id)
        except FieldError as error:
            mend = f"run `cantle auth login {provider_id}`"
            if not isinstance(entry, dict) or entry.get("type") != "oauth":
                mend = f'write it as {{"type": "api_key", "key": "…"}}, or {mend}'
            raise DamagedCredentialError(self.path, f"{error}. {mend[0].upper()}{mend[1:]}") from None

    def check_writable(self) -> None:
        from cantle_ai.json_file import check_json_file

        check_json_file(self.path)

    def save(self, provider_id: str, credential: Credential) -> None:
        def change(raw: JsonObject) -> None:
            raw[provider_id] = credential_to_json(credential)

        self._update(change)

    def replace(self, provider_id: str, old: Credential, new: Credential) -> bool:
        replaced = False

        def change(raw: JsonObject) -> None:
            nonlocal replaced
            replaced = _is(raw.get(provider_id), old)
            if replaced:
                raw[provider_id] = credential_to_json(new)

        self._update(change)
        return replaced

    def remove(self, provider_id: str) -> bool:
        if provider_id not in self._read():
            return False
        self._update(lambda raw: _drop(raw, provider_id))
        return True

    def renewing(self, patience: float) -> AbstractContextManager[None]:
        from cantle_ai.file_lock import held_lock

        # The file itself, wherever a link to it lies: those who share a file share its lock.
        target = Path(os.path.realpath(self.path))
        return held_lock(target.with_name(target.name + ".renewing.lock"), patience=patience)

    def warning(self) -> str | None:
        """What is wrong with the file's permissions, as a sentence; None when others cannot read it."""
        if os.name == "nt":
            return None
        try:
            mode = self.path.stat().st_mode & 0o777
        except OSError:
            return None
        if not mode & _OTHERS:
            return None
        return f"Other users may read the keys in {self.path} (mode {mode:04o}); run: chmod 600 {self.path}"

    def _read(self) -> JsonObject:
        try:
            status = self.path.stat()
        except (FileNotFoundError, NotADirectoryError):
            self._stamp, self._entries = None, {}
            return self._entries
        except OSError as error:
            raise ConfigurationError(
                None, f"{self.path} cannot be read: {reason_of(error)}. Check its permissions"
            ) from None
        stamp = (status.st_mtime_ns, status.st_ino, status.st_size)
        if stamp != self._stamp:
            from cantle_ai.json_file import read_json_file

            self._entries = read_json_file(self.path) or {}
            self._stamp = stamp
        return self._entries

    def _update(self, change: Callable[[JsonObject], None]) -> None:
        from cantle_ai.json_file import update_json_file

        update_json_file(self.path, change, mode=_PRIVATE)


def _is(entry: Json, credential: Credential) -> bool:
    """Whether an entry says the same, however it is written."""
    from cantle_ai.fields import FieldError

    try:
        return isinstance(entry, dict) and credential_from_json(entry, "") == credential
    except FieldError:
        return False


def _drop(raw: JsonObject, provider_id: str) -> None:
    raw.pop(provider_id, None)


if TYPE_CHECKING:
    _proof: type[CredentialStore] = CredentialFile
