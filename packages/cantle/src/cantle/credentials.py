"""Saved keys: `auth.json`, readable by its owner alone.

    {"openai": {"type": "api_key", "key": "sk-…"}}

A key may also be `$NAME`, `${NAME}` or `!command`; whoever uses it resolves it. Entries of other types (OAuth)
are kept and not used. Keys never appear in a message, an error or a `repr`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from cantle.errors import ConfigurationFileError
from cantle.json_file import read_json_file, update_json_file
from cantle_ai.codec import JsonObject

if TYPE_CHECKING:
    from cantle_ai.auth.credentials import Credentials

__all__ = ["CredentialFile"]

_PRIVATE = 0o600
_OTHERS = 0o077


class CredentialFile:
    """The keys of one `auth.json`, read anew at each request, so that a new key needs no restart."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp: tuple[int, int] | None = None
        self._entries: JsonObject = {}

    def __repr__(self) -> str:
        return f"CredentialFile({str(self.path)!r})"

    async def get(self, provider_id: str) -> str | None:
        """The saved key of a provider, as it stands in the file; None without one.

        Raises :class:`ConfigurationFileError` for a file that cannot be used.
        """
        return self.key(provider_id)

    def key(self, provider_id: str) -> str | None:
        """Like :meth:`get`, without an event loop."""
        entry = self._read().get(provider_id)
        if entry is None:
            return None
        if not isinstance(entry, dict):
            raise ConfigurationFileError(
                f"{self.path}: the entry {provider_id!r} must be an object.",
                'Write it as {"type": "api_key", "key": "…"}.',
            )
        if entry.get("type", "api_key") != "api_key":
            return None
        key = entry.get("key")
        if not isinstance(key, str | None):
            raise ConfigurationFileError(
                f"{self.path}: {provider_id}.key must be a string.", "Change or remove it."
            )
        return key or None

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

    def save(self, provider_id: str, key: str) -> None:
        """Save a key and leave the other entries alone. The file is private from its first byte."""

        def apply(raw: JsonObject) -> None:
            raw[provider_id] = {"type": "api_key", "key": key}

        update_json_file(self.path, apply, mode=_PRIVATE)

    def remove(self, provider_id: str) -> None:
        """Forget a provider's entry. Nothing happens when there is none."""
        if provider_id in self._read():
            update_json_file(self.path, lambda raw: _drop(raw, provider_id), mode=_PRIVATE)

    def _read(self) -> JsonObject:
        try:
            status = self.path.stat()
        except OSError:
            self._stamp, self._entries = None, {}
            return self._entries
        stamp = (status.st_mtime_ns, status.st_ino)
        if stamp != self._stamp:
            self._entries = read_json_file(self.path) or {}
            self._stamp = stamp
        return self._entries


def _drop(raw: JsonObject, provider_id: str) -> None:
    raw.pop(provider_id, None)


if TYPE_CHECKING:
    _proof: type[Credentials] = CredentialFile
